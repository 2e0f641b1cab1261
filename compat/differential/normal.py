"""Answers in words that two servers must have in common.

What is left out, and why it may differ:

- the values of peer properties (except the version's first two numbers) and keys besides
  RabbitMQ's own: each server names itself;
- the server's own port where it is advertised: the two listen on different ones;
- the order of SASL mechanisms: RabbitMQ's is not fixed;
- the order of more than 32 streams in the answer to Metadata: RabbitMQ's is then that of hashes
  (of fewer it is that of their names, backwards, which is compared);
- timestamp and epoch of chunks: time passes, and the epoch counts restarts;
- how records are grouped into chunks and ids into confirms, unless a script says that each chunk
  is one entry: it depends on what a server had collected at that instant;
- the order among confirms and deliveries that come with no other frame between them: they are
  made by different parts of a server;
- the order among MetadataUpdates behind one another: the partitions of a super stream are deleted
  beside each other, and each tells its own end;
- names that tell runs apart: they are put back to the placeholder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from compat.differential import chunks
from compat.differential.frames import RUN
from compat.differential.reading import CutShort, Fields, head

PEER_PROPERTIES = (
    "cluster_name",
    "copyright",
    "information",
    "platform",
    "product",
    "version",
)
# Up to this many keys an Erlang map is sorted.
SMALL_MAP = 32
RESPONSE_BIT = 0x8000
CONFIRM = 0x03
DELIVER = 0x08
METADATA_UPDATE = 0x10
CREDIT_ERROR = 0x8009
HEARTBEAT = 0x17
FIN = "FIN"
NAMES = {
    0x01: "declare_publisher", 0x02: "publish", 0x03: "publish_confirm", 0x04: "publish_error",
    0x05: "query_publisher_sequence", 0x06: "delete_publisher", 0x07: "subscribe",
    0x08: "deliver", 0x09: "credit", 0x0A: "store_offset", 0x0B: "query_offset",
    0x0C: "unsubscribe", 0x0D: "create_stream", 0x0E: "delete_stream", 0x0F: "metadata",
    0x10: "metadata_update", 0x11: "peer_properties", 0x12: "sasl_handshake",
    0x13: "sasl_authenticate", 0x14: "tune", 0x15: "open", 0x16: "close", 0x17: "heartbeat",
    0x18: "route", 0x19: "partitions", 0x1A: "consumer_update",
    0x1B: "exchange_command_versions", 0x1C: "stream_stats", 0x1D: "create_super_stream",
    0x1E: "delete_super_stream", 0x1F: "resolve_offset_spec",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Arrived:
    """One frame that came, taken apart as far as the comparison needs it.

    Attributes:
        key: Its key, with the response bit.
        text: What is compared, of frames other than confirms and deliveries.
        publisher_id: Of a confirm.
        confirmed: Publishing ids of a confirm.
        delivery: Of a Deliver.
    """

    key: int
    text: str = ""
    publisher_id: int = 0
    confirmed: tuple[int, ...] = ()
    delivery: chunks.Delivery | None = None

    @property
    def is_grouped_freely(self) -> bool:
        """Return whether its place among its like may differ."""
        return self.key in (CONFIRM, DELIVER)


def arrived(frame: bytes, *, port: int, run: bytes) -> Arrived:
    """Take a frame apart.

    Args:
        frame: Without its size.
        port: The stream port of the server that sent it.
        run: What stands in stream names for this run.
    """
    frame = frame.replace(run, RUN)
    if len(frame) < 4:  # noqa: PLR2004 - key and version
        return Arrived(0, f"a frame of {frame.hex() or 'no bytes'}")
    key, version, fields = head(frame)
    name = NAMES.get(key & ~RESPONSE_BIT, "unknown")
    start = f"{name}{' answer' if key & RESPONSE_BIT else ''}{f' v{version}' * (version != 1)}"
    try:
        if key == DELIVER:
            return Arrived(key, delivery=chunks.delivery(version, fields))
        if key == CONFIRM:
            publisher_id = fields.number(1)
            ids = tuple(fields.number(8) for _ in range(fields.number(4)))
            fields.require_done()
            return Arrived(key, publisher_id=publisher_id, confirmed=ids)
        text = READERS.get(key, status)(fields, port)
        fields.require_done()
    except CutShort as error:
        return Arrived(key, f"{start}, malformed ({error}): {frame.hex()}")
    return Arrived(key, f"{start} {text}".rstrip())


def status(fields: Fields, _: int) -> str:
    """Read an answer of correlation id and code; what more there is comes as hex."""
    text = f"corr {fields.number(4)} code {fields.number(2)}"
    return text if fields.is_done else f"{text} {fields.rest().hex()}"


def peer_properties(fields: Fields, port: int) -> str:
    """Read the answer to PeerProperties: which of RabbitMQ's keys it has, and the version."""
    text = status_only(fields, port)
    found = dict(fields.pairs())
    keys = [key for key in PEER_PROPERTIES if found.get(key)]
    numbers = found.get("version", "").split(".")[:2]
    return f"{text} keys {', '.join(keys)}; version {'.'.join(numbers)}"


