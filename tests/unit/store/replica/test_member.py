"""A member: which directories may become one, and what it is from its first term on."""

from pathlib import Path

import pytest

from store.errors import SegmentFailed, StoreLocked
from store.files import DirectoryFiles
from store.replica.follower import NeedsBase
from store.replica.local_copy import MEMBER, place_in
from store.replica.log import LogError
from store.replica.member import Member, shared_names
from store.replica.message import Fence, Message, UnreadableMessage
from tests.conformance.memory_log import MemoryLog
from tests.simulation.disk import Disk
from tests.unit.store.replica.scripted import ScriptedLog, contents


@pytest.fixture
def shared_log() -> ScriptedLog:
    return ScriptedLog()


def member_on(disk: Disk, shared_log: MemoryLog, name: str = "one", now_ms: int = 0) -> Member:
    return Member(
        disk,
        shared_log,
        name=name,
        ordered=(),
        now_ms=lambda: now_ms,
        pause=lambda: None,
    )


def with_file(path: str = "checkpoint", data: bytes = b"of before") -> Disk:
    """Return a disk with a file that no member has written."""
    disk = Disk()
    file = disk.open(path, create=True)
    file.write_at(data, 0)
    file.sync()
    file.close()
    disk.sync_directory("")
    return disk


def write(member: Member, path: str = "a", data: bytes = b"stored") -> None:
    """Take over, and store something."""
    files = member.take_over()
    assert files is not None
    file = files.open(path, create=True)
    file.write_at(data, 0)
    file.sync()
    file.close()


def restarted(disk: Disk) -> Disk:
    """Return the disk for another process."""
    return Disk(disk.image())


def test_a_new_member_begins_a_cluster(shared_log: ScriptedLog) -> None:
    disk = Disk()
    member = member_on(disk, shared_log)

    write(member)

    assert contents(disk.image()) == {"a": b"stored"}
    assert member.follower.active == "one"
    assert len({Message.unpack(each.data).cluster for each in shared_log.entries()}) == 1


def test_two_clusters_have_two_ids() -> None:
    ids = set()
    for _ in range(2):
        disk = Disk()
        write(member_on(disk, ScriptedLog()))
        place = place_in(disk)
        assert place is not None
        ids.add(place.cluster)

    assert len(ids) == 2


def test_a_second_member_has_all_files(shared_log: ScriptedLog) -> None:
    write(member_on(Disk(), shared_log))
    disk = Disk()
    second = member_on(disk, shared_log, "two")

    second.follower.catch_up()
    second.close()

    assert contents(disk.image()) == {"a": b"stored"}
    place = place_in(disk)
    assert place is not None
    assert place.link.number == 2


def test_a_member_that_was_killed_at_once_is_a_member(shared_log: ScriptedLog) -> None:
    disk = Disk()
    write(member_on(disk, shared_log))

    again = member_on(restarted(disk), shared_log)
    write(again, "b")

    assert again.follower.copy.place.link.number == 4


def test_a_plain_directory_becomes_the_base_of_a_new_cluster(shared_log: ScriptedLog) -> None:
    disk = with_file()
    member = member_on(disk, shared_log)

    write(member)

    fence = Fence.unpack(Message.unpack(shared_log.entries()[0].data).body)
    assert fence == Fence("one", has_base=True)
    assert contents(disk.image()) == {"a": b"stored", "checkpoint": b"of before"}
    other = member_on(Disk(), shared_log, "two")
    with pytest.raises(NeedsBase):
        other.follower.catch_up()


def test_a_base_that_was_killed_at_once_goes_on(shared_log: ScriptedLog) -> None:
    disk = with_file()
    write(member_on(disk, shared_log))

    write(member_on(restarted(disk), shared_log), "b")

    fences = [Message.unpack(each.data) for each in shared_log.entries()]
    assert [Fence.unpack(each.body).has_base for each in fences if each.kind == 2] == [True, False]


def test_a_base_whose_fence_was_not_stored_tries_again(shared_log: ScriptedLog) -> None:
    disk = with_file()
    member_on(disk, shared_log).follower.copy.begin()

    write(member_on(restarted(disk), shared_log))

    fence = Fence.unpack(Message.unpack(shared_log.entries()[0].data).body)
    assert fence.has_base


