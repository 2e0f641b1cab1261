"""Files go when it is durable that they are given up; handles are synced before they are closed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from store.errors import SegmentFailed, StoreClosed
from store.local.commit.journal import Journal
from store.local.disposal import Disposal
from store.local.reserve import Reserve
from store.local.state.catalogue import Catalogue
from store.local.state.data_file import DataFile, path_of
from store.local.state.segment import Segment
from store.local.threads import Worker
from tests.simulation.disk import Disk, Failure, Remove, Step, Sync, SyncDirectory, Write
from tests.unit.store.local.journals import RECORD, journal_on


@dataclass
class Rig:
    disk: Disk
    journal: Journal
    catalogue: Catalogue
    reserve: Reserve
    worker: Worker
    failures: list[StoreClosed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.disposal = Disposal(
            self.disk,
            self.journal,
            self.catalogue,
            self.reserve,
            self.worker,
            call_soon_threadsafe=lambda call, *arguments: call(*arguments),
            journal_failed=self.failures.append,
        )
        self.segment: Segment = self.catalogue.add("a", None)

    def file(self, data: bytes = b"x") -> DataFile:
        """A file of the segment, which is open; what was written is not synced."""
        file = self.catalogue.new_file(self.segment)
        file.handle = self.disk.open(path_of(file.number), create=True)
        file.made = True
        file.handle.write_at(data, 0)
        file.writes += 1
        self.catalogue.dirty.add(file)
        return file

    def retire(self, file: DataFile) -> None:
        handle, file.handle = file.handle, None
        assert handle is not None
        self.disposal.retire(file, handle)

    def finish(self) -> None:
        self.worker.stop_threads()

    def fail(self, kind: type[Step]) -> None:
        self.disk.failures = [Failure(lambda step: isinstance(step, kind))]


@pytest.fixture
def rig() -> Iterator[Rig]:
    disk = Disk()
    disk.make_directory("data")
    journal = journal_on(disk)
    rig = Rig(disk, journal, Catalogue(1024), Reserve(disk, 1024), Worker("disposal"))
    yield rig
    rig.finish()


def kinds(steps: list[Step]) -> list[type[Step]]:
    return [type(step) for step in steps]


def test_a_file_goes_after_the_record_that_gives_it_up_is_synced(rig: Rig) -> None:
    file = rig.file()
    rig.journal.append([RECORD], 1)
    begin = len(rig.disk.record)

    rig.disposal.remove([file])
    rig.finish()

    removed = [step for step in kinds(rig.disk.record[begin:]) if step in {Sync, Remove}]
    assert removed[:2] == [Sync, Remove]
    assert rig.disk.names("data") == []
    assert file.number not in rig.catalogue.loose
    assert not rig.reserve.is_short, "there may be room for it again"


def test_without_that_sync_no_file_goes_and_the_store_is_told(rig: Rig) -> None:
    file = rig.file()
    rig.journal.append([RECORD], 1)
    rig.fail(Sync)

    rig.disposal.remove([file])
    rig.finish()

    assert [type(each) for each in rig.failures] == [StoreClosed]
    assert rig.disk.names("data") == ["1"]
    assert file.number in rig.catalogue.loose


def test_a_file_that_cannot_be_removed_is_left_to_the_next_opening(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    files = [rig.file(), rig.file()]
    rig.fail(Remove)

    rig.disposal.remove(files)
    rig.finish()

    assert "data file was not removed file=1 error=" in caplog.text
    assert rig.disk.names("data") == ["1"]
    assert rig.catalogue.loose == {1}
    assert rig.failures == []


def test_what_was_not_synced_is_synced_before_its_handle_is_closed(rig: Rig) -> None:
    file = rig.file()
    begin = len(rig.disk.record)

    rig.retire(file)
    rig.finish()

    assert kinds(rig.disk.record[begin:]) == [Sync, SyncDirectory]
    assert (file.synced, file.in_directory) == (1, True)
    assert file not in rig.catalogue.dirty


def test_a_write_after_the_handle_was_retired_is_not_taken_for_synced(rig: Rig) -> None:
    file = rig.file()
    rig.disk.before_sync = lambda _: setattr(file, "writes", file.writes + 1)

    rig.retire(file)
    rig.finish()

    assert (file.writes > 1, file.synced) == (True, 1)


@pytest.mark.parametrize("change", [lambda file: setattr(file, "synced", file.writes), None])
def test_what_is_synced_or_deleted_is_only_closed(
    rig: Rig, change: Callable[[DataFile], None] | None
) -> None:
    file = rig.file()
    if change is None:
        rig.catalogue.discard([file])
    else:
        change(file)
    begin, descriptors = len(rig.disk.record), rig.disk.descriptors

    rig.retire(file)
    rig.finish()

    assert rig.disk.record[begin:] == []
    assert rig.disk.descriptors == descriptors - 1


@pytest.mark.parametrize("kind", [Sync, SyncDirectory])
def test_a_failed_sync_is_the_segments_failure_and_the_handle_is_closed(
    rig: Rig, kind: type[Step]
) -> None:
    file = rig.file()
    rig.fail(kind)
    descriptors = rig.disk.descriptors

    rig.retire(file)
    rig.finish()

    assert isinstance(rig.segment.failure, SegmentFailed)
    assert file.synced == 0
    assert rig.disk.descriptors == descriptors - 1


def test_once_the_threads_have_ended_a_handle_is_closed_at_once(rig: Rig) -> None:
    file = rig.file()
    rig.finish()
    rig.disposal.is_over = True
    begin, descriptors = len(rig.disk.record), rig.disk.descriptors

    rig.retire(file)

    assert not [step for step in rig.disk.record[begin:] if isinstance(step, Write | Sync)]
    assert rig.disk.descriptors == descriptors - 1