def mechanisms(fields: Fields, port: int) -> str:
    """Read the answer to SaslHandshake."""
    text = status_only(fields, port)
    offered = fields.texts()
    return f"{text} offers {sorted(offered)}"


def status_only(fields: Fields, _: int) -> str:
    """Read correlation id and code, which more follows."""
    return f"corr {fields.number(4)} code {fields.number(2)}"


def opened(fields: Fields, port: int) -> str:
    """Read the answer to Open."""
    text = status_only(fields, port)
    if fields.is_done:
        return text
    pairs = [(key, "PORT" if value == str(port) else value) for key, value in fields.pairs()]
    return f"{text} {pairs}"


def metadata(fields: Fields, port: int) -> str:
    """Read the answer to Metadata."""
    corr = fields.number(4)
    brokers = []
    for _ in range(fields.number(4)):
        reference, host, its_port = fields.number(2), fields.text(), fields.number(4)
        brokers.append(f"{reference}: {host}:{'PORT' if its_port == port else its_port}")
    streams = []
    for _ in range(fields.number(4)):
        name, code, leader = fields.text(), fields.number(2), fields.number(2)
        replicas = [fields.number(2) for _ in range(fields.number(4))]
        streams.append(f"{name!r} code {code} leader {leader:#x} replicas {replicas}")
    if len(streams) > SMALL_MAP:
        streams.sort()
    return f"corr {corr} brokers {brokers} streams {streams}"


def streams(fields: Fields, port: int) -> str:
    """Read the answer to Route or Partitions."""
    return f"{status_only(fields, port)} {fields.texts()}"


def command_versions(fields: Fields, port: int) -> str:
    """Read the answer to ExchangeCommandVersions."""
    text = status_only(fields, port)
    rows = [
        f"{fields.number(2):#04x} {fields.number(2)}..{fields.number(2)}"
        for _ in range(fields.number(4))
    ]
    return f"{text} {rows}"


def statistics(fields: Fields, port: int) -> str:
    """Read the answer to StreamStats."""
    text = status_only(fields, port)
    rows = [f"{fields.text()} {fields.number(8, signed=True)}" for _ in range(fields.number(4))]
    return f"{text} {rows}"


def resolved(fields: Fields, port: int) -> str:
    """Read the answer to ResolveOffsetSpec."""
    return f"{status_only(fields, port)} type {fields.number(2)} offset {fields.number(8)}"


def with_number(fields: Fields, port: int) -> str:
    """Read an answer of a code and a number."""
    return f"{status_only(fields, port)} value {fields.number(8)}"


def publish_error(fields: Fields, _: int) -> str:
    """Read a PublishError."""
    publisher_id = fields.number(1)
    rows = [f"{fields.number(8)}: {fields.number(2)}" for _ in range(fields.number(4))]
    return f"publisher {publisher_id} {rows}"


def credit_error(fields: Fields, _: int) -> str:
    """Read the refusal of a Credit."""
    return f"code {fields.number(2)} subscription {fields.number(1)}"


