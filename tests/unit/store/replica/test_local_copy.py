"""A member's own copy: what it has after operations, failures and crashes at every step."""

import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from store.errors import DiskFull, SegmentFailed, StoreError
from store.files import DirectoryFiles
from store.replica.local_copy import MEMBER, OWN, LocalCopy, Place, is_own, place_in
from store.replica.message import Link
from store.replica.operations import (
    Create,
    Cut,
    MakeDirectory,
    Operation,
    Punch,
    Remove,
    Rename,
    Write,
    Zero,
)
from tests.simulation.crash import Aftermath, Crash
from tests.simulation.disk import Create as Created
from tests.simulation.disk import (
    Disk,
    Failure,
    Image,
    MemoryFile,
    Step,
    Sync,
    SyncDirectory,
)
from tests.simulation.disk import Remove as Removed
from tests.simulation.disk import Rename as Renamed
from tests.simulation.disk import Write as Written

CLUSTER: Final = bytes(range(16))
Messages = Sequence[Sequence[Operation]]

HISTORY: Final[Messages] = (
    (
        MakeDirectory("data"),
        MakeDirectory("journal/old"),
        Create("data/1"),
        Write("data/1", 0, b"a"),
    ),
    (Write("data/1", 600, b"b" * 700), Zero("data/2", 10, 900), Write("journal/1", 0, b"j" * 100)),
    (
        Create("checkpoint.new"),
        Write("checkpoint.new", 0, b"first" * 100),
        Rename("checkpoint.new", "checkpoint"),
        Write("data/1", 3, b"behind the renaming"),
    ),
    (
        Remove("checkpoint.new"),
        Create("checkpoint.new"),
        Write("checkpoint.new", 0, b"second"),
        Rename("checkpoint.new", "checkpoint"),
        Create("checkpoint.new"),
        Write("checkpoint.new", 0, b"third" * 200),
        Rename("checkpoint.new", "checkpoint"),
        Create("checkpoint.new"),
        Write("checkpoint.new", 0, b"not finished"),
    ),
    (Cut("data/1", 40), Write("data/1", 2000, b"far"), Punch("data/1", 0, 20), Cut("data/2", 2)),
    (Remove("data/2"), Create("data/2"), Write("data/2", 5, b"again"), Remove("journal/1")),
    (Write("journal/1", 7, b"made anew"), Cut("journal/1", 3_000), Remove("never was")),
    (Rename("data/1", "journal/old/1"), Write("data/1", 1, b"another"), Remove("data/2")),
)
"""Each thing that a store does, in an order in which doing it again from too early would show."""


def link_of(number: int) -> Link:
    return Link(number, 1, bytes([number]) * 16)


def apply(copy: LocalCopy, messages: Messages, sync_each: int = 0) -> None:
    """Apply the messages that a copy has not yet; the first has number 1, and position 10."""
    for number in range(copy.place.link.number + 1, len(messages) + 1):
        copy.apply(link_of(number), 10 * number + 1, messages[number - 1])
        if sync_each and number % sync_each == 0:
            copy.sync()


def copy_on(disk: Disk) -> LocalCopy:
    place = place_in(disk)
    return LocalCopy(disk, place or Place(CLUSTER), is_begun=place is not None)


def contents(image: Image) -> dict[str, bytes]:
    """Return what a disk has of the files that are in messages."""
    return {path: image.contents[inode] for path, inode in image.names.items() if not is_own(path)}


def outcome_of(messages: Messages) -> dict[str, bytes]:
    """Return what a disk has that was never in trouble."""
    disk = Disk()
    copy = copy_on(disk)
    apply(copy, messages)
    copy.sync()
    return contents(disk.image())


def without_old_inodes(image: Image) -> Image:
    """Return an image on which a disk gives no file an inode that was there before."""
    spare = max(image.contents, default=0) + 1_000
    return Image(image.directories, image.names, {**image.contents, spare: b""})


class TestPlaces:
    """The words of the file `member`."""

    def test_a_place_comes_back_as_it_was_packed(self) -> None:
        place = Place(CLUSTER, link_of(7), 71, 3)

        assert Place.unpack(place.pack()) == place

    def test_a_directory_without_the_file_is_no_members(self) -> None:
        assert place_in(Disk()) is None

    @pytest.mark.parametrize(
        "data", [b"", b"[]", b"{}", b"\xff", Place(CLUSTER).pack()[:40], b'{"format": 1}']
    )
    def test_a_damaged_file_says_so(self, data: bytes) -> None:
        with pytest.raises(SegmentFailed, match="damaged"):
            Place.unpack(data)

    def test_a_file_of_another_format_says_which(self) -> None:
        data = Place(CLUSTER).pack().replace(b'"format": 1', b'"format": 2')

        with pytest.raises(SegmentFailed, match="has format 2, and this version reads 1"):
            Place.unpack(data)


