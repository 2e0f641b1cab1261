"""Shipping: what is acknowledged is in the log, in its order, whatever becomes of the answers."""

import itertools
import logging
import random
import threading
from collections.abc import Sequence
from typing import Final

import pytest

from store.errors import SegmentFailed
from store.replica.log import LogAway, LogError
from store.replica.message import HEAD_BYTES, Message, MessageKind
from store.replica.operations import Create, Operation, Write, size_of
from store.replica.shipping import (
    LOST_ANSWERS_MAX,
    MESSAGE_BYTES_MAX,
    WINDOW_BYTES,
    Fenced,
    Pauses,
)
from tests.simulation.disk import Disk, Failure
from tests.simulation.disk import Write as Written
from tests.unit.store.replica.scripted import (
    Active,
    Fault,
    RandomLog,
    ScriptedLog,
    contents,
    copy_on,
    follower_of,
    kinds_of,
    operations_of,
    taken_over,
)

SMALL: Final = HEAD_BYTES + 300
"""A message that has room for one of the writes below."""


@pytest.fixture
def shared_log() -> ScriptedLog:
    return ScriptedLog(SMALL)


@pytest.fixture
def active(shared_log: ScriptedLog) -> Active:
    return Active(shared_log)


def write(number: int) -> Write:
    return Write("a", number * 200, bytes([number + 1]) * 200)


def ship(active: Active, count: int) -> list[Operation]:
    """Ship some writes, and wait for them."""
    operations: list[Operation] = [write(number) for number in range(count)]
    for each in operations:
        active.shipping.add(each)
    active.shipping.settle()
    return operations


def demand_shipped(
    active: Active, shared_log: ScriptedLog, operations: Sequence[Operation]
) -> None:
    """Demand that all is in the log, was applied and told of, once and in its order."""
    assert operations_of(shared_log) == operations
    assert active.applied == operations
    disk = Disk()
    follower_of(shared_log, disk)
    assert contents(active.disk.image()) == contents(disk.image())


def test_operations_come_into_the_log_and_the_copy(active: Active, shared_log: ScriptedLog) -> None:
    operations = ship(active, 5)

    demand_shipped(active, shared_log, operations)
    assert kinds_of(shared_log) == [MessageKind.FENCE] + 5 * [MessageKind.OPERATIONS]
    assert active.pauses == 0


def test_small_operations_go_in_one_message(active: Active, shared_log: ScriptedLog) -> None:
    operations = [Create(f"f{number}") for number in range(10)]
    for each in operations:
        active.shipping.add(each)
    assert shared_log.appends == 1  # the fence

    active.shipping.settle()

    assert shared_log.appends == 2
    demand_shipped(active, shared_log, operations)


def test_a_whole_message_is_sent_before_anything_waits(
    active: Active, shared_log: ScriptedLog
) -> None:
    for number in range(2):
        active.shipping.add(write(number))

    assert shared_log.appends == 2


def test_what_is_not_acknowledged_is_never_in_the_copy(
    active: Active, shared_log: ScriptedLog
) -> None:
    seen: list[int] = []
    shared_log.on_wait = lambda: seen.append(len(active.applied))
    for number in range(4):
        active.shipping.add(write(number))
    assert active.applied == []
    assert "a" not in contents(active.disk.image())

    active.shipping.settle()

    assert seen == [0, 1, 2, 3]


@pytest.mark.parametrize("index", range(5))
@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.value)
def test_a_fault_of_the_log_delays_and_nothing_else(
    active: Active, shared_log: ScriptedLog, fault: Fault, index: int
) -> None:
    shared_log.script.extend([*[None] * index, fault])

    operations = ship(active, 5)

    demand_shipped(active, shared_log, operations)
    assert active.shipping.failure is None


@pytest.mark.parametrize("first", [None, *Fault])
def test_faults_one_after_the_other_delay_and_nothing_else(first: Fault | None) -> None:
    for faults in itertools.product([None, *Fault], repeat=3):
        shared_log = ScriptedLog(SMALL)
        active = Active(shared_log)
        shared_log.script.extend([first, *faults])

        demand_shipped(active, shared_log, ship(active, 5))


@pytest.mark.parametrize("at", [*itertools.combinations(range(6), 2)])
def test_beats_between_messages_leave_no_gap(
    active: Active, shared_log: ScriptedLog, at: tuple[int, int]
) -> None:
    for index in range(8):
        shared_log.script.append(Fault.BEAT if index in at else None)

    demand_shipped(active, shared_log, ship(active, 6))


def test_a_log_that_is_away_is_waited_for(
    active: Active, shared_log: ScriptedLog, caplog: pytest.LogCaptureFixture
) -> None:
    shared_log.script.append(Fault.DROPPED)
    shared_log.away = 20

    with caplog.at_level(logging.WARNING):
        operations = ship(active, 3)

    demand_shipped(active, shared_log, operations)
    assert active.pauses == 21
    assert active.shipping.pauses.count == 1
    begin, end = (record.getMessage() for record in caplog.records)
    assert begin == "the log does not answer, waiting seconds=0 reason=time-out"
    assert end.startswith("the log answers again")


