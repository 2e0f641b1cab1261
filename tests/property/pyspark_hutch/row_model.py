"""Rows of chunks by the most straightforward way: a message is made with what its row says."""

from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st

from tests.chunks import GZIP, LZ4, NONE, SNAPPY, ZSTD, SubBatch
from tests.property.pyspark_hutch.chunk_rig import (
    TIMESTAMP_MS,
    chunk_of,
    data,
    listed,
    mapped,
    section,
    sized,
    text,
)

COLUMNS: Final = (
    "offset",
    "body",
    "body_type",
    "application_properties",
    "properties",
    "chunk_id",
    "entry_index",
    "sub_index",
    "tenant",
)


@dataclass(frozen=True, slots=True)
class Message:
    """A message, and what its row says."""

    raw: bytes
    body: bytes | None
    body_type: str | None
    application_properties: tuple[tuple[str, str], ...] | None = None
    subject: str | None = None

    def row(self, *, is_amqp: bool) -> dict[str, Any]:
        """The columns that come from the message."""
        if not is_amqp:
            return _columns(self.raw, "raw", None, None)
        return _columns(self.body, self.body_type, self.application_properties, self.subject)


def _columns(
    body: bytes | None,
    body_type: str | None,
    application: tuple[tuple[str, str], ...] | None,
    subject: str | None,
) -> dict[str, Any]:
    return {
        "body": body,
        "body_type": body_type,
        "application_properties": None if application is None else list(application),
        "subject": subject,
        "tenant": dict(application or ()).get("tenant"),
    }


@dataclass(frozen=True, slots=True)
class Stored:
    """A chunk: its id, and its entries, each a message or a sub-batch of messages."""

    chunk_id: int
    entries: list[Message | tuple[int, list[Message]]]

    @property
    def end(self) -> int:
        """The offset after the chunk's last."""
        sizes = (1 if isinstance(entry, Message) else len(entry[1]) for entry in self.entries)
        return self.chunk_id + sum(sizes)

    def delivered(self) -> bytes:
        """The chunk's bytes."""
        packed = [
            entry.raw if isinstance(entry, Message) else sub_batch(*entry) for entry in self.entries
        ]
        return chunk_of(*packed, chunk_id=self.chunk_id, timestamp_ms=TIMESTAMP_MS)

    def rows(self, low: int, high: int, *, is_amqp: bool) -> list[dict[str, Any]]:
        """The rows with low <= offset < high."""
        found: list[dict[str, Any]] = []
        offset = self.chunk_id
        for index, entry in enumerate(self.entries):
            messages = [entry] if isinstance(entry, Message) else entry[1]
            for sub_index, message in enumerate(messages):
                place = {
                    "offset": offset,
                    "chunk_id": self.chunk_id,
                    "entry_index": index,
                    "sub_index": None if isinstance(entry, Message) else sub_index,
                }
                if low <= offset < high:
                    found.append(place | message.row(is_amqp=is_amqp))
                offset += 1
        return found


def sub_batch(compression: int, messages: list[Message]) -> SubBatch:
    """Pack messages by any codec."""
    return SubBatch.of([message.raw for message in messages], compression)


bodies = st.binary(max_size=12) | st.integers(0, 70).map(bytes) | st.just(bytes(300))
plain = bodies.map(lambda body: Message(data(body), body, "data"))
# What begins with anything but a zero is no section.
garbage = st.binary(max_size=20).map(lambda rest: Message(b"\1" + rest, b"\1" + rest, "raw"))
empty = st.just(Message(b"", b"", "raw"))
values = bodies.map(lambda body: Message(section(0x77, sized(0xA0, body)), body, "amqp-value"))
numbers = st.integers(0, 255).map(
    lambda number: Message(section(0x77, bytes((0x50, number))), b"%d" % number, "amqp-value")
)
joined = st.lists(bodies, min_size=2, max_size=3).map(
    lambda parts: Message(b"".join(map(data, parts)), b"".join(parts), "data")
)
damaged = bodies.map(lambda body: Message(data(body) + b"\0", data(body) + b"\0", "raw"))


@st.composite
def rich(draw: st.DrawFn) -> Message:
    """A message with sections around its body, or without a body."""
    pairs = draw(st.dictionaries(st.sampled_from(["tenant", "a", "ü"]), st.text(max_size=4)))
    subject = draw(st.none() | st.sampled_from(["s", "t"]))
    raw = section(0x70, listed(b"\x41"))
    if subject is not None:
        raw += section(0x73, listed(b"\x40", b"\x40", b"\x40", text(subject)), is_long=True)
    raw += section(0x74, mapped(**{key: text(value) for key, value in pairs.items()}))
    inner = draw(plain | values | joined | st.just(Message(b"", None, None)))
    raw += inner.raw + draw(st.sampled_from([b"", section(0x78, mapped(x=b"\x41"))]))
    return Message(raw, inner.body, inner.body_type, tuple(pairs.items()), subject)


messages = plain | plain | garbage | empty | values | numbers | joined | damaged | rich()
runs = st.builds(lambda message, count: [message] * count, plain | rich(), st.integers(1, 12))
groups = st.lists(messages, max_size=8) | runs
codecs = st.sampled_from([NONE, GZIP, SNAPPY, LZ4, ZSTD])
sub_batches = st.tuples(codecs, groups.filter(len)).map(lambda entry: [entry])


@st.composite
def streams(draw: st.DrawFn) -> list[Stored]:
    """Chunks of a stream behind one another, with gaps between their offsets."""
    chunks: list[Stored] = []
    offset = draw(st.integers(0, 5))
    for parts in draw(st.lists(st.lists(groups | sub_batches, max_size=4), max_size=4)):
        entries: list[Message | tuple[int, list[Message]]] = []
        for part in parts:
            entries += part
        if entries:
            chunks.append(Stored(offset, entries))
            offset = chunks[-1].end + draw(st.integers(0, 2))
    return chunks