def test_each_operation_is_applied() -> None:
    assert outcome_of(HISTORY) == {
        "checkpoint": b"third" * 200,
        "checkpoint.new": b"not finished",
        "data/1": b"\0another",
        "journal/1": (bytes(7) + b"made anew")[:3_000].ljust(3_000, b"\0"),
        "journal/old/1": bytes(20) + b"ng" + bytes(1978) + b"far",
    }


def test_the_same_on_a_directory_of_the_system(tmp_path: Path) -> None:
    files = DirectoryFiles(tmp_path)
    copy = LocalCopy(files, Place(CLUSTER), is_begun=False)
    apply(copy, HISTORY, sync_each=3)
    copy.sync()
    copy.close()

    found = {
        str(path.relative_to(tmp_path)): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file() and not is_own(path.name)
    }
    assert found == outcome_of(HISTORY)
    assert place_in(files) == Place(CLUSTER, link_of(8), 81)


@pytest.mark.parametrize("sync_each", [0, 3])
@pytest.mark.parametrize("crash", Crash, ids=lambda crash: crash.value)
def test_a_crash_at_any_step_leaves_what_can_be_brought_up(crash: Crash, sync_each: int) -> None:
    disk, expected = Disk(), outcome_of(HISTORY)
    copy = copy_on(disk)
    apply(copy, HISTORY, sync_each)
    copy.sync()
    chance, aftermath = random.Random(sync_each), Aftermath()
    for cut, torn in enumerate([*disk.record, None]):
        image, after = aftermath.after(crash, chance, torn)
        story = f"crash at {cut} of {len(disk.record)}, {torn}"
        second = Disk(without_old_inodes(image))
        brought_up(second, expected, story)
        again_at = chance.randint(0, len(second.record))
        again = chance.choice([*Crash])
        for step in second.record[:again_at]:
            after.advance(step, chance)
        torn_again = second.record[again_at] if again_at < len(second.record) else None
        image, _ = after.after(again, chance, torn_again)
        brought_up(Disk(without_old_inodes(image)), expected, f"{story}, {again} at {again_at}")
        if torn is not None:
            aftermath.advance(torn, chance)


def bring_up(copy: LocalCopy) -> None:
    apply(copy, HISTORY)
    copy.sync()


def brought_up(disk: Disk, expected: dict[str, bytes], story: str) -> None:
    """Bring up what a crash has left, and demand that it is whole."""
    try:
        bring_up(copy_on(disk))
    except StoreError as error:
        raise AssertionError(story) from error
    assert contents(disk.image()) == expected, story
    assert place_in(disk) == Place(CLUSTER, link_of(8), 81)


def is_change(step: Step) -> bool:
    return isinstance(step, Written | Created | Renamed | Removed)


@pytest.mark.parametrize("times", [1, 3])
def test_a_copy_goes_on_where_the_disk_was_full(times: int) -> None:
    expected, disk = outcome_of(HISTORY), Disk()
    apply(copy_on(disk), HISTORY, sync_each=2)
    steps = sum(map(is_change, disk.record))
    for after in range(steps):
        disk = Disk()
        copy = copy_on(disk)
        disk.failures.append(
            Failure(is_change, after=after, times=times, is_full=True, keeps_bytes=after % 3)
        )
        failed = 0
        while True:
            try:
                apply(copy, HISTORY, sync_each=2)
                copy.sync()
            except DiskFull:
                failed += 1
                if failed % 2:  # what has come so far may be noted meanwhile
                    synced_if_there_is_room(copy)
                continue
            break
        assert failed
        assert contents(disk.image()) == expected, after
        second = copy_on(Disk(disk.image()))
        assert second.place == copy.place


def synced_if_there_is_room(copy: LocalCopy) -> None:
    with suppress(DiskFull):
        copy.sync()


def test_a_copy_that_was_full_and_died_is_brought_up() -> None:
    expected = outcome_of(HISTORY)
    chance = random.Random(4)
    for after in range(40):
        disk = Disk()
        copy = copy_on(disk)
        disk.failures.append(Failure(is_change, after=after, is_full=True))
        with pytest.raises(DiskFull):
            bring_up(copy)
        synced_if_there_is_room(copy)
        try:
            apply(copy, HISTORY[: chance.randint(0, 8)])
        except DiskFull:
            raise AssertionError(after) from None
        aftermath = Aftermath()
        for step in disk.record:
            aftermath.advance(step, chance)
        for crash in Crash:
            image, _ = aftermath.after(crash, chance, None)
            brought_up(Disk(without_old_inodes(image)), expected, f"full at {after}, {crash}")


