"""Records in and out: what is put or published is read, and nothing else, whatever befalls it.

Histories of a stream are drawn: records of a writer and entries of publishers, with sub-batches of
every codec; removal of the oldest chunks; restarts; bytes that change on the disk. The model is a
list of chunks with their times and entries. It knows which are removed and which are damaged.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.log.derived import index as index_module
from gateway.log.log import StreamLog
from gateway.log.reading.retention import Cut, remove_before
from gateway.log.records.decompressing import CODECS
from gateway.log.records.reading import Record, UnreadableSubBatch
from gateway.log.records.writing import RecordWriter
from hutch.formats.entries import sub_batch_at
from hutch.formats.sub_batches import BadSubBatch, uncompressed
from pyspark_hutch.columns import WantedColumns
from pyspark_hutch.decoding import codecs as codecs_module
from pyspark_hutch.decoding.faults import UnopenedSubBatch
from pyspark_hutch.options.read_settings import Fate
from tests.chunks import COMPRESS, GZIP, NONE, ZSTD, Entry, SubBatch
from tests.property.pyspark_hutch.chunk_rig import batches_of, chunk_of
from tests.unit.gateway.log.log_rig import LogRig, change_on_disk, passing_rig, put
from tests.unit.gateway.log.records.test_reading import Reading
from tests.unit.gateway.log.records.test_writing import Told

OPENED_BYTES_MAX: Final = 1_000
"""What the readers open: some sub-batches are larger."""
SEEN: Final = ("offset", "timestamp", "body")

Given = Record | tuple[int, int]
"""A record, or the offsets of a sub-batch that cannot be opened."""


@pytest.fixture(scope="module", autouse=True)
def _every_chunk_is_indexed() -> Iterator[None]:
    """Then damage hides nothing but its own chunk, wherever it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "SPAN_BYTES", 1)
        yield


@dataclass(slots=True)
class Stored:
    """A chunk of the model."""

    chunk_id: int
    timestamp_ms: int
    entries: list[Entry]
    is_damaged: bool = False

    def given(self, start: int) -> Iterator[Given]:
        """What a reader gets that begins at an offset."""
        offset = self.chunk_id
        for entry in self.entries:
            bodies = bodies_of(entry)
            if bodies is None:
                assert isinstance(entry, SubBatch)
                end = offset + entry.record_count
                if end > max(start, offset):
                    yield max(start, offset), end
                offset = end
                continue
            for body in bodies:
                if offset >= start:
                    yield offset, self.timestamp_ms, body
                offset += 1


def bodies_of(entry: Entry) -> list[bytes] | None:
    """The records of an entry; None if it cannot be opened."""
    if not isinstance(entry, SubBatch):
        return [entry]
    if entry.compression not in COMPRESS or entry.raw_size > OPENED_BYTES_MAX:
        return None
    raw = entry.body if entry.compression == NONE else PACKED.get(entry.body)
    return None if raw is None else SubBatch(NONE, entry.record_count, len(raw), raw).records()


PACKED: dict[bytes, bytes] = {}
"""What each compressed body was before, so that the model does not decompress."""


def packed(records: list[bytes], codec: int) -> SubBatch:
    batch = SubBatch.of(records, codec)
    PACKED[batch.body] = SubBatch.of(records).body
    return batch


def flattened(found: list[list[Record] | UnreadableSubBatch]) -> list[Given]:
    flat: list[Given] = []
    for each in found:
        if isinstance(each, UnreadableSubBatch):
            flat.append((each.offset, each.next_offset))
        else:
            flat += each
    return flat


