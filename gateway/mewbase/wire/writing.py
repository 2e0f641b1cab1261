"""Frames of the server, from templates: only numbers and documents are put in.

{"type": "RECEV", "frame": {"subID": i32, "timestamp": i64, "pos": i64, "event": document}}
"""

import struct
from typing import Final

from gateway.mewbase.wire.errors import Code
from gateway.mewbase.wire.frames import QUERYRESPONSE, QUERYRESULT, RESPONSE, TELL_EXISTS

_SIZE: Final = struct.Struct("<i")
_LONG: Final = struct.Struct("<q")
_INT32_MIN, _INT32_MAX = -1 << 31, (1 << 31) - 1
_BINARY: Final = 0x05


def document(*elements: bytes) -> bytes:
    """Return a document of these elements."""
    # One copy in all: a document may have a megabyte.
    return b"".join((_SIZE.pack(5 + sum(map(len, elements))), *elements, b"\x00"))


def element(code: int, name: bytes, value: bytes) -> bytes:
    """Return an element of a type."""
    return b"".join((bytes((code,)), name, b"\x00", value))


def _named(code: int, name: str, value: bytes) -> bytes:
    return element(code, name.encode(), value)


def text(name: str, value: str) -> bytes:
    """Return an element that is a string."""
    raw = value.encode("utf-8", "replace")
    return _named(0x02, name, _SIZE.pack(len(raw) + 1) + raw + b"\x00")


def nested(name: str, value: bytes) -> bytes:
    """Return an element that is a document."""
    return _named(0x03, name, value)


def int32(name: str, value: int) -> bytes:
    """Return an element that is an int32."""
    return _named(0x10, name, _SIZE.pack(value))


def _request(value: int) -> bytes:
    """Return the element that names a request: an int32, or an int64 if it needs that."""
    if _INT32_MIN <= value <= _INT32_MAX:
        return int32("rID", value)
    return _named(0x12, "rID", _LONG.pack(value))


def truth(name: str, value: bool) -> bytes:  # noqa: FBT001  # the value itself
    """Return an element that is a boolean."""
    return _named(0x08, name, bytes((value,)))


_NULL_RESULT: Final = _named(0x0A, "result", b"")


def wrapped(data: bytes) -> bytes:
    """Return the event {data: binary} for bytes that are no document."""
    return document(_named(_BINARY, "data", _SIZE.pack(len(data)) + b"\x00"), data)


def framed(frame_type: str, *elements: bytes) -> bytes:
    """Return a frame."""
    return document(text("type", frame_type), nested("frame", document(*elements)))


_OK: Final = framed(RESPONSE, int32("rID", 0), truth("ok", value=True))
_OK_HEAD, _OK_TAIL = _OK[: _OK.index(b"rID\0") + 4], _OK[_OK.index(b"rID\0") + 8 :]


def stored(request_id: int) -> bytes:
    """Return the RESPONSE to a request that is done."""
    if _INT32_MIN <= request_id <= _INT32_MAX:
        return _OK_HEAD + _SIZE.pack(request_id) + _OK_TAIL
    return framed(RESPONSE, _request(request_id), truth("ok", value=True))


def made(request_id: int, *, existed: bool) -> bytes:
    """Return the RESPONSE to a CREATECHANNEL: there is a channel now."""
    exists = truth("exists", value=existed)
    return framed(RESPONSE, _request(request_id), truth("ok", value=True), exists)


def found(request_id: int, document: bytes | None) -> bytes:
    """Return the RESPONSE to a FINDBYID, with a document or null for none."""
    result = _NULL_RESULT if document is None else nested("result", document)
    return framed(RESPONSE, _request(request_id), truth("ok", value=True), result)


def connected(request_id: int | None) -> bytes:
    """Return the RESPONSE to a CONNECT that is accepted."""
    return framed(RESPONSE, *_asked(request_id), truth("ok", value=True))


