"""A round on its way to the disk: late data, syncs, the journal, and what each failure leaves."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from store.errors import DiskFull, SegmentFailed, StoreClosed
from store.files import File
from store.local.commit import round as round_module
from store.local.commit.changes import AppendChange, Change, creation
from store.local.commit.journal import FRAME_BYTES_MAX, Journal
from store.local.commit.records import Attributes, Create, create_record
from store.local.commit.round import SPACE_TRIES, Round, RoundWriting
from store.local.reserve import Reserve
from store.local.state.catalogue import Catalogue
from store.local.state.data_file import DataFile, OpenFiles
from store.local.state.segment import Segment
from tests.simulation.disk import Disk, Failure, Step, Sync, SyncDirectory, Write
from tests.unit.store.local.journals import RECORD, found, journal_on

KIB: Final = 1024
NOW_MS: Final = 1_000


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_module, "SPACE_PAUSE_S", 0.001)


def retire(_: DataFile, handle: File) -> None:
    handle.close()


@dataclass
class Rig:
    disk: Disk
    journal: Journal
    reserve: Reserve
    catalogue: Catalogue
    now_ms: int = NOW_MS

    def __post_init__(self) -> None:
        open_files = OpenFiles(self.disk, 8, retire)
        self.writing = RoundWriting(
            self.disk, self.journal, open_files, self.reserve, lambda: self.now_ms
        )

    def late(self, round_: Round, data: bytes, *, gives_space: bool = False) -> AppendChange:
        """Put data of a segment of its own, which is not written yet, into a round."""
        segment: Segment = self.catalogue.add(f"s{self.catalogue.next_segment}", None)
        change = AppendChange(self.catalogue, segment, None, 0)
        change.file = self.catalogue.new_file(segment)
        change.late, change.record, change.gives_space = data, RECORD, gives_space
        round_.sync(change.file)
        round_.changes.append(change)
        return change

    def fail(self, kind: type[Step], *, is_full: bool = False, times: int = 1) -> None:
        failure = Failure(lambda step: isinstance(step, kind), times=times, is_full=is_full)
        self.disk.failures = [failure]


@pytest.fixture
def rig() -> Iterator[Rig]:
    disk = Disk()
    disk.make_directory("data")
    journal = journal_on(disk)
    reserve = Reserve(disk, KIB)
    reserve.take()
    rig = Rig(disk, journal, reserve, Catalogue(KIB))
    yield rig
    rig.writing.stop_threads()


def test_data_is_written_and_synced_before_the_journal(rig: Rig) -> None:
    round_ = Round()
    rig.late(round_, b"data")
    begin = len(rig.disk.record)

    outcome = rig.writing.perform(round_)

    kinds = [type(step) for step in rig.disk.record[begin:]]
    assert kinds.index(Sync) < kinds.index(SyncDirectory)
    assert kinds[-1] is Write, "the journal, which is not synced"
    assert (outcome.at_ms, outcome.failed, outcome.dropped) == (NOW_MS, {}, {})
    assert rig.disk.open("data/1").read_at(10, 0) == b"data"


def test_a_directory_is_synced_once_for_each_new_file(rig: Rig) -> None:
    round_ = Round()
    change = rig.late(round_, b"data")
    rig.writing.perform(round_)
    assert change.file is not None
    assert change.file.in_directory
    begin = len(rig.disk.record)

    again = Round()
    again.sync(change.file)
    rig.writing.perform(again)

    assert SyncDirectory not in [type(step) for step in rig.disk.record[begin:]]


@pytest.mark.parametrize("kind", [Write, Sync])
def test_what_fails_to_be_written_or_synced_takes_its_change_and_no_other(
    rig: Rig, kind: type[Step]
) -> None:
    round_ = Round()
    first, second = rig.late(round_, b"first"), rig.late(round_, b"second")
    rig.fail(kind)

    outcome = rig.writing.perform(round_)

    dropped = [change for change in (first, second) if change in outcome.dropped]
    assert len(dropped) == 1
    assert list(outcome.failed) == [dropped[0].file]
    assert isinstance(outcome.dropped[dropped[0]], SegmentFailed)
    assert outcome.fatal is None


def test_a_file_that_failed_is_written_no_more_in_its_round(rig: Rig) -> None:
    round_ = Round()
    first = rig.late(round_, b"first")
    second = AppendChange(rig.catalogue, first.segment, None, 0)
    second.file, second.late, second.record, second.place = first.file, b"second", RECORD, 5
    round_.changes.append(second)
    rig.fail(Write)

    outcome = rig.writing.perform(round_)

    assert set(outcome.dropped) == {first, second}
    assert b"second" not in rig.disk.open("data/1").read_at(20, 0)


def test_a_new_file_is_not_there_before_its_directory_is_synced(rig: Rig) -> None:
    round_ = Round()
    first, second = rig.late(round_, b"first"), rig.late(round_, b"second")
    rig.fail(SyncDirectory)

    outcome = rig.writing.perform(round_)

    assert set(outcome.dropped) == {first, second}
    assert not any(change.file.in_directory for change in (first, second) if change.file)


def test_without_the_reserve_only_what_gives_space_is_written(rig: Rig) -> None:
    rig.reserve.give_up()
    round_ = Round()
    taker, giver = rig.late(round_, b"taker"), rig.late(round_, b"giver", gives_space=True)

    outcome = rig.writing.perform(round_)

    assert list(outcome.dropped) == [taker]
    assert isinstance(outcome.dropped[taker], DiskFull)
    assert giver.file not in outcome.failed


@pytest.mark.parametrize("failures", [1, SPACE_TRIES, SPACE_TRIES + 1])
def test_what_gives_space_is_tried_until_there_is_room(rig: Rig, failures: int) -> None:
    round_ = Round()
    giver = rig.late(round_, b"giver", gives_space=True)
    rig.fail(Write, is_full=True, times=failures)

    outcome = rig.writing.perform(round_)

    is_written = failures <= SPACE_TRIES
    assert (giver not in outcome.dropped) == is_written
    assert rig.reserve.is_short, "it was given up for this"


def test_a_journal_that_fails_ends_the_store(rig: Rig) -> None:
    round_ = Round()
    change = AppendChange(rig.catalogue, rig.catalogue.add("a", None), None, 0)
    change.record = RECORD
    round_.changes.append(change)
    rig.fail(Write)

    outcome = rig.writing.perform(round_)

    assert isinstance(outcome.fatal, StoreClosed)


@pytest.mark.parametrize("must_sync", [False, True])
def test_the_journal_is_synced_where_callers_wait_for_it(rig: Rig, *, must_sync: bool) -> None:
    round_ = Round()
    change = AppendChange(rig.catalogue, rig.catalogue.add("a", None), None, 0)
    change.record = RECORD
    round_.changes.append(change)
    round_.must_sync = must_sync
    rig.fail(Sync)

    outcome = rig.writing.perform_and_sync(round_)

    assert isinstance(outcome.fatal, StoreClosed) == must_sync


def test_a_clock_before_1970_tells_the_first_of_all_times(rig: Rig) -> None:
    rig.now_ms = -1

    assert rig.writing.perform(Round()).at_ms == 0


@pytest.mark.parametrize("fill", [0, FRAME_BYTES_MAX - 30])
def test_a_creation_stands_in_one_frame_with_its_attributes(rig: Rig, fill: int) -> None:
    place, round_ = rig.journal.place(), Round()
    filler = AppendChange(rig.catalogue, rig.catalogue.add("filler", None), None, 0)
    filler.record = create_record(1, "r" * fill, None, durable=True)
    segment = rig.catalogue.add("s", None)
    values = [(bytes(16), 7)]
    made = creation(rig.catalogue, segment, values, lambda _: None, durable=True)
    round_.changes += [filler, *made]

    rig.writing.perform(round_)

    last = found(rig.disk, place)[-1].records[-2:]
    assert last == [Create(2, "s", None, durable=True), Attributes(2, values, durable=True)]


def test_a_full_journal_drops_what_takes_space_and_keeps_what_gives_it(rig: Rig) -> None:
    round_ = Round()
    changes: list[Change] = []
    for gives_space in (False, True, False):
        change = AppendChange(rig.catalogue, rig.catalogue.add(f"a{len(changes)}", None), None, 0)
        change.record, change.gives_space = RECORD, gives_space
        changes.append(change)
    round_.changes.extend(changes)
    rig.fail(Write, is_full=True)

    outcome = rig.writing.perform(round_)

    assert list(outcome.dropped) == [changes[0], changes[2]]
    assert outcome.fatal is None
