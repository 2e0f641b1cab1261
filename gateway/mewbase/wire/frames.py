"""The table of frames: their types, the side that sends each, its fields, and its answer.

Reading, the checks of fields, and writing follow from it.

Source: the mewbase wire protocol; names of types and fields that it leaves open are those of its
client of 2016.
"""

import enum
from dataclasses import dataclass
from typing import Final


class SendingSide(enum.Enum):
    """The side that sends a frame."""

    CLIENT = "client"
    SERVER = "server"


class ValueKind(enum.Enum):
    """Kinds of values. A number may be an int32, an int64 or a whole double."""

    BOOLEAN = "boolean"
    DOCUMENT = "document"
    INT32 = "int32"
    INT64 = "int64"
    ANY = "any"
    TEXT = "string"


@dataclass(frozen=True, slots=True)
class FrameField:
    """A field of a frame. One that is null counts as absent."""

    name: str
    kind: ValueKind
    meaning: str
    is_mandatory: bool = True


@dataclass(frozen=True, slots=True)
class FrameType:
    """A type of frame.

    Attributes:
        aliases: Other names by which clients send it.
        answer: The type of the frame that answers it; '' if none does.
    """

    type: str
    sender: SendingSide
    meaning: str
    fields: tuple[FrameField, ...]
    answer: str = ""
    aliases: tuple[str, ...] = ()


def _optional(name: str, kind: ValueKind, meaning: str) -> FrameField:
    return FrameField(name, kind, meaning, is_mandatory=False)


RESPONSE: Final = "RESPONSE"
SUBRESPONSE: Final = "SUBRESPONSE"
QUERYRESULT: Final = "QUERYRESULT"
QUERYRESPONSE: Final = "QUERYRESPONSE"
CREATECHANNEL: Final = "CREATECHANNEL"
TELL_EXISTS: Final = frozenset((CREATECHANNEL, "CREATEBINDER"))
"""Types whose answer has `exists` in any case: the client of 2017 reads that first, and loses its
place in what it receives if there is none."""

_REQUEST_ID: Final = FrameField(
    "rID", ValueKind.INT64, "names the request; its answer has the same"
)
_SUBSCRIPTION: Final = FrameField("subID", ValueKind.INT32, "the subscription")
_QUERY: Final = FrameField("queryID", ValueKind.INT32, "the query, unique on its connection")
_SESSION: Final = FrameField("sessID", ValueKind.INT32, "the producer, unique on its connection")
_OUTCOME: Final = (
    FrameField("ok", ValueKind.BOOLEAN, "true for success"),
    _optional("errCode", ValueKind.ANY, "the error's number: int32, or a string of it"),
    _optional("errMsg", ValueKind.TEXT, "the error in words"),
)