@pytest.mark.parametrize("fault", [None, Fault.LOST, Fault.DROPPED, Fault.LATE, Fault.BEAT])
@pytest.mark.parametrize("index", range(4))
def test_another_member_that_takes_over_ends_it(
    active: Active, shared_log: ScriptedLog, fault: Fault | None, index: int
) -> None:
    shared_log.script.extend([*[None] * index, lambda: taken_over(shared_log), fault])

    with pytest.raises(Fenced, match="another member has taken over, in term"):
        ship(active, 5)

    shared_log.deliver()
    stored = operations_of(shared_log)
    assert active.applied == stored == [write(number) for number in range(index)]
    assert active.shipping.is_fenced
    appends = shared_log.appends
    active.shipping.add(write(9))
    with pytest.raises(Fenced):
        active.shipping.settle()
    with pytest.raises(Fenced):
        active.shipping.hand_over()
    assert shared_log.appends == appends
    assert active.applied == stored


def test_the_other_member_goes_on_where_it_was_fenced(
    active: Active, shared_log: ScriptedLog
) -> None:
    ship(active, 2)
    disk = Disk()
    other = Active(shared_log, "two", disk)
    for number in (2, 3):
        active.shipping.add(write(number))
        other.shipping.add(write(number + 10))

    with pytest.raises(Fenced):
        active.shipping.settle()
    other.shipping.settle()

    assert operations_of(shared_log) == [write(number) for number in (0, 1, 12, 13)]


def test_a_log_that_was_purged_is_an_error_in_the_end(
    active: Active, shared_log: ScriptedLog
) -> None:
    ship(active, 3)
    shared_log.is_empty = True
    shared_log.script.append(Fault.DROPPED)
    active.shipping.add(write(3))

    with pytest.raises(LogError, match=r"has lost what was stored: it is empty.*it was purged"):
        active.shipping.settle()

    assert active.pauses >= LOST_ANSWERS_MAX - 1
    assert not active.shipping.is_fenced
    assert len(active.applied) == 3
    with pytest.raises(LogError):
        active.shipping.settle()


def test_a_server_that_lags_when_it_is_asked_is_asked_again(
    active: Active, shared_log: ScriptedLog
) -> None:
    operations = ship(active, 3)
    shared_log.is_empty = True
    shared_log.script.append(Fault.LOST)
    active.shipping.add(write(3))

    def come_up() -> None:
        shared_log.is_empty = active.pauses < 20

    active.on_pause = come_up
    active.shipping.settle()

    demand_shipped(active, shared_log, [*operations, write(3)])
    assert active.shipping.pauses.count == 1


def test_much_goes_in_steps() -> None:
    shared_log = ScriptedLog()
    active = Active(shared_log)
    size = active.shipping.data_bytes_max
    under_way: list[int] = []
    shared_log.on_wait = lambda: under_way.append(
        sum(shared_log.sizes[1:]) - sum(map(size_of, active.applied))
    )
    operations = [Write("a", number * size, bytes([number]) * size) for number in range(1, 33)]
    for each in operations:
        active.shipping.add(each)

    active.shipping.settle()

    assert sum(shared_log.sizes) > 3 * WINDOW_BYTES
    assert max(shared_log.sizes) <= MESSAGE_BYTES_MAX
    assert WINDOW_BYTES // 2 < max(under_way) < WINDOW_BYTES + 2 * MESSAGE_BYTES_MAX
    demand_shipped(active, shared_log, operations)


def test_a_full_disk_of_its_own_holds_it_up(
    active: Active, shared_log: ScriptedLog, caplog: pytest.LogCaptureFixture
) -> None:
    active.disk.failures.append(
        Failure(lambda step: isinstance(step, Written), after=1, times=7, is_full=True)
    )

    operations = ship(active, 3)

    demand_shipped(active, shared_log, operations)
    assert active.pauses == 7
    assert [
        record.getMessage() for record in caplog.records if record.levelno == logging.ERROR
    ] == ["the data directory takes nothing, waiting error=no space left to write"]


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.DROPPED, Fault.BEAT])
def test_a_full_disk_beside_a_fault_of_the_log_holds_it_up(
    active: Active, shared_log: ScriptedLog, fault: Fault
) -> None:
    for after in range(5):
        active.disk.failures.append(
            Failure(lambda step: isinstance(step, Written), after=after, times=2, is_full=True)
        )
    shared_log.script.extend([None, fault, fault, Fault.LOST])

    demand_shipped(active, shared_log, ship(active, 5))


def test_a_copy_that_fails_ends_it(active: Active, shared_log: ScriptedLog) -> None:
    active.disk.failures.append(Failure(lambda step: isinstance(step, Written), after=1))

    with pytest.raises(SegmentFailed):
        ship(active, 3)
    appends = shared_log.appends
    with pytest.raises(SegmentFailed):
        active.shipping.settle()

    assert shared_log.appends == appends
    assert not active.shipping.is_fenced


