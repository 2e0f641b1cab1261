"""Queries that stage and commit batches beside live publishers, on a recorded disk.

After a crash their streams are read back: each batch is there once and whole, or not at all.
Stages that were open go on with the frames that were not stored by then.
"""

import random
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.broker.commits import appending, sources, stage_filling
from gateway.broker.commits.batch import CommitBatch
from gateway.broker.commits.commit_order import CommitPart
from gateway.broker.commits.commits import Commits
from gateway.broker.commits.finishing import Committed
from gateway.broker.commits.ports import CommitsPorts
from gateway.broker.commits.stage import Stage
from gateway.log import names, units
from gateway.pending import Pending, start
from store.api import Durability
from store.errors import NoSuchSegment
from tests.conformance.harness import Loop
from tests.conformance.implementations import open_local
from tests.simulation.disk import Disk
from tests.simulation.world import SIZES
from tests.unit.gateway.log.log_rig import Sink, chunks_in, encode, put
from tests.unit.gateway.stream.link_rig import Broker

STREAMS: Final = ("a", "b", "c")
USER: Final = "guest"
BATCHES: Final = 3
INLINE_BYTES: Final = 300
ONE_APPEND_BYTES: Final = 1_200


@contextmanager
def small_stages() -> Iterator[None]:
    """Let stages of some records have a segment, and units of some stages be merged."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage_filling, "INLINE_BYTES_MAX", INLINE_BYTES)
        patch.setattr(sources, "READ_BYTES", 500)
        patch.setattr(units, "ONE_APPEND_BYTES_MAX", ONE_APPEND_BYTES)
        yield


def anything(_stream: str) -> None:
    """Allow every target."""


@dataclass
class Filled:
    """A stage of the history: its records, and how many frames were stored at which place."""

    batch: int
    records: Sequence[bytes]
    promised: list[tuple[int, int]] = field(default_factory=list)

    def frames(self) -> list[Sequence[bytes]]:
        """Return the records of each frame."""
        return [self.records[at : at + 5] for at in range(0, len(self.records), 5)]

    def stored(self, cut: int) -> int:
        """Return how many frames need not be sent again after a crash."""
        return max((stored for at, stored in self.promised if at <= cut), default=0)


@dataclass
class Query:
    """A streaming query: the same batch has the same records each time, in stages made anew.

    Attributes:
        sink: Its id.
        disk: Records the history while that runs; None afterwards.
        acknowledged: The place in the record of the disk at which each batch was answered.
        stage_numbers: Every stage that it opened.
        filled: Those of the history.
    """

    sink: str
    disk: Disk | None
    acknowledged: dict[int, int] = field(default_factory=dict)
    stage_numbers: set[int] = field(default_factory=set)
    filled: dict[int, Filled] = field(default_factory=dict)

    def records(self, batch: int, stream: str) -> list[bytes]:
        """Return the records of a batch for a stream; there may be none."""
        chance = random.Random(f"{self.sink} {batch} {stream}")
        count = chance.choice([0, 1, 8, 30])
        return [
            f"{self.sink} {batch} {stream} {number}".encode().ljust(chance.choice([12, 60]), b".")
            for number in range(count)
        ]

    def last_batch(self, commits: Commits, contents: Mapping[str, list[bytes]]) -> int:
        """Return the last batch that the server knows."""
        del contents
        return commits.state_of(USER, self.sink)[0]

    async def go_on(self, broker: Broker, last: int) -> None:
        """Do what a restarted driver does: its last batch again, and the next one."""
        commits = broker.virtual_host.commits
        if last >= 0:
            assert (await self.write(broker, last)).is_repeat
        assert not (await self.write(broker, last + 1)).is_repeat
        assert self.last_batch(commits, {}) == last + 1

    async def write(self, broker: Broker, batch: int) -> Committed:
        """Stage a batch and commit it."""
        commits = broker.virtual_host.commits
        found: list[int] = []
        for stream in STREAMS:
            records = self.records(batch, stream)
            half = (len(records) + 1) // 2
            halves = [some for some in (records[:half], records[half:]) if some]
            found += [await self._stage(broker, batch, stream, some) for some in halves]
        return await commits.commit(USER, self.sink, batch, found, anything)

    async def _stage(
        self, broker: Broker, batch: int, stream: str, records: Sequence[bytes]
    ) -> int:
        filling = broker.virtual_host.commits.filling
        number = filling.open(USER, self.sink, batch, stream).number
        self.stage_numbers.add(number)
        filled = Filled(batch, records)
        if self.disk is not None:
            self.filled[number] = filled
        for sequence in range(len(filled.frames())):
            stored = await fill(broker, number, filled, sequence)
            if self.disk is not None:
                filled.promised.append((len(self.disk.record), stored))
        await filling.close(USER, number)
        return number


class Sender(Query):
    """A client whose batches are transactions: nothing is staged, and no sink is remembered."""

    def records(self, batch: int, stream: str) -> list[bytes]:
        """Return the records of a batch for a stream; the first stream always has some."""
        return super().records(batch, stream) or [
            f"{self.sink} {batch} {stream} alone".encode() for _ in range(stream == STREAMS[0])
        ]

    def last_batch(self, commits: Commits, contents: Mapping[str, list[bytes]]) -> int:
        """Return the last batch that any stream has something of."""
        del commits
        prefix = f"{self.sink} ".encode()
        found = [record for content in contents.values() for record in content]
        return max((int(r.split()[1]) for r in found if r.startswith(prefix)), default=-1)

    async def go_on(self, broker: Broker, last: int) -> None:
        """Write one more."""
        await self.write(broker, last + 1)

    async def write(self, broker: Broker, batch: int) -> Committed:
        """Publish a batch."""
        records = CommitBatch()
        for name in STREAMS:
            for record in self.records(batch, name):
                records.add(broker.stream(name), record)
        return await broker.virtual_host.commits.publish(USER, records, anything)


async def fill(broker: Broker, number: int, filled: Filled, sequence: int) -> int:
    """Send a frame of a stage; return how many are stored."""
    some = filled.frames()[sequence]
    data = b"".join(map(encode, some))
    filling = broker.virtual_host.commits.filling
    return await filling.add(USER, number, sequence, len(some), len(some), data)


@dataclass
class Entries:
    """Parts that enter their streams while it is open, by the numbers of their commits.

    Attributes:
        had: Whether the stream of each part had it before.
        places: The place in the record of the disk at which each had entered.
    """

    disk: Disk
    had: dict[int, list[bool]] = field(default_factory=dict)
    places: dict[int, list[int]] = field(default_factory=dict)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what enters."""
        append = appending._append

        async def noting(ports: CommitsPorts, part: CommitPart) -> None:
            stream_log = await ports.streams.logs.of(appending.target_of(ports, part))
            self.had.setdefault(part.commit, []).append(stream_log.mark >= part.commit)
            await append(ports, part)
            self.places.setdefault(part.commit, []).append(len(self.disk.record))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(appending, "_append", noting)
            yield

    @property
    def between(self) -> list[int]:
        """Places at which a commit had entered one of its streams, and not another."""
        places = self.places.values()
        return [place for each in places for place in range(min(each), max(each))]

    @property
    def is_torn(self) -> bool:
        """True if a commit had entered one of its streams, and not another."""
        return any(len(set(had)) == 2 for had in self.had.values())