class World:
    """A stream, its model, and a reader that follows it from some point on."""

    def __init__(self, rig: LogRig) -> None:
        self.rig = rig
        self.log: StreamLog = rig.create()
        self.chunks: list[Stored] = []
        self.removed = 0
        self.told = Told()
        self.put_count = 0
        self.follower: Reading | None = None
        self.followed: list[Given] = []

    def write(self, parts: list[list[Entry]], later_ms: int) -> None:
        """Write entries in one turn; runs of records go through a writer every other time."""
        rig, log = self.rig, self.log
        rig.now_ms += later_ms
        writer = RecordWriter(log, self.told)
        entries: list[Entry] = []
        for number, part in enumerate(parts):
            if number % 2 == 0 and all(isinstance(entry, bytes) for entry in part):
                for entry in part:
                    assert isinstance(entry, bytes)
                    writer.put(entry)
                self.put_count += len(part)
            elif part:
                put(log, part, reference=b"p" if number % 3 else b"", first_id=len(self.chunks))
            entries += part
        rig.settle(log)
        assert writer.waiting_count == 0
        if entries:
            last = self.chunks[-1].timestamp_ms if self.chunks else 0
            self.chunks.append(Stored(self.end, max(last, rig.now_ms), entries))
            assert log.committed_next_offset == self.end

    @property
    def end(self) -> int:
        if not self.chunks:
            return 0
        last = self.chunks[-1]
        counts = (e.record_count if isinstance(e, SubBatch) else 1 for e in last.entries)
        return last.chunk_id + sum(counts)

    def remove(self, count: int) -> None:
        """Remove the oldest chunks, but never the last."""
        count = min(count, len(self.chunks) - 1 - self.removed)
        if count <= 0:
            return
        self.removed += count
        offset = self.chunks[self.removed].chunk_id
        position = self.log.index.positions[self.log.index.offsets.index(offset)]
        segment = "rmq-.2f/_orders-1/0.#epoch.0"
        self.rig.run(remove_before(self.rig.store, segment, self.log, Cut(position, offset)))

    def restart(self) -> None:
        rig = self.rig
        self.follower = None
        self.followed = []
        snapshot = self.log.final_snapshot()
        if snapshot is not None:
            rig._save(self.log, snapshot)
            rig.settle(self.log)
        rig.close()
        again = LogRig(rig.directory)
        again.now_ms = rig.now_ms
        self.rig = again
        self.log = again.open()

    def follow(self, start: int, times: int) -> None:
        """Let a reader begin, and read a little."""
        self.follower = Reading(self.rig, self.log, start, sub_batch_bytes_max=OPENED_BYTES_MAX)
        self.followed = []
        for _ in range(times):
            given = self.follower.reader.next()
            if given is not None:
                self.followed += flattened([given])

    def damage(self, number: int, place: int, change: int) -> None:
        """Change a byte of a chunk that is there, anywhere in it."""
        number = self.removed + number % (len(self.chunks) - self.removed)
        content = self.rig.content()
        begin = 0
        for _ in range(number - self.removed):
            begin += 8 + int.from_bytes(content[begin + 4 : begin + 8])
        size = 8 + int.from_bytes(content[begin + 4 : begin + 8])
        at = begin + place % size
        change_on_disk(self.rig, content, (at, content[at] ^ change))
        self.chunks[number].is_damaged = True

    def expected(self, start: int) -> list[Given]:
        """What a reader that begins now gets."""
        return [
            given
            for chunk in self.chunks[self.removed :]
            if not chunk.is_damaged
            for given in chunk.given(start)
        ]

    def check(self, start: int) -> None:
        """Compare what is read with the model."""
        reading = Reading(self.rig, self.log, start, sub_batch_bytes_max=OPENED_BYTES_MAX)
        assert flattened(reading.now()) == self.expected(start)
        if self.follower is not None:
            expected = self.expected(self.follower.reader.next_offset)
            rest = flattened(self.follower.now())
            self.followed += rest
            offsets = [given[0] for given in self.followed]
            assert offsets == sorted(set(offsets))
            # What it had in memory when it was removed or damaged may be among it.
            assert [given for given in rest if given in expected] == expected
            ever = {given for chunk in self.chunks for given in chunk.given(0)}
            assert {given for given in self.followed if len(given) == 3} <= ever


class Same(bytes):
    """The same byte many times; shown briefly where an example fails."""

    __slots__ = ()

    def __new__(cls, byte: int, size: int) -> Self:
        return super().__new__(cls, bytes([byte]) * size)

    def __repr__(self) -> str:
        return f"Same({self[0] if self else 0}, {len(self)})"


sizes = st.sampled_from([0, 1, 7, 100, 300]) | st.integers(0, 40)
records = st.builds(Same, st.integers(0, 255), sizes)
large = st.builds(Same, st.integers(0, 255), st.just(70_000))
codecs = st.sampled_from(sorted(COMPRESS))
sub_batches = st.builds(packed, st.lists(records, min_size=1, max_size=4), codecs)
bad_sub_batches = st.builds(
    SubBatch, st.integers(1, 7), st.integers(1, 9), st.integers(0, 99), st.binary(max_size=9)
).filter(lambda batch: batch.compression > ZSTD or batch.raw_size > 0)
entries = records | records | sub_batches | bad_sub_batches | large
runs = st.lists(records, max_size=6)
writes = st.tuples(
    st.just("write"),
    st.lists(runs | st.lists(entries, max_size=5), min_size=1, max_size=4),
    st.integers(-5, 50),
)
histories = st.lists(
    writes
    | writes
    | st.tuples(st.just("remove"), st.integers(1, 3))
    | st.tuples(st.just("restart"))
    | st.tuples(st.just("follow"), st.integers(0, 30), st.integers(0, 3)),
    max_size=8,
)
damages = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 200) | st.integers(0, 70_000), st.integers(1, 255)),
    max_size=3,
    unique_by=lambda damage: damage[0],
)


