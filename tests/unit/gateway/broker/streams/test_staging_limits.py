import pytest

from gateway.broker.errors import PreconditionFailed
from gateway.broker.streams import staging_limits as limits
from gateway.broker.streams.staging_limits import StagingLimits, StagingRoom, Usage
from gateway.pending import start


def test_a_user_may_stage_up_to_the_bound_and_again_what_is_gone() -> None:
    usage = Usage(StagingLimits(staged_bytes_max=10))
    usage.require("u", 10)
    usage.add("u", 9)
    usage.require("u", 1)
    usage.require("v", 10)

    with pytest.raises(PreconditionFailed, match=r"'u' has 9 bytes staged.*staged_bytes_max is 10"):
        usage.require("u", 2)
    usage.add("u", -9)
    usage.require("u", 10)
    assert usage.of("u") == 0


def test_all_stages_together_wait_while_too_much_is_on_its_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "ALL_WAY_BYTES_MAX", 10)
    usage = Usage()
    usage.sent(10)
    assert start(usage.room(lambda: True)).is_settled
    usage.sent(1)
    waiting = start(usage.room(lambda: True))
    assert not waiting.is_settled

    usage.sent(-1)

    assert waiting.is_settled


def test_one_that_has_no_room_of_its_own_waits_though_others_go_on() -> None:
    usage, has_room = Usage(), [False]
    waiting = start(usage.room(lambda: has_room[0]))
    usage.sent(1)
    usage.sent(-1)
    assert not waiting.is_settled

    has_room[0] = True
    usage.sent(-1)

    assert waiting.is_settled


def test_the_scratch_is_one_buffer_that_becomes_as_large_as_it_must_be() -> None:
    usage = Usage()
    first = usage.scratch(10)

    assert len(first) >= 10
    assert usage.scratch(5) is usage.scratch(10) is first
    assert len(usage.scratch(11)) >= 11


def test_room_is_given_in_order_and_never_more_than_there_is() -> None:
    room = StagingRoom(10)
    first, second = start(room.take(4)), start(room.take(6))
    large, small = start(room.take(7)), start(room.take(1))
    assert (first.is_settled, second.is_settled) == (True, True)
    assert (large.is_settled, small.is_settled) == (False, False)

    room.give(4)
    assert (large.is_settled, small.is_settled) == (False, False)
    room.give(6)

    assert (large.is_settled, small.is_settled) == (True, True)


def test_what_is_larger_than_all_room_has_it_alone() -> None:
    room = StagingRoom(10)
    large, small = start(room.take(11)), start(room.take(1))
    assert (large.is_settled, small.is_settled) == (True, False)

    room.give(11)

    assert small.is_settled


def test_a_great_many_that_need_their_room_for_no_time_have_it_one_after_the_other() -> None:
    room = StagingRoom(1)

    async def use() -> None:
        await room.take(1)
        room.give(1)

    start(room.take(1))
    waiting = [start(use()) for _ in range(5_000)]

    room.give(1)

    assert all(each.is_settled for each in waiting)
