"""After a crash at any step a log has each unit whole or not at all, and forgets no confirm."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from gateway.log import units
from gateway.log.derived.filters import SubscriptionFilter
from gateway.log.log import StreamLog
from gateway.log.reading.retention import Cut, remove_before
from gateway.log.recovery.log_check import StreamCheck
from hutch.formats.chunk import unpack_trailer
from store.api import Durability
from tests.chunks import Chunk
from tests.conformance.implementations import open_local
from tests.simulation.crash import Aftermath, Crash
from tests.simulation.disk import Disk, Image
from tests.simulation.world import FACTOR, SEED, SIZES
from tests.unit.gateway.log.log_rig import (
    GENERATION,
    NAMES,
    TABLE,
    LogRig,
    chunks_in,
    put,
    snapshot_after_chunks,
)
from tests.unit.gateway.log.unit_rig import append, begin, blank

ONE_APPEND_BYTES_MAX: Final = 700
"""Units above this are merged."""

REFERENCES: Final = (b"", b"p", b"q")
VALUES: Final = (b"", b"red", b"blue")
THOROUGH: Final = 6
"""After every so many steps the log that was opened is read, checked and used as well."""

KILLS: Final = (Crash.KILL, Crash.TORN_KILL)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "ONE_APPEND_BYTES_MAX", ONE_APPEND_BYTES_MAX)
    snapshot_after_chunks(monkeypatch, 9)


def open_rig(disk: Disk, durability: Durability) -> LogRig:
    rig = LogRig(
        Path(),
        durability=durability,
        open_store=lambda loop, _: open_local(disk, loop, durability, **SIZES),
    )
    rig.span_bytes = 400
    return rig


@dataclass(eq=False)
class Live:
    """Records of one publisher, and the length of the disk's record when each was confirmed."""

    disk: Disk
    names: dict[int, bytes] = field(default_factory=dict)
    confirmed: dict[bytes, int] = field(default_factory=dict)

    def confirm(self, tokens: bytes) -> None:
        for at in range(0, len(tokens), 8):
            name = self.names[int.from_bytes(tokens[at : at + 8])]
            self.confirmed[name] = len(self.disk.record)

    def lost(self) -> None:
        raise AssertionError