@pytest.mark.slow
@settings(max_examples=40)  # each opens stores
@given(
    history=histories,
    damage=damages,
    is_restarted=st.booleans(),
    start=st.integers(0, 40),
)
def test_what_is_put_is_read_with_its_offset_and_its_chunk_s_time(
    history: list[Any], damage: list[tuple[int, int, int]], start: int, *, is_restarted: bool
) -> None:
    with passing_rig() as rig:
        world = World(rig)
        try:
            for name, *arguments in history:
                getattr(world, name)(*arguments)
            assert world.told.said == [("committed", n) for _, n in world.told.said]
            assert world.told.count_of("committed") == world.put_count
            world.check(start)
            damaged: set[int] = set()
            for number, place, change in damage:
                if world.chunks and number % (len(world.chunks) - world.removed) not in damaged:
                    damaged.add(number % (len(world.chunks) - world.removed))
                    world.damage(number, place, change)
            if is_restarted:
                world.restart()
            world.check(start)
            world.check(0)
        finally:
            world.rig.close()


# The data source for Spark takes the same chunks apart


def seen_by_spark(chunk: bytes, fate: Fate = "fail") -> list[Record]:
    """Offset, time and body of the rows."""
    batches = batches_of([chunk], WantedColumns(SEEN, body_format="raw", bad_sub_batches=fate))
    rows = [row for batch in batches for row in batch.to_pylist()]
    times = [round(row["timestamp"].timestamp() * 1_000) for row in rows]
    return [(row["offset"], at, row["body"]) for row, at in zip(rows, times, strict=True)]


@settings(max_examples=30)
@given(parts=st.lists(entries, min_size=1, max_size=6), fate=st.sampled_from(["skip", "raw"]))
def test_the_data_source_for_spark_sees_the_same_records(parts: list[Entry], fate: Fate) -> None:
    with passing_rig() as rig:
        log = rig.create()
        rig.now_ms = 1_700_000_000_123
        rig.commit(log, *parts)
        found = Reading(rig, log).now()

    chunk = chunk_of(*parts, timestamp_ms=1_700_000_000_123)
    seen: list[Record] = []
    for each in found:
        if not isinstance(each, UnreadableSubBatch):
            seen += each
        elif fate == "raw":
            assert each.body is not None
            seen.append((each.offset, each.timestamp_ms, each.body))
    assert seen_by_spark(chunk, fate) == seen
    bad = [each for each in found if isinstance(each, UnreadableSubBatch)]
    if bad:
        with pytest.raises(UnopenedSubBatch) as raised:
            seen_by_spark(chunk)
        assert (raised.value.offset, raised.value.reason) == (bad[0].offset, bad[0].reason)
    else:
        assert seen_by_spark(chunk) == seen


@st.composite
def bodies_with_changes(draw: st.DrawFn) -> SubBatch:
    """A sub-batch of which some bytes are changed, or cut off, or of which the head is wrong."""
    batch = SubBatch.of(draw(st.lists(records, min_size=1, max_size=6)), draw(codecs))
    body = bytearray(batch.body)
    for _ in range(draw(st.integers(0, 2))):
        if body:
            body[draw(st.integers(0, len(body) - 1))] ^= draw(st.integers(1, 255))
    cut = draw(st.sampled_from([0, 0, 0, 1, 4, 9]))
    size = batch.raw_size + draw(st.sampled_from([0, 0, 0, 1, -1]))
    kept = bytes(body[: max(len(body) - cut, 0)])
    return SubBatch(batch.compression, batch.record_count, max(size, 0), kept)


@given(batch=bodies_with_changes())
@example(batch=SubBatch(GZIP, 1, 0, b""))
def test_what_the_server_opens_spark_opens_too_and_nothing_else_is_raised(batch: SubBatch) -> None:
    encoded = batch.encoded()
    head = sub_batch_at(encoded, 0)
    try:
        raw = uncompressed(encoded, head, CODECS, OPENED_BYTES_MAX)
    except BadSubBatch:
        return  # Spark overlooks the checksums of snappy, and the end of lz4

    assert uncompressed(encoded, head, codecs_module.CODECS) == raw