def metadata_update(fields: Fields, _: int) -> str:
    """Read a MetadataUpdate."""
    return f"code {fields.number(2)} stream {fields.text()!r}"


def server_close(fields: Fields, _: int) -> str:
    """Read the server's Close."""
    return f"corr {fields.number(4)} code {fields.number(2)} {fields.text()!r}"


def consumer_update(fields: Fields, _: int) -> str:
    """Read a ConsumerUpdate."""
    return f"corr {fields.number(4)} subscription {fields.number(1)} active {fields.number(1)}"


def tune(fields: Fields, _: int) -> str:
    """Read the server's Tune."""
    return f"frame_max {fields.number(4)} heartbeat {fields.number(4)}"


def nothing(_: Fields, __: int) -> str:
    """Read a frame that has no fields."""
    return ""


READERS: dict[int, Callable[[Fields, int], str]] = {
    0x04: publish_error,
    0x10: metadata_update,
    0x14: tune,
    0x16: server_close,
    0x17: nothing,
    0x1A: consumer_update,
    0x8005: with_number,
    CREDIT_ERROR: credit_error,
    0x800B: with_number,
    0x800F: metadata,
    0x8011: peer_properties,
    0x8012: mechanisms,
    0x8015: opened,
    0x8018: streams,
    0x8019: streams,
    0x801B: command_versions,
    0x801C: statistics,
    0x801F: resolved,
}


def words(
    events: Sequence[Arrived | str], *, has_exact_chunks: bool, has_free_offsets: bool = False
) -> list[str]:
    """Return what is compared: a line an event, runs of confirms and deliveries put together.

    Args:
        events: Frames, and plain words for what is no frame, in the order in which they came.
        has_exact_chunks: Give each Deliver a line of its own, with its header.
        has_free_offsets: Leave out the offsets of records.
    """
    lines: list[str] = []
    run: list[Arrived] = []
    for event in [*in_order_of_names(events), ""]:
        if isinstance(event, Arrived) and event.is_grouped_freely:
            run.append(event)
            continue
        lines += run_in_words(
            run, has_exact_chunks=has_exact_chunks, has_free_offsets=has_free_offsets
        )
        run = []
        if event:
            lines.append(event if isinstance(event, str) else event.text)
    return lines


def in_order_of_names(events: Sequence[Arrived | str]) -> list[Arrived | str]:
    """Return events with MetadataUpdates that follow one another sorted."""

    def is_update(event: Arrived | str) -> bool:
        return isinstance(event, Arrived) and event.key == METADATA_UPDATE

    ordered: list[Arrived | str] = []
    for are_updates, some in groupby(events, is_update):
        group = list(some)
        ordered += sorted(group, key=str) if are_updates else group
    return ordered


def run_in_words(
    run: Sequence[Arrived], *, has_exact_chunks: bool, has_free_offsets: bool
) -> list[str]:
    """Return confirms by publisher, then deliveries by subscription."""
    lines = []
    for publisher_id in sorted({event.publisher_id for event in run if event.key == CONFIRM}):
        ids = [
            number
            for event in run
            if event.key == CONFIRM and event.publisher_id == publisher_id
            for number in event.confirmed
        ]
        lines.append(f"confirmed by publisher {publisher_id}: {sorted(ids)}")
    deliveries = [event.delivery for event in run if event.delivery is not None]
    for subscription_id in sorted({delivery.subscription_id for delivery in deliveries}):
        own = [one for one in deliveries if one.subscription_id == subscription_id]
        start = f"delivered to {subscription_id}"
        lines += [f"{start}, faulty: {one.fault}; {one.head}" for one in own if one.fault]
        if has_exact_chunks:
            lines += [f"{start}: {one.head}: {joined([one])}" for one in own]
        else:
            lines.append(f"{start}: {joined(own, has_free_offsets=has_free_offsets)}")
    return lines


def joined(deliveries: Sequence[chunks.Delivery], *, has_free_offsets: bool = False) -> str:
    """Return the records of deliveries in one line."""
    texts = (piece.text for one in deliveries for piece in one.pieces)
    return " ".join(text.partition("=")[2] if has_free_offsets else text for text in texts)
