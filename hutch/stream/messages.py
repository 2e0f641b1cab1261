"""Every message of the protocol: a frozen dataclass whose fields, in order, are its bytes.

The frame's size, key, version and correlation id are not here; the codec adds them. Requests
come first, in the order of their keys, then replies. `commands.py` says which class belongs to
which command and version.

Source: RabbitMQ stream protocol, Commands. Shapes that differ from it were observed on RabbitMQ
4.3, and their classes say so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final

from hutch.stream import wire_types
from hutch.stream.codes import ResponseCode
from hutch.stream.layout import FrameLayout
from hutch.stream.offsets import NONE, OffsetSpec, OffsetType, at_offset
from hutch.stream.wire_types import STRING_TYPE, FixedNumber

STARTING_TYPES: Final = frozenset(OffsetType) - {OffsetType.NONE}
CODES: Final = {int(code): code for code in ResponseCode}
TEXT_COLUMNS: Final = 75
PARTITIONS_MAX: Final = 16_384
"""More partitions than any setting allows in a CreateSuperStream; longer lists are not read."""

LATE_BYTES: Final = 16 * 1024
"""Lists of names above this size are not read in one go: a frame of 1 MiB may hold 260,000."""


def code_of(number: int) -> int:
    """Return the ResponseCode of a number, or the number itself if there is none."""
    return CODES.get(number, number)


U8 = Annotated[int, FixedNumber("u8", "B", 0)]
I16 = Annotated[int, FixedNumber("i16", "h", 0)]
U16 = Annotated[int, wire_types.U16_TYPE]
U32 = Annotated[int, wire_types.U32_TYPE]
U64 = Annotated[int, wire_types.U64_TYPE]
Truth = Annotated[bool, FixedNumber("u8", "?", zero=False)]
Code = Annotated[int, FixedNumber("u16", "H", 0, code_of)]
String = Annotated[str, STRING_TYPE]
NullableBytes = Annotated[bytes | None, wire_types.NullableBytes()]
Body = Annotated[bytes, wire_types.Remainder()]
Strings = Annotated[tuple[str, ...], wire_types.Rest(STRING_TYPE)]
CountedStrings = Annotated[tuple[str, ...], wire_types.Counted(STRING_TYPE, PARTITIONS_MAX)]
Properties = Annotated[Mapping[str, str], wire_types.StringMap()]
# RabbitMQ takes one to three leftover bytes of a request to mean "no properties".
TrailingProperties = Annotated[
    Mapping[str, str],
    wire_types.Trailing(wire_types.StringMap(), slack_bytes=wire_types.COUNT_BYTES - 1),
]
TrailingReplyProperties = Annotated[Mapping[str, str], wire_types.Trailing(wire_types.StringMap())]
TrailingShortBytes = Annotated[bytes, wire_types.Trailing(wire_types.ShortBytes())]
Statistics = Annotated[Mapping[str, int], wire_types.NumberMap()]
Offset = Annotated[OffsetSpec, wire_types.Offset(STARTING_TYPES, zero=at_offset(0))]
# RabbitMQ ignores bytes behind the type of an answer that has no number.
OffsetOrNone = Annotated[
    OffsetSpec, wire_types.Offset(frozenset(OffsetType), zero=NONE, is_last=True)
]
PlainOffset = Annotated[int, wire_types.PlainOffset()]


class Message:
    """Base of all messages; `str` gives one line for a log, cut at 75 characters."""

    __slots__ = ()

    def __str__(self) -> str:
        text = repr(self)
        return text if len(text) <= TEXT_COLUMNS else text[: TEXT_COLUMNS - 1] + "…"


# ---- requests and one-way commands ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeclarePublisher(Message):
    """Names a publisher of a stream on this connection; an empty reference: no deduplication."""

    publisher_id: U8
    reference: String
    stream: String


@dataclass(frozen=True, slots=True)
class KernelBody(Message):
    """A body that no layout reads: the bytes behind key and version of a Publish or a Deliver."""

    body: Body = field(repr=False)


@dataclass(frozen=True, slots=True)
class PublishConfirm(Message):
    """Says that the entries with these publishing ids are stored."""

    publisher_id: U8
    publishing_ids: Annotated[tuple[int, ...], wire_types.Counted(wire_types.U64_TYPE)]


@dataclass(frozen=True, slots=True)
class PublishingError(Message):
    """One refused publishing id, inside a PublishError."""

    publishing_id: U64
    code: Code


@dataclass(frozen=True, slots=True)
class PublishError(Message):
    """Says which entries are not stored, each with its code."""

    publisher_id: U8
    errors: Annotated[tuple[PublishingError, ...], wire_types.Counted(FrameLayout(PublishingError))]


@dataclass(frozen=True, slots=True)
class QueryPublisherSequence(Message):
    """Asks for the last publishing id stored under a publisher's reference."""

    reference: String
    stream: String