@dataclass(eq=False)
class LiveSink(Sink):
    """A publisher that notes where in the record of the disk each id was confirmed."""

    disk: Disk = field(default_factory=Disk)
    confirmed_at: dict[int, int] = field(default_factory=dict)

    def confirm(self, publishing_ids: bytes) -> None:
        before = len(self.confirmed)
        super().confirm(publishing_ids)
        for number in self.confirmed[before:]:
            self.confirmed_at[number] = len(self.disk.record)


def open_broker(disk: Disk, directory: Path) -> Broker:
    """Open a server's broker on a disk."""
    return Broker(
        directory,
        open_store=lambda loop, _: open_local(disk, loop, Durability.DISK, **SIZES),
        loop=Loop(),
    )


@dataclass
class History:
    """Queries and live publishers that ran, and the disk that recorded it.

    Attributes:
        begun_at: The place in the record from which on the streams exist.
        between: Places at which a commit had entered one of its streams, and not another.
    """

    disk: Disk
    queries: list[Query]
    live: dict[str, LiveSink]
    generations: dict[str, int]
    begun_at: int = 0
    between: list[int] = field(default_factory=list)


def run_history(
    directory: Path,
    chance: random.Random,
    batches: int = BATCHES,
    kinds: Sequence[type[Query]] = (Query, Query),
) -> History:
    """Let some queries write batches at a time, while every stream has a live publisher."""
    disk = Disk()
    broker = open_broker(disk, directory)
    for name in STREAMS:
        broker.store_rig.run(broker.streams.create(name, {}))
    live = {name: LiveSink(disk=disk) for name in STREAMS}
    generations = {stream.name: stream.entry.generation for stream in broker.streams}
    queries = [kind(f"{number}-", disk) for number, kind in enumerate(kinds)]
    entries = Entries(disk)
    history = History(disk, queries, live, generations, len(disk.record))
    running = [start(_all_batches(broker, disk, query, batches)) for query in queries]
    published = dict.fromkeys(STREAMS, 0)

    def is_done() -> bool:
        for name in STREAMS:
            if chance.random() < 0.15:
                published[name] += 1
                body = f"live {name} {published[name]}".encode()
                put(broker.log(name), [body], sink=live[name], first_id=published[name])
        return all(each.is_settled for each in running)

    with entries.noted():
        broker.loop.run_until(is_done)
    for each in running:
        each.result()
    history.between = entries.between
    for name in STREAMS:
        broker.settle(name)
    broker.stop()
    return history