@pytest.mark.parametrize("kind", [Sync, SyncDirectory])
def test_nothing_is_noted_after_a_sync_that_failed(kind: type[Step]) -> None:
    disk = Disk()
    apply(copy_on(disk), HISTORY)
    for after in range(sum(isinstance(step, kind) for step in disk.record)):
        disk = Disk()
        copy = copy_on(disk)
        disk.failures.append(Failure(lambda step: isinstance(step, kind), after=after))
        with pytest.raises(SegmentFailed):
            bring_up(copy)
        noted = disk.image()
        for _ in range(2):
            with pytest.raises(SegmentFailed):
                copy.sync()
            with pytest.raises(SegmentFailed):
                apply(copy, HISTORY)
        assert disk.image() == noted


def test_a_sync_notes_how_far_it_is() -> None:
    disk = Disk()
    copy = copy_on(disk)
    apply(copy, HISTORY[:2])
    assert copy.synced == Place(CLUSTER)
    assert place_in(disk) == Place(CLUSTER)

    copy.sync()

    assert place_in(disk) == copy.place == copy.synced == Place(CLUSTER, link_of(2), 21)
    steps = len(disk.record)
    copy.sync()
    assert len(disk.record) == steps


def test_a_directory_says_that_it_is_a_members_before_anything_is_in_it() -> None:
    disk = Disk()
    copy = copy_on(disk)
    copy.sync()
    assert disk.record == []

    apply(copy, HISTORY[:1])

    aftermath, chance = Aftermath(), random.Random(1)
    for step in disk.record:
        aftermath.advance(step, chance)
        image = aftermath.after(Crash.REORDERED, chance, None)[0]
        assert not contents(image) or MEMBER in image.names


def test_a_copy_of_nothing_may_become_that_of_another_cluster() -> None:
    disk = Disk()
    copy = copy_on(disk)
    copy.begin()

    copy.adopt(bytes(16))
    apply(copy, HISTORY[:1])

    assert place_in(disk) == Place(bytes(16))


def test_own_files_are_never_touched() -> None:
    disk = Disk()
    for name in OWN:
        file = disk.open(name, create=True)
        file.write_at(name.encode(), 0)
        file.close()
    before = {path: disk.image().contents[inode] for path, inode in disk.image().names.items()}
    copy = LocalCopy(disk, Place(CLUSTER))
    operations: list[Operation] = []
    for path in (*OWN, "set-aside/x"):
        operations += [Write(path, 0, b"!"), Zero(path, 0, 2), Cut(path, 1), Punch(path, 0, 1)]
        operations += [Create(path), Rename(path, "a"), Rename("b", path), Remove(path)]
    operations += [MakeDirectory("set-aside"), MakeDirectory("set-aside/x")]

    copy.apply(link_of(1), 11, [Write("b", 0, b"theirs"), *operations])

    image = disk.image()
    assert {path: image.contents[image.names[path]] for path in before} == before
    assert contents(image) == {"b": b"theirs"}
    assert image.directories == {""}


def test_what_was_applied_is_told_of_in_its_order() -> None:
    copy, told = copy_on(Disk()), list[Operation]()
    operations = [each for message in HISTORY for each in message]

    copy.apply(link_of(1), 11, [Write("lock", 0, b"own"), *operations], told.append)

    assert told == operations


def test_an_operation_whose_listener_fails_is_told_of_again() -> None:
    copy, told = copy_on(Disk()), list[Operation]()
    operations: list[Operation] = [Create("a"), Create("b"), Create("c")]

    def tell(operation: Operation) -> None:
        told.append(operation)
        if told == operations[:2]:
            raise DiskFull("now")

    with pytest.raises(DiskFull):
        copy.apply(link_of(1), 11, operations, tell)
    copy.apply(link_of(1), 11, operations, tell)

    assert told == [Create("a"), Create("b"), Create("b"), Create("c")]


def test_many_files_keep_few_descriptors() -> None:
    disk = Disk()
    copy = copy_on(disk)
    names = [f"file-{number}" for number in range(300)]

    copy.apply(link_of(1), 11, [Write(name, 0, name.encode()) for name in names])
    assert disk.descriptors <= 64
    copy.sync()
    copy.close()

    assert disk.descriptors == 0
    assert contents(disk.image()) == {name: name.encode() for name in names}


def test_a_file_system_that_cannot_punch_gets_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryFile, "punch", lambda *_: False)
    disk = Disk()

    copy_on(disk).apply(
        link_of(1), 11, [Write("a", 0, b"x" * 100), Punch("a", 90, 50), Punch("a", 0, 1)]
    )

    assert contents(disk.image()) == {"a": b"\0" + b"x" * 89 + bytes(10)}


def test_a_file_that_cannot_be_removed_is_a_failure() -> None:
    disk = Disk()
    copy = copy_on(disk)
    disk.failures.append(Failure(lambda step: isinstance(step, Removed)))
    operations: list[Operation] = [Write("a", 0, b"old"), Remove("a"), Create("a")]

    with pytest.raises(SegmentFailed):
        copy.apply(link_of(1), 11, operations)
    copy.apply(link_of(1), 11, operations)

    assert contents(disk.image()) == {"a": b""}