class History:
    """A log that gets live records and units, and what was promised of them at each step.

    Attributes:
        content: All bytes of the segment, with those that were removed.
        stored: For each unit's mark the length of the disk's record when its appending had ended.
        begun: The same when it was begun, and its records.
        removed: For each removal the same, when it was asked for, when it was done, and the start.
    """

    def __init__(self, durability: Durability, chance: random.Random, count: int) -> None:
        self.disk = Disk()
        self.content = b""
        self.live = Live(self.disk)
        self.stored: dict[int, int] = {}
        self.units: dict[int, list[bytes]] = {}
        self.removed: list[tuple[int, int, int]] = []
        self._chance = chance
        self._next = dict.fromkeys(REFERENCES, 1)
        self._rig = open_rig(self.disk, durability)
        self._log = self._rig.create()
        acts = (self.publish, self.unit, self.unit, self.unit, self.save)
        for number in range(count):
            chance.choice(acts)()
            if chance.random() < 0.6:
                self.settle()
            if number in {count // 2, count - 3}:
                self.remove()
        self.settle()
        assert len(self.live.confirmed) == len(self.live.names)
        assert self.removed
        assert self._log.in_flight_bytes == 0
        self._rig.close()

    def settle(self) -> None:
        self._rig.now_ms += 5
        self._rig.settle(self._log)
        rig, length = self._rig, self._log.committed_length
        while len(self.content) < length:
            size = length - len(self.content)
            self.content += rig.do(rig.store.read, NAMES.data_segment, len(self.content), size).data

    def publish(self, _: int = 0) -> None:
        """Put one to three records into the open chunk."""
        reference = self._chance.choice(REFERENCES)
        first = self._next[reference]
        number = len(self.live.names)
        records = [
            b"live %d " % (number + each) + bytes(self._chance.choice([0, 10, 150]))
            for each in range(self._chance.randint(1, 3))
        ]
        self._next[reference] += len(records)
        values = [self._chance.choice(VALUES)]
        if self._log._open is not None and self._log._open.filters is None and values[0]:
            self._log.flush()
        put(self._log, records, first_id=first, reference=reference, values=values)
        for record in records:
            self.live.names[number] = record
            self._log.confirm_when_committed(self.live, number.to_bytes(8))
            number += 1

    def unit(self) -> None:
        """Append a unit, small or large, while records are published."""
        mark = len(self.units) * 3 + 1
        size = self._chance.choice([0, 100, 500])
        blanks = []
        self.units[mark] = []
        for number in range(self._chance.randint(1, 5)):
            records = [b"unit %d %d %d " % (mark, number, each) + bytes(size) for each in (0, 1)]
            self.units[mark] += records
            blanks.append(blank(*records, values=[self._chance.choice(VALUES)]))
        if self._chance.random() < 0.5:
            self.publish()
        pending = begin(
            self._rig, self._log, blanks, mark, at_once=1, before_read=self._publish_sometimes
        )
        if self._chance.random() < 0.5:
            self.publish()
        self._rig.loop.run_until(lambda: pending.is_settled)
        pending.result()
        self.stored[mark] = len(self.disk.record)

    def _publish_sometimes(self, _: int) -> None:
        if self._chance.random() < 0.4:
            self.publish()
            if self._chance.random() < 0.5:
                self._log.begin_another(10)  # as if the chunk were full

    def save(self) -> None:
        """Store a snapshot, index and filter pages."""
        self.settle()
        if self._log.final_snapshot() is not None:
            self._rig._save(self._log, self._log.take_snapshot())

    def remove(self) -> None:
        """Remove the oldest chunks, as retention does."""
        self.settle()
        if len(self._log.index) < 4:
            return
        self.save()
        self.settle()
        entry = self._chance.randint(1, len(self._log.index) - 2)
        cut = Cut(self._log.index.positions[entry], self._log.index.offsets[entry])
        asked_at = len(self.disk.record)
        self._rig.run(remove_before(self._rig.store, NAMES.data_segment, self._log, cut))
        self.removed.append((asked_at, len(self.disk.record), cut.position))


@dataclass
class After:
    """A log that was opened after a crash, compared with its history."""

    history: History
    rig: LogRig
    log: StreamLog
    cut: int

    def check(self, *, is_thorough: bool) -> None:
        start, length = self.log.start, self.log.committed_length
        removed = self.history.removed
        assert start in {0, *(start for asked_at, _, start in removed if asked_at <= self.cut)}
        assert start >= max((start for _, at, start in removed if at <= self.cut), default=0)
        content = self.history.content[:length]
        assert self.rig.content() == content[start:]
        chunks = list(chunks_in(content))
        records = [record for chunk, _ in chunks for record in chunk.records()]
        assert self.log.committed_next_offset == len(records)
        self._check_promises(set(records))
        self._check_places(start, chunks)
        self._check_publishers(chunks)
        if not is_thorough:
            return
        self._check_readers(start, chunks)
        checked = StreamCheck(self.rig.store, NAMES, TABLE, GENERATION)
        assert self.rig.run(checked.run()).flaws == []

    def _check_promises(self, there: set[bytes]) -> None:
        for name, confirmed_at in self.history.live.confirmed.items():
            assert name in there or confirmed_at > self.cut, name
        marks = []
        for mark, records in self.history.units.items():
            has = [record in there for record in records]
            assert all(has) or not any(has), f"half of unit {mark}"
            assert all(has) or self.history.stored[mark] > self.cut, f"unit {mark} is lost"
            if all(has):
                marks.append(mark)
        assert (self.log.mark, self.log.sequences.is_mark_known) == (max(marks, default=0), True)

    def _check_places(self, start: int, chunks: Sequence[tuple[Chunk, bytes]]) -> None:
        places = {}
        position = last = 0
        for chunk, rest in chunks:
            places[position] = chunk.chunk_id, chunk.timestamp_ms
            last, position = position, position + 8 + 48 + len(chunk.data) + len(rest) + 4
        index = self.log.index
        entries = zip(index.positions, index.offsets, index.timestamps_ms, strict=True)
        assert all(places[at] == (offset, time) for at, offset, time in entries)
        there = [at for at in places if at >= start]
        assert self.log.is_empty == (not there)
        if there:
            assert self.log.first_chunk_id == places[start][0]
            assert (self.log.last_chunk_id, self.log.last_chunk_position) == (places[last][0], last)

    def _check_publishers(self, chunks: Sequence[tuple[Chunk, bytes]]) -> None:
        last: dict[bytes, int] = {}
        for chunk, rest in chunks:
            last.update(unpack_trailer(rest[: chunk.trailer_size]))
        last.pop(b"", None)
        assert self.log.sequences.all() == last

    def _check_readers(self, start: int, chunks: Sequence[tuple[Chunk, bytes]]) -> None:
        seen = self.rig.cursor(self.log, start).all_now()
        expected = [record for chunk, _ in chunks for record in chunk.records()]
        first = self.log.first_offset if seen else len(expected)
        assert [record for chunk in seen for record in chunk.records()] == expected[first:]
        red = SubscriptionFilter([b"red"], unfiltered=False)
        found = [
            record
            for chunk in self.rig.cursor(self.log, start, wanted=red).all_now()
            for record in chunk.records()
        ]
        assert found == [
            record
            for chunk, rest in chunks
            if b"red" in rest and chunk.chunk_id >= first
            for record in chunk.records()
        ]

    def go_on(self) -> None:
        """Append another unit, where a crash may have left half of one, and a live record."""
        mark = self.log.mark + 1
        first = self.log.committed_next_offset
        place = append(self.rig, self.log, [blank(bytes(400)), blank(bytes(400))], mark)
        self.rig.commit(self.log, b"live")
        assert place == (first, first + 2)
        assert self.log.committed_next_offset == first + 3
        again = self.rig.open(epoch=2)
        assert (again.committed_next_offset, again.mark) == (first + 3, mark)


def crash_everywhere(
    history: History, durability: Durability, kinds: list[Crash], chance: random.Random
) -> int:
    """Crash at every step, each time in one way; return how often the log was there."""
    aftermath = Aftermath()
    opened = 0
    for cut, step in enumerate([*history.disk.record, None]):
        if not cut % len(kinds):
            chance.shuffle(kinds)
        kind = kinds[cut % len(kinds)]
        image, _ = aftermath.after(kind, chance, step)
        try:
            opened += look(history, durability, image, cut, is_thorough=not cut % THOROUGH)
        except Exception as error:
            raise AssertionError(f"{durability} seed={SEED} step={cut} crash={kind}") from error
        if step is not None:
            aftermath.advance(step, chance)
    return opened


def look(
    history: History, durability: Durability, image: Image, cut: int, *, is_thorough: bool
) -> bool:
    rig = open_rig(Disk(image), durability)
    try:
        exists = NAMES.data_segment in names_of(rig)
        if exists:
            after = After(history, rig, rig.open(epoch=2), cut)
            after.check(is_thorough=is_thorough)
            if is_thorough:
                after.go_on()
        return exists
    finally:
        rig.close()


def names_of(rig: LogRig) -> Iterator[str]:
    return iter(rig.store.catalogue.names)  # type: ignore[attr-defined]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("durability", Durability)
def test_units_and_live_records_survive_every_crash(durability: Durability) -> None:
    chance = random.Random(f"units {durability.value} {SEED}")
    kinds = [*Crash] if durability is Durability.DISK else [*KILLS]
    for _ in range(max(1, round(FACTOR))):
        history = History(durability, chance, 11)
        assert crash_everywhere(history, durability, kinds, chance) > len(history.disk.record) // 2
