"""A follower: what it applies, what it refuses, and how it begins a term."""

from collections.abc import Callable, Sequence
from typing import Final

import pytest

from store.errors import DiskFull, StoreError
from store.replica.follower import READ_MAX, Follower, NeedsBase
from store.replica.local_copy import LocalCopy, Place, place_in
from store.replica.log import Entry, LogAway, LogError, LogGap
from store.replica.message import (
    BEGINNING,
    FORMAT,
    HEAD_BYTES,
    Fence,
    Message,
    MessageKind,
    OtherMessageFormat,
    UnreadableMessage,
)
from store.replica.operations import UnreadableOperation, Write
from tests.simulation.disk import Disk, Failure
from tests.simulation.disk import Write as Written
from tests.unit.store.replica.scripted import (
    CLUSTER,
    Active,
    ChangedLog,
    Fault,
    ScriptedLog,
    contents,
    copy_on,
    follower_of,
    kinds_of,
)

SMALL: Final = HEAD_BYTES + 300


@pytest.fixture
def shared_log() -> ChangedLog:
    return ChangedLog(SMALL)


@pytest.fixture
def active(shared_log: ChangedLog) -> Active:
    return Active(shared_log)


def write(active: Active, numbers: Sequence[int] = range(3)) -> None:
    """Store a message for each number."""
    for number in numbers:
        active.shipping.add(Write("a", number * 200, bytes([number + 1]) * 200))
        active.shipping.settle()


def written(count: int) -> dict[str, bytes]:
    return {"a": b"".join(bytes([number + 1]) * 200 for number in range(count))}


def follower_on(shared_log: ScriptedLog, disk: Disk, *, has_base: bool = False) -> Follower:
    return Follower(shared_log, copy_on(disk), has_base=has_base)


class TestFollowing:
    """Messages are applied in their order, each once."""

    def test_all_messages_are_applied(self, shared_log: ChangedLog, active: Active) -> None:
        write(active)
        disk = Disk()
        follower = follower_on(shared_log, disk)
        known = [follower.active]

        assert follower.step() == 4
        assert follower.step() == 0

        assert contents(disk.image()) == written(3)
        assert [*known, follower.active] == [None, "one"]
        assert follower.copy.place == active.copy.place

    def test_a_step_takes_so_many_messages_at_most(
        self, shared_log: ChangedLog, active: Active
    ) -> None:
        write(active, range(READ_MAX + 5))
        follower = follower_on(shared_log, Disk())

        assert [follower.step() for _ in range(3)] == [READ_MAX, 6, 0]

    def test_beats_between_messages_are_nothing(
        self, shared_log: ChangedLog, active: Active
    ) -> None:
        for number in range(3):
            write(active, [number])
            shared_log.beat("one", b"")
        follower = follower_of(shared_log)

        assert follower.copy.place.link.number == 4
        write(active, [3])
        assert follower.step() == 1

    def test_a_message_that_comes_twice_is_applied_once(
        self, shared_log: ChangedLog, active: Active
    ) -> None:
        write(active)
        disk = Disk()
        follower = follower_on(shared_log, disk)
        shared_log.changed = lambda entries: [each for each in entries for _ in range(2)]

        assert follower.step() == 4
        assert contents(disk.image()) == written(3)

    def test_it_goes_on_where_its_disk_was_full(
        self, shared_log: ChangedLog, active: Active
    ) -> None:
        write(active)
        disk = Disk()
        disk.failures.append(
            Failure(lambda step: isinstance(step, Written), after=2, times=3, is_full=True)
        )
        follower, failed = follower_on(shared_log, disk), 0
        while follower.copy.place.link.number < 4:
            try:
                follower.step()
            except DiskFull:
                failed += 1

        assert failed == 3
        assert contents(disk.image()) == written(3)

    def test_it_goes_on_after_a_start(self, shared_log: ChangedLog, active: Active) -> None:
        write(active)
        disk = Disk()
        follower = follower_of(shared_log, disk)
        follower.copy.sync()
        write(active, [3])
        again = follower_on(shared_log, Disk(disk.image()))

        assert again.copy.place == follower.copy.place
        assert again.active is None
        assert again.step() == 1

    def test_the_names_of_the_active_members_are_known(
        self, shared_log: ChangedLog, active: Active
    ) -> None:
        follower = follower_of(shared_log)
        assert follower.active == "one"
        active.shipping.hand_over()
        follower.step()
        assert follower.active == ""
        follower_of(shared_log).take_over("two", 0)
        follower.step()

        assert follower.active == "two"