def test_a_copy_of_the_base_goes_on_behind_it(shared_log: ScriptedLog) -> None:
    disk = with_file()
    first = member_on(disk, shared_log)
    write(first)
    first.follower.copy.sync()
    copied = restarted(disk)
    write(first, "b")

    second = member_on(copied, shared_log, "two")
    second.follower.catch_up()

    assert contents(copied.image()) == contents(disk.image())


def test_a_plain_directory_does_not_join_a_cluster(shared_log: ScriptedLog) -> None:
    write(member_on(Disk(), shared_log))
    disk = with_file()
    before = contents(disk.image())

    for _ in range(2):
        with pytest.raises(LogError, match="a store that is no member of this log's cluster"):
            member_on(disk, shared_log, "two")
    assert contents(disk.image()) == before
    assert MEMBER not in disk.names("")


def test_a_plain_directory_that_is_refused_stays_plain(shared_log: ScriptedLog) -> None:
    disk = with_file()
    member = member_on(disk, shared_log, "two")
    write(member_on(Disk(), shared_log))

    with pytest.raises(UnreadableMessage, match="another cluster"):
        member.follower.catch_up()
    member.close()

    assert MEMBER not in disk.names("")


def test_a_member_of_another_cluster_is_refused(shared_log: ScriptedLog) -> None:
    disk = Disk()
    member = member_on(disk, shared_log)
    write(member)
    member.close()
    other_log = ScriptedLog()
    write(member_on(Disk(), other_log))
    write(member_on(Disk(), other_log))

    with pytest.raises(UnreadableMessage, match="another cluster"):
        member_on(disk, other_log).take_over()


def test_new_members_that_start_at_once_become_one_cluster(shared_log: ScriptedLog) -> None:
    disks = {name: Disk() for name in ("one", "two", "three")}
    members = {name: member_on(disk, shared_log, name) for name, disk in disks.items()}
    shared_log.script.append(lambda: write(members["three"]))

    assert members["two"].take_over() is None

    for name in ("one", "two"):
        members[name].follower.catch_up()
        members[name].close()
        assert contents(disks[name].image()) == {"a": b"stored"}
    again = member_on(disks["two"], shared_log, "two")
    assert again.follower.catch_up()


def test_of_two_members_one_takes_over(shared_log: ScriptedLog) -> None:
    write(member_on(Disk(), shared_log))
    first, second = (member_on(Disk(), shared_log, name) for name in ("two", "three"))
    shared_log.script.append(first.take_over)

    assert second.take_over() is None


def test_a_directory_has_one_member_at_once(shared_log: ScriptedLog) -> None:
    disk = Disk()
    member = member_on(disk, shared_log)
    with pytest.raises(StoreLocked):
        member_on(disk, shared_log)
    member.close()

    member_on(disk, shared_log).close()


def test_a_member_that_cannot_be_opened_gives_its_lock_back(shared_log: ScriptedLog) -> None:
    disk = with_file(MEMBER, b"no place")
    for _ in range(2):
        with pytest.raises(SegmentFailed, match="is damaged"):
            member_on(disk, shared_log)

    assert disk.descriptors == 0


def test_the_time_goes_on_where_the_last_member_ended(shared_log: ScriptedLog) -> None:
    write(member_on(Disk(), shared_log, now_ms=5_000))
    write(member_on(Disk(), shared_log, "two", now_ms=100))
    write(member_on(Disk(), shared_log, "three", now_ms=6_000))

    times = [Message.unpack(each.data).at_ms for each in shared_log.entries()]
    assert times == [5_000] * 4 + [6_000] * 2


def test_own_files_make_no_store(tmp_path: Path) -> None:
    for name in ("lock", "member", "reserve", "token.key"):
        (tmp_path / name).touch()
    (tmp_path / "set-aside").mkdir()
    files = DirectoryFiles(tmp_path)

    assert shared_names(files) == []
    (tmp_path / "journal").mkdir()
    assert shared_names(files) == ["journal"]
