"""Replies that refuse a request, by the error of the store.

Source: Pravega's wire protocol, codes 50 … 61 and 80 … 82; `docs/pravega-wire.md`.
"""

from hutch.pravega import error_messages as e
from hutch.pravega.layout import WireMessage
from hutch.pravega.messages import UNKNOWN
from store import errors as s
from store.api import NOT_EXISTS
from store.errors import StoreError

ILLEGAL_ARGUMENT = 0
OTHER = -1
"""Codes of an ErrorMessage."""

_TEXT_MAX = 8_000
"""Letters of an error: it may name a segment whose name alone fills a string of the wire."""

_OF_THE_REQUEST = (s.InvalidArgument, s.IsATable, s.NotATable, s.PositionOutOfRange)


def refusal(
    request_id: int, segment: str, error: StoreError, *, offset: int = UNKNOWN
) -> WireMessage:
    """Return the reply for an error.

    Args:
        request_id: The request's.
        segment: The segment that the request is about.
        error: The store's; its text goes where the protocol has the server's stack trace.
        offset: Where the request wanted to read or write; -1 for requests that say no offset.
    """
    text = str(error)[:_TEXT_MAX]
    match error:
        case s.NoSuchSegment():
            reply: WireMessage = e.NoSuchSegment(request_id, segment, text, offset)
        case s.SegmentExists():
            reply = e.SegmentAlreadyExists(request_id, segment, text)
        case s.SegmentSealed():
            reply = e.SegmentIsSealed(request_id, segment, text, offset)
        case s.SegmentTruncated():
            reply = e.SegmentIsTruncated(request_id, segment, error.start, text, offset)
        case s.LengthMismatch():  # of a table: Pravega says it so
            reply = e.SegmentIsTruncated(request_id, segment, error.length, text, offset)
        case s.TableNotEmpty() | s.KeyVersionMismatch():
            reply = _of_a_table(error)(request_id, segment, text)
        case _:
            code = ILLEGAL_ARGUMENT if isinstance(error, _OF_THE_REQUEST) else OTHER
            reply = e.ErrorMessage(request_id, segment, text, code)
    return reply


def _of_a_table(error: s.TableNotEmpty | s.KeyVersionMismatch) -> type[e.TableError]:
    if isinstance(error, s.TableNotEmpty):
        return e.TableSegmentNotEmpty
    # Of keys with a fixed length Pravega does not tell which are missing.
    exists = error.version != NOT_EXISTS or error.key_length
    return e.TableKeyBadVersion if exists else e.TableKeyDoesNotExist