def without(index: int) -> Callable[[list[Entry]], list[Entry]]:
    return lambda entries: entries[:index] + entries[index + 1 :]


def damaged(index: int, place: int) -> Callable[[list[Entry]], list[Entry]]:
    def change(entries: list[Entry]) -> list[Entry]:
        data = bytearray(entries[index].data)
        data[place] ^= 1
        return [
            *entries[:index],
            Entry(entries[index].position, bytes(data)),
            *entries[index + 1 :],
        ]

    return change


class TestRefusing:
    """Messages that do not follow are not applied."""

    @pytest.mark.parametrize("index", range(3))
    def test_a_gap_is_seen(self, shared_log: ChangedLog, active: Active, index: int) -> None:
        write(active)
        disk = Disk()
        follower = follower_on(shared_log, disk)
        shared_log.changed = without(index)

        with pytest.raises(LogGap, match=f"message {index + 1} is not in the log"):
            follower.step()

        assert follower.copy.place.link.number == index
        shared_log.changed = lambda entries: entries
        follower.catch_up()
        assert contents(disk.image()) == written(3)

    @pytest.mark.parametrize("place", [0, 2, 3, 30, 50, HEAD_BYTES - 1, HEAD_BYTES, -1])
    @pytest.mark.parametrize("index", range(4))
    def test_nothing_of_a_damaged_message_is_applied(
        self, shared_log: ChangedLog, active: Active, index: int, place: int
    ) -> None:
        write(active)
        disk = Disk()
        follower = follower_on(shared_log, disk)
        shared_log.changed = damaged(index, place)

        with pytest.raises(UnreadableMessage):
            follower.step()

        assert follower.copy.place.link.number == index
        assert contents(disk.image()) == (written(index - 1) if index > 1 else {})
        shared_log.changed = lambda entries: entries
        follower.catch_up()
        assert contents(disk.image()) == written(3)

    def test_a_trimmed_log_is_a_gap_for_a_late_member(
        self, shared_log: ChangedLog, active: Active
    ) -> None:
        write(active)
        shared_log.trim(4)

        with pytest.raises(LogGap):
            follower_on(shared_log, Disk()).step()

    def test_another_cluster_is_refused(self, shared_log: ChangedLog, active: Active) -> None:
        write(active)
        other = Active(ScriptedLog(SMALL))
        other.copy.adopt(bytes(16))
        other_log = ScriptedLog(SMALL)
        assert Follower(other_log, other.copy).take_over("one", 0)
        disk = Disk()
        follower_of(other_log, disk).copy.sync()
        before = disk.image()

        follower = follower_on(shared_log, disk)
        for act in (follower.step, follower.catch_up, lambda: follower.take_over("two", 0)):
            with pytest.raises(UnreadableMessage, match="is of another cluster"):
                act()
        assert disk.image() == before

    def test_a_newer_version_is_named(self, shared_log: ChangedLog, active: Active) -> None:
        write(active)
        newer = (FORMAT + 1).to_bytes(2, "little")
        shared_log.changed = lambda entries: [
            Entry(each.position, newer + each.data[2:]) for each in entries
        ]

        with pytest.raises(OtherMessageFormat, match=f"has format {FORMAT + 1}"):
            follower_on(shared_log, Disk()).step()

    def test_operations_that_are_none_are_refused(
        self, shared_log: ChangedLog, active: Active
    ) -> None:
        link = active.copy.place.link
        numbers = (link.term, link.number + 1, 0, link.hash)
        body = b"\xff\1\0a"
        position = active.copy.place.position - 1
        data = Message(MessageKind.OPERATIONS, CLUSTER, *numbers, body).pack()
        assert isinstance(shared_log.append(data, position).wait(), int)
        follower = follower_on(shared_log, Disk())

        for _ in range(2):
            with pytest.raises(UnreadableOperation, match="kind 255 is not known"):
                follower.step()

    def test_a_log_that_ends_before_the_directory_is_refused(
        self, shared_log: ChangedLog, active: Active
    ) -> None:
        write(active)
        older = ScriptedLog(SMALL)
        for entry in shared_log.entries()[:2]:
            last = older.last()
            older.append(entry.data, 0 if last is None else last.position)
        disk = Disk()
        follower_of(shared_log, disk).copy.sync()

        with pytest.raises(LogError, match="ends with message 2, and this directory has 4"):
            follower_on(older, disk).catch_up()

    def test_an_empty_log_is_not_that_of_a_directory_with_messages(
        self, shared_log: ChangedLog, active: Active
    ) -> None:
        write(active)
        disk = Disk()
        follower_of(shared_log, disk).copy.sync()

        with pytest.raises(LogError, match="is empty, and this directory has messages"):
            follower_on(ScriptedLog(), disk).catch_up()

    def test_another_message_of_the_same_number_is_refused(self) -> None:
        logs = [ScriptedLog(SMALL), ScriptedLog(SMALL)]
        for number, each in enumerate(logs):
            write(Active(each), [number])
        disk = Disk()
        follower_of(logs[0], disk).copy.sync()

        with pytest.raises(UnreadableMessage, match="message 2 is another than is known here"):
            follower_on(logs[1], disk).take_over("two", 0)

    def test_files_that_are_not_in_the_log_are_needed(self, shared_log: ChangedLog) -> None:
        base = Disk()
        assert follower_on(shared_log, base, has_base=True).take_over("one", 0)
        disk = Disk()

        for _ in range(2):
            with pytest.raises(NeedsBase, match="begins with the files of member one"):
                follower_on(shared_log, disk).step()
        assert place_in(disk) is None

    def test_the_member_with_the_files_goes_on_after_a_crash_that_lost_its_note(
        self, shared_log: ChangedLog
    ) -> None:
        base = Disk()
        assert follower_on(shared_log, base, has_base=True).take_over("one", 0)

        again = follower_on(shared_log, base, has_base=True)

        assert again.take_over("one", 0)
        assert kinds_of(shared_log) == [MessageKind.FENCE, MessageKind.FENCE]
        bases = [Fence.unpack(Message.unpack(each.data).body) for each in shared_log.entries()]
        assert bases == [Fence("one", has_base=True), Fence("one")]