def subscribed(request_id: int, subscription: int) -> bytes:
    """Return the SUBRESPONSE to a SUBSCRIBE that is accepted."""
    return framed(
        "SUBRESPONSE",
        _request(request_id),
        truth("ok", value=True),
        int32("subID", subscription),
    )


def refused(
    frame_type: str,
    request_id: int | None,
    code: Code,
    reason: str,
    *,
    as_text: bool,
    asked: str = "",
) -> bytes:
    """Return the answer to a request that is refused.

    Args:
        frame_type: RESPONSE or SUBRESPONSE.
        request_id: The request; None if it names none.
        code: Which error.
        reason: The same in words.
        as_text: Whether the number is a string, as the page has it, or an int32.
        asked: The type of the request.
    """
    exists = (truth("exists", value=False),) if asked in TELL_EXISTS else ()
    failure = _failure(code, reason, as_text=as_text)
    return framed(frame_type, *_asked(request_id), *failure, *exists)


def no_result(query: int, code: Code, reason: str, *, as_text: bool) -> bytes:
    """Return the one QUERYRESULT of a query that is refused."""
    return framed(
        QUERYRESULT,
        int32("queryID", query),
        *_failure(code, reason, as_text=as_text),
        _NULL_RESULT,
        truth("last", value=True),
    )


def result(query: int, found: bytes | None, *, is_last: bool) -> bytes:
    """Return a QUERYRESULT with a document, or with null for none."""
    return framed(
        QUERYRESULT,
        int32("queryID", query),
        truth("ok", value=True),
        _NULL_RESULT if found is None else nested("result", found),
        truth("last", value=is_last),
    )


def query_taken(query: int) -> bytes:
    """Return the QUERYRESPONSE to a query whose results follow."""
    return framed(QUERYRESPONSE, int32("queryID", query), truth("ok", value=True))


def query_refused(query: int, code: Code, reason: str, *, as_text: bool) -> bytes:
    """Return the QUERYRESPONSE to a query that is refused."""
    return framed(QUERYRESPONSE, int32("queryID", query), *_failure(code, reason, as_text=as_text))


def _asked(request_id: int | None) -> tuple[bytes, ...]:
    return () if request_id is None else (_request(request_id),)


def _failure(code: Code, reason: str, *, as_text: bool) -> tuple[bytes, ...]:
    number = text("errCode", str(int(code))) if as_text else int32("errCode", code)
    return truth("ok", value=False), number, text("errMsg", reason)


_EMPTY: Final = document()
_RECEV: Final = framed(
    "RECEV",
    int32("subID", 0),
    _named(0x12, "timestamp", bytes(8)),
    _named(0x12, "pos", bytes(8)),
    nested("event", _EMPTY),
)
_AROUND: Final = len(_RECEV) - len(_EMPTY)
_INNER_AT: Final = _RECEV.index(b"frame\0") + 6
_INNER_AROUND: Final = len(_RECEV) - _INNER_AT - 1 - len(_EMPTY)
_HEAD: Final = struct.Struct(f"<i{_INNER_AT - 4}si7si11sq5sq7s")
_BEFORE: Final = (
    _RECEV[4:_INNER_AT],
    b"\x10subID\0",
    b"\x12timestamp\0",
    b"\x12pos\0",
    b"\x03event\0",
)
RECEV_BYTES: Final = _AROUND
"""Bytes of a RECEV around its event."""


def received(subscription: int, timestamp_ms: int, position: int, event: bytes) -> bytes:
    """Return the RECEV of an event."""
    size = len(event)
    before, name_1, name_2, name_3, name_4 = _BEFORE
    head = _HEAD.pack(
        _AROUND + size,
        before,
        _INNER_AROUND + size,
        name_1,
        subscription,
        name_2,
        timestamp_ms,
        name_3,
        position,
        name_4,
    )
    return b"".join((head, event, b"\0\0"))