@dataclass(frozen=True, slots=True)
class DeletePublisher(Message):
    """Forgets a publisher of this connection."""

    publisher_id: U8


@dataclass(frozen=True, slots=True)
class Subscribe(Message):
    """Starts a subscription at an offset with some credit (chunks, not records)."""

    subscription_id: U8
    stream: String
    offset: Offset
    credit: U16
    properties: TrailingProperties


@dataclass(frozen=True, slots=True)
class Credit(Message):
    """Adds credit (chunks) to a subscription; a negative number takes some away.

    Signed as observed; the protocol page says unsigned.
    """

    subscription_id: U8
    credit: I16


@dataclass(frozen=True, slots=True)
class StoreOffset(Message):
    """Stores a consumer's offset under a reference; never answered."""

    reference: String
    stream: String
    offset: U64


@dataclass(frozen=True, slots=True)
class QueryOffset(Message):
    """Asks for the offset stored under a reference."""

    reference: String
    stream: String


@dataclass(frozen=True, slots=True)
class Unsubscribe(Message):
    """Ends a subscription."""

    subscription_id: U8


@dataclass(frozen=True, slots=True)
class CreateStream(Message):
    """Creates a stream with arguments (`max-age`, `max-length-bytes` and others)."""

    stream: String
    arguments: Properties


@dataclass(frozen=True, slots=True)
class DeleteStream(Message):
    """Deletes a stream."""

    stream: String


@dataclass(frozen=True, slots=True)
class Metadata(Message):
    """Asks where streams live.

    A long list of names is read while it is iterated; iteration raises MalformedFrame at a bad one.
    """

    streams: Annotated[Iterable[str], wire_types.Rest(STRING_TYPE, late_bytes=LATE_BYTES)]


@dataclass(frozen=True, slots=True)
class MetadataUpdate(Message):
    """Tells a connection that uses a stream that the stream has gone or moved."""

    code: Code
    stream: String


@dataclass(frozen=True, slots=True)
class PeerProperties(Message):
    """Opens the conversation with the properties that the client says of itself."""

    properties: Properties


@dataclass(frozen=True, slots=True)
class SaslHandshake(Message):
    """Asks for the mechanisms of authentication."""


@dataclass(frozen=True, slots=True)
class SaslAuthenticate(Message):
    """Authenticates, or after Open renews the secret.

    `data` may hold the secret, and is not shown.
    """

    mechanism: String
    data: NullableBytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Tune(Message):
    """Proposes and agrees limits: frame size in bytes (0: none), heartbeat in seconds (0: none)."""

    frame_bytes_max: U32
    heartbeat_s: U32


@dataclass(frozen=True, slots=True)
class Open(Message):
    """Enters a virtual host."""

    virtual_host: String


@dataclass(frozen=True, slots=True)
class Close(Message):
    """Announces the end of the connection; any code is legal."""

    code: Code
    reason: String


@dataclass(frozen=True, slots=True)
class Heartbeat(Message):
    """Shows that the sender lives."""


@dataclass(frozen=True, slots=True)
class Route(Message):
    """Asks which streams of a super stream a routing key leads to."""

    routing_key: String
    super_stream: String


@dataclass(frozen=True, slots=True)
class Partitions(Message):
    """Asks for the streams that make up a super stream."""

    super_stream: String


@dataclass(frozen=True, slots=True)
class ConsumerUpdate(Message):
    """Tells a member of a group that it becomes, or is no longer, the active consumer."""

    subscription_id: U8
    active: Truth


@dataclass(frozen=True, slots=True)
class CommandVersions(Message):
    """One command and the versions of it that the sender speaks."""

    key: U16
    version_min: U16
    version_max: U16