class TestTakingOver:
    """A term begins behind everything that is stored, or not at all."""

    def test_a_log_that_is_empty_begins_with_a_fence(self, shared_log: ChangedLog) -> None:
        follower = follower_on(shared_log, Disk())

        position = follower.take_over("one", 77)

        (entry,) = shared_log.entries()
        assert entry.position == position
        link, message = BEGINNING.after(entry.data, CLUSTER)
        assert (message.kind, message.term, message.number, message.at_ms) == (
            MessageKind.FENCE,
            1,
            1,
            77,
        )
        assert Fence.unpack(message.body) == Fence("one")
        assert follower.active == "one"
        assert follower.copy.place.link == link

    def test_all_that_is_stored_is_applied_before(
        self, shared_log: ChangedLog, active: Active
    ) -> None:
        write(active, range(READ_MAX * 2))
        disk = Disk()
        follower = follower_on(shared_log, disk)

        assert follower.take_over("two", 0)

        assert contents(disk.image()) == written(READ_MAX * 2)
        assert follower.copy.place.link.term == READ_MAX * 2 + 2

    def test_a_read_that_lags_is_waited_for(self, shared_log: ChangedLog, active: Active) -> None:
        write(active)
        disk = Disk()
        shared_log.reads = 0
        shared_log.changed = lambda entries: entries[:1] if shared_log.reads % 3 == 0 else []

        assert follower_on(shared_log, disk).take_over("two", 0)

        assert contents(disk.image()) == written(3)
        assert shared_log.reads >= 12

    def test_a_message_that_comes_between_is_quicker(
        self, shared_log: ChangedLog, active: Active
    ) -> None:
        write(active)
        shared_log.script.append(lambda: write(active, [3]))
        disk = Disk()
        follower = follower_on(shared_log, disk)

        assert follower.take_over("two", 0) is None

        assert follower.copy.place.link.term == 1
        assert follower.take_over("two", 0)
        assert contents(disk.image()) == written(4)

    def test_of_two_members_one_is_quicker(self, shared_log: ChangedLog, active: Active) -> None:
        write(active)
        first, second = follower_of(shared_log), follower_of(shared_log)
        shared_log.script.append(lambda: first.take_over("two", 0))

        assert second.take_over("three", 0) is None

        assert first.copy.place.link.term == 5
        second.step()
        assert second.active == "two"

    def test_of_two_new_members_the_slower_one_joins_the_other(
        self, shared_log: ChangedLog
    ) -> None:
        first = Follower(shared_log, LocalCopy(Disk(), Place(CLUSTER), is_begun=False))
        disk = Disk()
        second = Follower(shared_log, LocalCopy(disk, Place(bytes(16)), is_begun=False))
        shared_log.script.append(lambda: first.take_over("one", 0))

        assert second.take_over("two", 0) is None
        assert second.step() == 1

        place = place_in(disk)
        assert place is not None
        assert place.cluster == CLUSTER

    @pytest.mark.parametrize(
        ("fault", "is_stored"),
        [(Fault.LOST, True), (Fault.LATE, True), (Fault.DROPPED, False), (Fault.REFUSED, False)],
    )
    def test_a_fence_whose_answer_is_lost_is_looked_for(
        self, shared_log: ChangedLog, active: Active, fault: Fault, *, is_stored: bool
    ) -> None:
        write(active)
        shared_log.script.append(fault)
        follower = follower_of(shared_log)

        assert (follower.take_over("two", 0) is not None) is is_stored

        assert follower.copy.place.link.number == (5 if is_stored else 4)
        assert kinds_of(shared_log).count(MessageKind.FENCE) == (2 if is_stored else 1)

    def test_the_time_does_not_fall_when_another_clock_is_behind(
        self, shared_log: ChangedLog, active: Active
    ) -> None:
        active.now_ms = 1_000
        write(active)
        follower = follower_of(shared_log)

        follower.take_over("two", 400)

        last = shared_log.last()
        assert last is not None
        assert Message.unpack(last.data).at_ms == follower.began_ms == 1_000

    def test_a_log_that_is_away_is_an_error(self, shared_log: ChangedLog) -> None:
        shared_log.away = 1
        follower = follower_on(shared_log, Disk())

        with pytest.raises(LogAway):
            follower.take_over("one", 0)
        assert follower.take_over("one", 0)

    def test_the_directory_is_a_members_before_the_fence_is_stored(
        self, shared_log: ChangedLog
    ) -> None:
        disk = Disk()
        seen: list[object] = []
        shared_log.script.append(lambda: seen.append(place_in(disk)))

        follower_on(shared_log, disk).take_over("one", 0)

        assert seen == [Place(CLUSTER)]

    def test_a_disk_that_fails_begins_no_term(self, shared_log: ChangedLog) -> None:
        disk = Disk()
        disk.failures.append(Failure(lambda step: isinstance(step, Written)))

        with pytest.raises(StoreError):
            follower_on(shared_log, disk).take_over("one", 0)
        assert shared_log.last() is None