async def _all_batches(broker: Broker, disk: Disk, query: Query, batches: int) -> None:
    for batch in range(batches):
        committed = await query.write(broker, batch)
        assert not committed.is_repeat
        assert not committed.dropped
        assert not committed.waiting
        query.acknowledged[batch] = len(disk.record)
    query.disk = None


class Aftercare:
    """A broker that was opened after a crash, and the checks of what it shows."""

    def __init__(self, history: History, disk: Disk, directory: Path) -> None:
        self.history = history
        entries = Entries(disk)
        with entries.noted():
            self.broker = open_broker(disk, directory)
        self.is_torn = entries.is_torn
        self.commits = self.broker.virtual_host.commits

    def run(self, coroutine: Coroutine[Pending[Any], None, Any]) -> Any:  # noqa: ANN401 - what it gives
        return self.broker.store_rig.run(coroutine)

    def contents(self) -> dict[str, list[bytes]]:
        """Return all records of all streams."""
        return {stream: self.content(stream) for stream in STREAMS}

    def last_batch(self, query: Query) -> int:
        """Return the last batch of a query that there is."""
        return query.last_batch(self.commits, self.contents())

    def content(self, stream: str) -> list[bytes]:
        """Return all records of a stream, whose offsets must have no gap."""
        rig = self.broker.store_rig
        segment = names.data_segment("/", stream, self.history.generations[stream])
        info = rig.do(rig.store.info, segment)
        content = b""
        while len(content) < info.length:
            left = info.length - len(content)
            content += rig.do(rig.store.read, segment, len(content), left).data
        found: list[bytes] = []
        for chunk, _ in chunks_in(content):
            assert chunk.chunk_id == len(found)
            found += [record.rstrip(b".") for record in chunk.records()]
        assert self.broker.log(stream).committed_next_offset == len(found)
        return found

    def check(self, cut: int) -> None:
        """Check streams and leftovers; `cut` is the place of the crash."""
        contents = self.contents()
        for query in self.history.queries:
            last = query.last_batch(self.commits, contents)
            answered = [batch for batch, at in query.acknowledged.items() if at <= cut]
            assert last >= max(answered, default=-1), "a batch that was answered is lost"
            for stream, content in contents.items():
                _check_batches(query, last, stream, content)
        for stream, sink in self.history.live.items():
            _check_live(stream, sink, contents[stream], cut)
        self.check_leftovers()

    def finish_stages(self, cut: int) -> None:
        """Go on with the stages that were open, and close them."""
        there = {stage.number: stage for stage in self.commits.stages}
        for query in self.history.queries:
            for number, filled in query.filled.items():
                stored = filled.stored(cut)
                if number in there:
                    self._finish_stage(there[number], filled, stored)
                elif stored:
                    assert self.last_batch(query) >= filled.batch, "a stage is lost"

    def _finish_stage(self, stage: Stage, filled: Filled, stored: int) -> None:
        for sequence in range(stored, len(filled.frames())):
            self.run(fill(self.broker, stage.number, filled, sequence))
        self.run(self.commits.filling.close(USER, stage.number))
        assert stage.records == len(filled.records)
        source = sources.StagesSource(self.commits.ports, self.commits.stages.data_of, [stage])
        content = b""
        while len(content) < source.size:
            content += self.run(source.read(len(content)))
        found = [record for chunk, _ in chunks_in(content) for record in chunk.records()]
        assert found == filled.records

    def check_leftovers(self) -> None:
        """Check that nothing is stored of commits that are done, and of stages that are gone."""
        rig = self.broker.store_rig
        self.broker.loop.run_until(lambda: not self.commits.under_way)
        table = names.commits_table("/")
        page = rig.do(rig.store.iterate_table, table)
        there = {stage.number: stage for stage in self.commits.stages}
        kinds = Counter(entry.key[:1] for entry in page.entries)
        assert kinds[b"h"] == kinds[b"p"] == 0, kinds
        assert kinds[b"t"] == len(there)
        gone = set().union(*(query.stage_numbers for query in self.history.queries)) - set(there)
        segments = [names.stage_segment("/", number) for number in gone]
        segments += [
            names.unit_segment("/", number, generation)
            for number in range(1, 2 * BATCHES + 3)
            for generation in self.history.generations.values()
        ]
        for segment in segments:
            with pytest.raises(NoSuchSegment):
                rig.do(rig.store.info, segment)

    def go_on(self) -> None:
        """Let each query go on behind its last batch."""
        for query in self.history.queries:
            last = self.last_batch(query)
            self.run(query.go_on(self.broker, last))
            self.broker.loop.run_until(lambda: not self.commits.under_way)
            assert self.last_batch(query) == last + 1
        for name in STREAMS:
            self.broker.settle(name)

    def drop_stages(self) -> None:
        """Discard what the queries of before had staged, as their expiry does."""
        self.run(self.commits.stages.discard(self.commits.stages))


def _check_batches(query: Query, last: int, stream: str, content: list[bytes]) -> None:
    """Check that batches up to the last are there once, whole and in order, and no other."""
    prefix = f"{query.sink} ".encode()
    expected = [
        record.rstrip(b".") for batch in range(last + 1) for record in query.records(batch, stream)
    ]
    assert [record for record in content if record.startswith(prefix)] == expected
    position = 0
    for batch in range(last + 1):
        records = [record.rstrip(b".") for record in query.records(batch, stream)]
        if records:
            position = content.index(records[0], position)
            assert content[position : position + len(records)] == records, "a unit is torn apart"


def _check_live(stream: str, sink: LiveSink, content: list[bytes], cut: int) -> None:
    prefix = f"live {stream} "
    found = [int(record.split()[2]) for record in content if record.startswith(prefix.encode())]
    assert found == sorted(set(found)), "a live record is doubled, or out of order"
    confirmed = {number for number, at in sink.confirmed_at.items() if at <= cut}
    assert confirmed <= set(found), "a confirmed live record is lost"
