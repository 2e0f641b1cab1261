"""A log under units, live publishing, truncation and reopening, against a list of what was put."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.log import units
from gateway.log.derived.filters import SubscriptionFilter
from gateway.log.reading.retention import Cut, remove_before
from tests.unit.gateway.log.log_rig import (
    NAMES,
    LogRig,
    Sink,
    chunks_in,
    put,
    snapshot_after_chunks,
    state_of,
)
from tests.unit.gateway.log.unit_rig import append, blank

VALUES = st.sampled_from([b"", b"red", b"blue"])
SIZES = st.sampled_from([0, 5, 300, 2_000])
REFERENCES = st.sampled_from([b"", b"p", b"q"])
LIVE = st.tuples(st.lists(SIZES, min_size=1, max_size=2), VALUES, REFERENCES)


class UnitLife(RuleBasedStateMachine):
    """One log; each chunk that is put has one filter value, so that readers skip exactly."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory(prefix="hutch-test-")
        self.rig = LogRig(Path(self.directory.name), frame_bytes_max=8_192)
        self.rig.span_bytes = 500
        # Of each chunk in the order of storing: its filter value and its records.
        self.chunks: list[tuple[bytes, list[bytes]]] = []
        self.last: dict[bytes, int] = {}
        self.number = 0

    @initialize()
    def create(self) -> None:
        self.log = self.rig.create()

    def teardown(self) -> None:
        self.rig.close()
        self.directory.cleanup()

    def records(self, sizes: list[int]) -> list[bytes]:
        """Records that were not put yet."""
        self.number += 1
        return [b"%d.%d " % (self.number, each) + bytes(size) for each, size in enumerate(sizes)]

    @rule(sizes=st.lists(SIZES, min_size=1, max_size=3), value=VALUES, reference=REFERENCES)
    def publish(self, *, sizes: list[int], value: bytes, reference: bytes) -> None:
        self.live(sizes, value, reference)
        self.rig.settle(self.log)

    def live(self, sizes: list[int], value: bytes, reference: bytes) -> None:
        records = self.records(sizes)
        first = self.last.get(reference, 0) + 1
        put(self.log, records, reference=reference, first_id=first, values=[value], sink=Sink())
        self.log.begin_another(10)
        self.chunks.append((value, records))
        if reference:
            self.last[reference] = first + len(records) - 1

    @rule(
        chunks=st.lists(
            st.tuples(VALUES, st.lists(SIZES, min_size=1, max_size=3)), min_size=1, max_size=6
        ),
        live=st.lists(LIVE, max_size=2),
        at_once=st.integers(1, 3),
        is_large=st.booleans(),
        step=st.integers(1, 5),
    )
    def unit(
        self,
        *,
        chunks: list[tuple[bytes, list[int]]],
        live: list[tuple[list[int], bytes, bytes]],
        at_once: int,
        is_large: bool,
        step: int,
    ) -> None:
        """Append a unit. What is published while it is read comes before a small one only."""
        self.rig.now_ms += step
        made = [(value, self.records(sizes)) for value, sizes in chunks]
        waiting = list(live)

        def publish(_: int) -> None:
            if waiting:
                self.live(*waiting.pop())

        before = len(self.chunks)
        with pytest.MonkeyPatch.context() as patch:
            if is_large:
                patch.setattr(units, "ONE_APPEND_BYTES_MAX", 0)
            place = append(
                self.rig,
                self.log,
                [blank(*records, values=[value]) for value, records in made],
                self.log.mark + step,
                at_once=at_once,
                before_read=publish,
            )
        self.rig.settle(self.log)
        at = before if is_large else len(self.chunks)
        self.chunks[at:at] = made
        first = sum(len(records) for _, records in self.chunks[:at])
        assert place == (first, first + sum(len(records) for _, records in made))

    @precondition(lambda self: len(self.log.index) > 1)
    @rule(place=st.integers(0, 100))
    def truncate(self, place: int) -> None:
        self.save()
        entry = place % len(self.log.index)
        cut = Cut(self.log.index.positions[entry], self.log.index.offsets[entry])
        self.rig.run(remove_before(self.rig.store, NAMES.data_segment, self.log, cut))

    @rule()
    def save(self) -> None:
        if self.log.final_snapshot() is not None:
            self.rig._save(self.log, self.log.take_snapshot())
            self.rig.settle(self.log)

    @rule()
    def reopen(self) -> None:
        self.save()
        before = state_of(self.log), self.log.mark
        self.log = self.rig.open()
        assert (state_of(self.log), self.log.mark) == before
        assert self.log.sequences.is_mark_known

    @invariant()
    def what_is_read_is_what_was_put(self) -> None:
        stored = chunks_in(self.rig.content())
        kept = self.chunks[len(self.chunks) - len(stored) :]
        following = self.log.first_offset if stored else self.log.committed_next_offset
        position = self.log.start
        places = {}
        for (chunk, rest), (_, records) in zip(stored, kept, strict=True):
            assert chunk.chunk_id == following
            assert chunk.records() == records
            places[position] = chunk.chunk_id
            following += chunk.record_count
            position += 60 + len(chunk.data) + len(rest)
        assert following == self.log.committed_next_offset
        assert position == self.log.committed_length
        index = self.log.index
        entries = zip(index.positions, index.offsets, strict=True)
        assert all(places[at] == offset for at, offset in entries if at >= self.log.start)
        assert self.log.sequences.all() == self.last

    @invariant()
    def readers_see_all_of_it_and_skip_by_values(self) -> None:
        stored = self.rig.cursor(self.log, self.log.start).all_now()
        records = [record for chunk in stored for record in chunk.records()]
        every = [record for _, put_records in self.chunks for record in put_records]
        assert records == every[len(every) - len(records) :]
        wanted = SubscriptionFilter([b"red"], unfiltered=False)
        found = self.rig.cursor(self.log, self.log.start, wanted=wanted).all_now()
        reds = {
            record
            for value, put_records in self.chunks
            for record in put_records
            if value == b"red"
        }
        assert [record for chunk in found for record in chunk.records()] == [
            record for record in records if record in reds
        ]


@pytest.mark.parametrize("snapshot_chunks", [4, 10_000])
def test_units_and_live_records_are_read_as_they_were_put(
    monkeypatch: pytest.MonkeyPatch, snapshot_chunks: int
) -> None:
    snapshot_after_chunks(monkeypatch, snapshot_chunks)
    case = UnitLife.TestCase
    case.settings = settings(max_examples=12, stateful_step_count=15, deadline=None)
    case().runTest()