def test_a_look_finds_another_member(active: Active, shared_log: ScriptedLog) -> None:
    ship(active, 2)
    active.shipping.look()
    shared_log.beat("two", b"")
    active.shipping.look()
    taken_over(shared_log)

    with pytest.raises(Fenced):
        active.shipping.look()
    with pytest.raises(Fenced):
        active.shipping.look()
    assert active.shipping.is_fenced


def test_a_look_at_a_log_that_is_away_says_so(active: Active, shared_log: ScriptedLog) -> None:
    shared_log.away = 1

    with pytest.raises(LogAway):
        active.shipping.look()
    active.shipping.look()


def test_nothing_is_looked_at_while_something_is_on_its_way(
    active: Active, shared_log: ScriptedLog
) -> None:
    active.shipping.add(write(0))
    shared_log.away = 1

    active.shipping.look()


def test_a_hand_over_is_the_last_message(active: Active, shared_log: ScriptedLog) -> None:
    operations = ship(active, 2)
    active.shipping.add(write(2))
    shared_log.script.extend([Fault.LOST, Fault.DROPPED])

    active.shipping.hand_over()

    assert kinds_of(shared_log)[-1] is MessageKind.HAND_OVER
    demand_shipped(active, shared_log, [*operations, write(2)])
    assert follower_of(shared_log).active == ""
    active.shipping.add(write(3))
    with pytest.raises(SegmentFailed, match="has handed over"):
        active.shipping.settle()


def test_the_time_in_messages_never_falls(active: Active, shared_log: ScriptedLog) -> None:
    for now_ms in (5, 9, 3, 12, -1):
        active.now_ms = now_ms
        ship(active, 1)

    times = [Message.unpack(entry.data).at_ms for entry in shared_log.entries()]
    assert times == [0, 5, 9, 9, 12, 12]


def test_a_sync_of_the_copy_notes_what_was_applied(active: Active) -> None:
    ship(active, 3)

    active.shipping.sync_copy()

    assert copy_on(Disk(active.disk.image())).place == active.copy.place


def test_a_sync_of_the_copy_on_a_full_disk_waits_for_the_next_one(active: Active) -> None:
    ship(active, 3)
    active.disk.failures.append(Failure(lambda step: isinstance(step, Written), is_full=True))

    active.shipping.sync_copy()
    assert active.copy.synced != active.copy.place
    active.shipping.sync_copy()

    assert active.copy.synced == active.copy.place


def test_bytes_sent_are_counted(active: Active, shared_log: ScriptedLog) -> None:
    fence = sum(shared_log.sizes)

    ship(active, 3)

    assert active.shipping.sent_bytes == sum(shared_log.sizes) - fence


def test_threads_that_ship_at_once_each_find_their_own_applied() -> None:
    shared_log = ScriptedLog(SMALL)
    active = Active(shared_log)
    missing: list[Operation] = []

    def work(first: int) -> None:
        for number in range(40):
            operation = Write(f"f{first}", number * 200, bytes([number + 1]) * 200)
            active.shipping.add(operation)
            active.shipping.settle()
            if operation not in active.applied:
                missing.append(operation)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert missing == []
    demand_shipped(active, shared_log, operations_of(shared_log))
    assert len(active.applied) == 160


@pytest.mark.parametrize("seed", range(60))
def test_any_faults_leave_a_whole_log_with_all_that_was_acknowledged(seed: int) -> None:
    chance = random.Random(seed)
    shared_log = RandomLog(chance, SMALL)
    active = Active(shared_log)
    shared_log.rate = chance.choice([0.1, 0.3, 0.6])
    acknowledged: list[Operation] = []
    added: list[Operation] = []
    for number in range(chance.randint(1, 60)):
        added.append(write(number))
        active.shipping.add(added[-1])
        if chance.random() < 0.3:
            active.shipping.settle()
            acknowledged = list(added)
    is_fenced = chance.random() < 0.7
    if is_fenced:
        shared_log.rate, rate = 0.0, shared_log.rate
        taken_over(shared_log)
        shared_log.rate = rate
    try:
        active.shipping.settle()
    except Fenced:
        assert is_fenced
    else:
        acknowledged = list(added)

    shared_log.rate = 0.0
    while shared_log.late:
        shared_log.deliver()
    stored = operations_of(shared_log)
    assert stored[: len(acknowledged)] == acknowledged
    assert stored == added[: len(stored)]
    assert active.applied == stored[: len(active.applied)]
    assert len(active.applied) >= len(acknowledged)


def test_a_pause_is_told_of_when_it_begins_each_minute_and_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    pauses = Pauses(lambda: now[0])
    with caplog.at_level(logging.WARNING):
        pauses.ends()
        for now[0] in range(0, 130, 5):
            pauses.goes_on("why")
        pauses.ends()
        pauses.ends()

    assert [record.getMessage() for record in caplog.records] == [
        "the log does not answer, waiting seconds=0 reason=why",
        "the log does not answer, waiting seconds=60 reason=why",
        "the log does not answer, waiting seconds=120 reason=why",
        "the log answers again seconds=125",
    ]
    assert pauses.count == 1