FRAMES: Final = (
    FrameType(
        "CONNECT",
        SendingSide.CLIENT,
        "log in; before anything else",
        (
            FrameField("version", ValueKind.TEXT, "of the client: 0 or above, below 2"),
            _optional("username", ValueKind.TEXT, "the user"),
            _optional("password", ValueKind.TEXT, "its password"),
            _optional("authInfo", ValueKind.DOCUMENT, "`username` and `password` instead"),
            _optional("rID", ValueKind.INT64, "names the request"),
        ),
        RESPONSE,
    ),
    FrameType(
        RESPONSE,
        SendingSide.SERVER,
        "the answer to a request",
        (
            _optional("rID", ValueKind.INT64, "the request; a CONNECT may have none"),
            *_OUTCOME,
            _optional("exists", ValueKind.BOOLEAN, "true if the channel was there before"),
            _optional("result", ValueKind.DOCUMENT, "the document; null if there is none"),
        ),
    ),
    FrameType(
        "PUB",
        SendingSide.CLIENT,
        "publish an event; answered when it is stored",
        (
            FrameField("channel", ValueKind.TEXT, "the channel"),
            FrameField("event", ValueKind.DOCUMENT, "the event"),
            _REQUEST_ID,
            _optional("sessID", ValueKind.INT32, "the producer whose transaction it belongs to"),
        ),
        RESPONSE,
        aliases=("PUBLISH", "EMIT"),
    ),
    FrameType(
        "STARTTX", SendingSide.CLIENT, "begin a transaction", (_SESSION, _REQUEST_ID), RESPONSE
    ),
    FrameType("COMMITTX", SendingSide.CLIENT, "commit it", (_SESSION, _REQUEST_ID), RESPONSE),
    FrameType("ABORTTX", SendingSide.CLIENT, "drop it", (_SESSION, _REQUEST_ID), RESPONSE),
    FrameType(
        "SUBSCRIBE",
        SendingSide.CLIENT,
        "have the events of a channel delivered",
        (
            FrameField("channel", ValueKind.TEXT, "the channel"),
            _REQUEST_ID,
            _optional(
                "startPos", ValueKind.INT64, "position of the first event; -1 for none given"
            ),
            _optional(
                "startTimestamp",
                ValueKind.INT64,
                "time of the first event, in ms; 0 for none given",
            ),
            _optional("durableID", ValueKind.TEXT, "the durable subscription to begin or resume"),
            _optional("matcher", ValueKind.DOCUMENT, "fields that wanted events have"),
        ),
        SUBRESPONSE,
    ),
    FrameType(
        SUBRESPONSE,
        SendingSide.SERVER,
        "the answer to a SUBSCRIBE",
        (
            _REQUEST_ID,
            *_OUTCOME,
            _optional("subID", ValueKind.INT32, "the subscription, if it was made"),
        ),
    ),
    FrameType(
        "UNSUBSCRIBE",
        SendingSide.CLIENT,
        "end a subscription, and forget the place of a durable one",
        (_SUBSCRIPTION, _REQUEST_ID),
        RESPONSE,
    ),
    FrameType(
        "SUBCLOSE", SendingSide.CLIENT, "end a subscription", (_SUBSCRIPTION, _REQUEST_ID), RESPONSE
    ),
    FrameType(
        "RECEV",
        SendingSide.SERVER,
        "an event that is delivered",
        (
            _SUBSCRIPTION,
            FrameField("timestamp", ValueKind.INT64, "when it was stored, in ms since 1970"),
            FrameField("pos", ValueKind.INT64, "its position in the channel; the first is 0"),
            FrameField("event", ValueKind.DOCUMENT, "the event, byte for byte"),
        ),
    ),
    FrameType(
        "ACKEV",
        SendingSide.CLIENT,
        "acknowledge events",
        (
            _SUBSCRIPTION,
            _optional(
                "pos",
                ValueKind.INT64,
                "this one and all before it; without it all that were sent, or the oldest of a "
                "durable subscription",
            ),
            _optional("bytes", ValueKind.ANY, "the event's size; ignored"),
        ),
    ),
    FrameType(
        "QUERY",
        SendingSide.CLIENT,
        "read documents of a binder",
        (
            _QUERY,
            _optional("binder", ValueKind.TEXT, "the binder"),
            _optional("matcher", ValueKind.DOCUMENT, "fields that wanted documents have"),
            _optional("docID", ValueKind.TEXT, "the one document that is wanted"),
            _optional("rID", ValueKind.INT64, "names the request"),
        ),
        QUERYRESULT,
    ),
    FrameType(
        QUERYRESPONSE,
        SendingSide.SERVER,
        "comes before the results of a query, for clients that want it",
        (_QUERY, *_OUTCOME),
    ),
    FrameType(
        QUERYRESULT,
        SendingSide.SERVER,
        "one result of a query",
        (
            _QUERY,
            *_OUTCOME,
            _optional("result", ValueKind.DOCUMENT, "the document; null if there is none"),
            FrameField("last", ValueKind.BOOLEAN, "true for the last result"),
        ),
    ),
    FrameType(
        "QUERYACK",
        SendingSide.CLIENT,
        "acknowledge a result",
        (_QUERY, _optional("bytes", ValueKind.ANY, "the result's size; ignored")),
    ),
    FrameType(
        CREATECHANNEL,
        SendingSide.CLIENT,
        "make a channel; a client of 2017 sends it",
        (FrameField("name", ValueKind.TEXT, "the channel"), _REQUEST_ID),
        RESPONSE,
    ),
    FrameType(
        "FINDBYID",
        SendingSide.CLIENT,
        "read one document of a binder; a client of 2017 sends it",
        (
            FrameField("binder", ValueKind.TEXT, "the binder"),
            _optional("dodID", ValueKind.TEXT, "the document, as that client spells it"),
            _optional("docID", ValueKind.TEXT, "the same, as it is meant"),
            _REQUEST_ID,
        ),
        RESPONSE,
    ),
    FrameType("PING", SendingSide.CLIENT, "show that the client lives", ()),
)

REQUESTS: Final = {
    name.encode(): frame
    for frame in FRAMES
    if frame.sender is SendingSide.CLIENT
    for name in (frame.type, *frame.aliases)
}
"""Frames that a client may send, by their names on the wire."""
