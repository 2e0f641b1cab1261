"""The table of frames: their types, the side that sends each, its fields, and what answers it.

Reading, the checks of fields, and writing follow from it.

Source: the mewbase wire protocol; names of types and fields that it leaves open are those of its
client of 2016.
"""

import enum
from dataclasses import dataclass
from typing import Final


class Sender(enum.Enum):
    """The side that sends a frame."""

    CLIENT = "client"
    SERVER = "server"


class Kind(enum.Enum):
    """Kinds of values. A number may be an int32, an int64 or a whole double."""

    BOOLEAN = "boolean"
    DOCUMENT = "document"
    INT32 = "int32"
    INT64 = "int64"
    ANY = "any"
    TEXT = "string"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a frame. One that is null counts as absent."""

    name: str
    kind: Kind
    meaning: str
    is_mandatory: bool = True


@dataclass(frozen=True, slots=True)
class Frame:
    """A type of frame.

    Attributes:
        aliases: Other names by which clients send it.
        answer: The type of the frame that answers it; '' if none does.
    """

    type: str
    sender: Sender
    meaning: str
    fields: tuple[Field, ...]
    answer: str = ""
    aliases: tuple[str, ...] = ()


def _optional(name: str, kind: Kind, meaning: str) -> Field:
    return Field(name, kind, meaning, is_mandatory=False)


RESPONSE: Final = "RESPONSE"
SUBRESPONSE: Final = "SUBRESPONSE"
QUERYRESULT: Final = "QUERYRESULT"
QUERYRESPONSE: Final = "QUERYRESPONSE"
CREATECHANNEL: Final = "CREATECHANNEL"
TELL_EXISTS: Final = frozenset((CREATECHANNEL, "CREATEBINDER"))
"""Types whose answer has `exists` in any case: the client of 2017 reads that first, and loses its
place in what it receives if there is none."""

_REQUEST_ID: Final = Field("rID", Kind.INT64, "names the request; its answer has the same")
_SUBSCRIPTION: Final = Field("subID", Kind.INT32, "the subscription")
_QUERY: Final = Field("queryID", Kind.INT32, "the query, unique on its connection")
_SESSION: Final = Field("sessID", Kind.INT32, "the producer, unique on its connection")
_OUTCOME: Final = (
    Field("ok", Kind.BOOLEAN, "true for success"),
    _optional("errCode", Kind.ANY, "the error's number: int32, or a string of it"),
    _optional("errMsg", Kind.TEXT, "the error in words"),
)

FRAMES: Final = (
    Frame(
        "CONNECT",
        Sender.CLIENT,
        "log in; before anything else",
        (
            Field("version", Kind.TEXT, "of the client: 0 or above, below 2"),
            _optional("username", Kind.TEXT, "the user"),
            _optional("password", Kind.TEXT, "its password"),
            _optional("authInfo", Kind.DOCUMENT, "`username` and `password` instead"),
            _optional("rID", Kind.INT64, "names the request"),
        ),
        RESPONSE,
    ),
    Frame(
        RESPONSE,
        Sender.SERVER,
        "the answer to a request",
        (
            _optional("rID", Kind.INT64, "the request; a CONNECT may have none"),
            *_OUTCOME,
            _optional("exists", Kind.BOOLEAN, "true if the channel was there before"),
            _optional("result", Kind.DOCUMENT, "the document; null if there is none"),
        ),
    ),
    Frame(
        "PUB",
        Sender.CLIENT,
        "publish an event; answered when it is stored",
        (
            Field("channel", Kind.TEXT, "the channel"),
            Field("event", Kind.DOCUMENT, "the event"),
            _REQUEST_ID,
            _optional("sessID", Kind.INT32, "the producer whose transaction it belongs to"),
        ),
        RESPONSE,
        aliases=("PUBLISH", "EMIT"),
    ),
    Frame("STARTTX", Sender.CLIENT, "begin a transaction", (_SESSION, _REQUEST_ID), RESPONSE),
    Frame("COMMITTX", Sender.CLIENT, "commit it", (_SESSION, _REQUEST_ID), RESPONSE),
    Frame("ABORTTX", Sender.CLIENT, "drop it", (_SESSION, _REQUEST_ID), RESPONSE),
    Frame(
        "SUBSCRIBE",
        Sender.CLIENT,
        "have the events of a channel delivered",
        (
            Field("channel", Kind.TEXT, "the channel"),
            _REQUEST_ID,
            _optional("startPos", Kind.INT64, "position of the first event; -1 for none given"),
            _optional(
                "startTimestamp", Kind.INT64, "time of the first event, in ms; 0 for none given"
            ),
            _optional("durableID", Kind.TEXT, "the durable subscription to begin or resume"),
            _optional("matcher", Kind.DOCUMENT, "fields that wanted events have"),
        ),
        SUBRESPONSE,
    ),
    Frame(
        SUBRESPONSE,
        Sender.SERVER,
        "the answer to a SUBSCRIBE",
        (
            _REQUEST_ID,
            *_OUTCOME,
            _optional("subID", Kind.INT32, "the subscription, if it was made"),
        ),
    ),
    Frame(
        "UNSUBSCRIBE",
        Sender.CLIENT,
        "end a subscription, and forget the place of a durable one",
        (_SUBSCRIPTION, _REQUEST_ID),
        RESPONSE,
    ),
    Frame("SUBCLOSE", Sender.CLIENT, "end a subscription", (_SUBSCRIPTION, _REQUEST_ID), RESPONSE),
    Frame(
        "RECEV",
        Sender.SERVER,
        "an event that is delivered",
        (
            _SUBSCRIPTION,
            Field("timestamp", Kind.INT64, "when it was stored, in ms since 1970"),
            Field("pos", Kind.INT64, "its position in the channel; the first is 0"),
            Field("event", Kind.DOCUMENT, "the event, byte for byte"),
        ),
    ),
    Frame(
        "ACKEV",
        Sender.CLIENT,
        "acknowledge events",
        (
            _SUBSCRIPTION,
            _optional(
                "pos",
                Kind.INT64,
                "this one and all before it; without it all that were sent, or the oldest of a "
                "durable subscription",
            ),
            _optional("bytes", Kind.ANY, "the event's size; ignored"),
        ),
    ),
    Frame(
        "QUERY",
        Sender.CLIENT,
        "read documents of a binder",
        (
            _QUERY,
            _optional("binder", Kind.TEXT, "the binder"),
            _optional("matcher", Kind.DOCUMENT, "fields that wanted documents have"),
            _optional("docID", Kind.TEXT, "the one document that is wanted"),
            _optional("rID", Kind.INT64, "names the request"),
        ),
        QUERYRESULT,
    ),
    Frame(
        QUERYRESPONSE,
        Sender.SERVER,
        "comes before the results of a query, for clients that want it",
        (_QUERY, *_OUTCOME),
    ),
    Frame(
        QUERYRESULT,
        Sender.SERVER,
        "one result of a query",
        (
            _QUERY,
            *_OUTCOME,
            _optional("result", Kind.DOCUMENT, "the document; null if there is none"),
            Field("last", Kind.BOOLEAN, "true for the last result"),
        ),
    ),
    Frame(
        "QUERYACK",
        Sender.CLIENT,
        "acknowledge a result",
        (_QUERY, _optional("bytes", Kind.ANY, "the result's size; ignored")),
    ),
    Frame(
        CREATECHANNEL,
        Sender.CLIENT,
        "make a channel; a client of 2017 sends it",
        (Field("name", Kind.TEXT, "the channel"), _REQUEST_ID),
        RESPONSE,
    ),
    Frame(
        "FINDBYID",
        Sender.CLIENT,
        "read one document of a binder; a client of 2017 sends it",
        (
            Field("binder", Kind.TEXT, "the binder"),
            _optional("dodID", Kind.TEXT, "the document, as that client spells it"),
            _optional("docID", Kind.TEXT, "the same, as it is meant"),
            _REQUEST_ID,
        ),
        RESPONSE,
    ),
    Frame("PING", Sender.CLIENT, "show that the client lives", ()),
)

REQUESTS: Final = {
    name.encode(): frame
    for frame in FRAMES
    if frame.sender is Sender.CLIENT
    for name in (frame.type, *frame.aliases)
}
"""Frames that a client may send, by their names on the wire."""