# Keys have 15 bits, so a longer list repeats itself; 1 MiB of them would take 0.4 s to read.
COMMAND_VERSIONS_BYTES_MAX: Final = 6 << 15
CommandVersionsList = Annotated[
    tuple[CommandVersions, ...],
    wire_types.Rest(FrameLayout(CommandVersions), COMMAND_VERSIONS_BYTES_MAX),
]


@dataclass(frozen=True, slots=True)
class ExchangeCommandVersions(Message):
    """Says which versions of which commands the client speaks, and asks the same."""

    commands: CommandVersionsList


@dataclass(frozen=True, slots=True)
class StreamStats(Message):
    """Asks for a stream's statistics."""

    stream: String


@dataclass(frozen=True, slots=True)
class CreateSuperStream(Message):
    """Creates a super stream; the n-th binding key leads to the n-th partition."""

    super_stream: String
    partitions: CountedStrings
    binding_keys: CountedStrings
    arguments: Properties


@dataclass(frozen=True, slots=True)
class DeleteSuperStream(Message):
    """Deletes a super stream and its partitions."""

    super_stream: String


@dataclass(frozen=True, slots=True)
class ResolveOffsetSpec(Message):
    """Asks at which offset a subscription would start.

    Observed; the protocol page does not have it yet.
    """

    stream: String
    offset: Offset
    properties: TrailingProperties


# ---- replies -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Status(Message):
    """The reply that is nothing but its code."""

    code: Code


OK: Final = Status(ResponseCode.OK)


@dataclass(frozen=True, slots=True)
class PublisherSequence(Message):
    """The last stored publishing id; 0 with code OK if nothing is stored under the reference."""

    code: Code
    sequence: U64


@dataclass(frozen=True, slots=True)
class CreditRefused(Message):
    """The reason why credit was refused; sent only then, and without a correlation id."""

    code: Code
    subscription_id: U8


@dataclass(frozen=True, slots=True)
class StoredOffset(Message):
    """The stored offset; 0 with any code but OK."""

    code: Code
    offset: U64


@dataclass(frozen=True, slots=True)
class Broker(Message):
    """One server, inside a MetadataReply; `reference` is its number there."""

    reference: U16
    host: String
    port: U32


@dataclass(frozen=True, slots=True)
class StreamMetadata(Message):
    """The brokers of one stream, by number; the leader is 0xFFFF if there is none."""

    stream: String
    code: Code
    leader: U16
    replicas: Annotated[tuple[int, ...], wire_types.Counted(wire_types.U16_TYPE)]


@dataclass(frozen=True, slots=True)
class MetadataReply(Message):
    """The places of streams. It has no code of its own: each stream has one."""

    brokers: Annotated[tuple[Broker, ...], wire_types.Counted(FrameLayout(Broker))]
    streams: Annotated[tuple[StreamMetadata, ...], wire_types.Counted(FrameLayout(StreamMetadata))]


@dataclass(frozen=True, slots=True)
class PeerPropertiesReply(Message):
    """The properties that the server says of itself."""

    code: Code
    properties: Properties


@dataclass(frozen=True, slots=True)
class SaslHandshakeReply(Message):
    """The mechanisms of authentication on offer."""

    code: Code
    mechanisms: Strings


@dataclass(frozen=True, slots=True)
class SaslAuthenticateReply(Message):
    """The outcome of a step of authentication; an empty challenge leaves no bytes.

    The challenge has a u16 size, as observed; the protocol page says i32.
    """

    code: Code
    challenge: TrailingShortBytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class OpenReply(Message):
    """Properties with this server's address; none if refused."""

    code: Code
    properties: TrailingReplyProperties


@dataclass(frozen=True, slots=True)
class StreamsReply(Message):
    """Names of streams: the answer to Route and Partitions."""

    code: Code
    streams: Strings


@dataclass(frozen=True, slots=True)
class ConsumerUpdateReply(Message):
    """The client's answer to a ConsumerUpdate: the place to read from, if it names one."""

    code: Code
    offset: OffsetOrNone


@dataclass(frozen=True, slots=True)
class CommandVersionsReply(Message):
    """The versions of commands that the server speaks."""

    code: Code
    commands: CommandVersionsList


@dataclass(frozen=True, slots=True)
class StreamStatsReply(Message):
    """A stream's statistics, by name."""

    code: Code
    statistics: Statistics


@dataclass(frozen=True, slots=True)
class ResolvedOffset(Message):
    """The offset of the chunk where reading would start; sent as type 4, on errors too."""

    code: Code
    offset: PlainOffset
