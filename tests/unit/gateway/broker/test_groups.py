"""Groups of single active consumers: whom each event makes start or step down."""

import pytest

from gateway.broker.errors import PreconditionFailed
from gateway.broker.groups import (
    NO_PARTITION,
    ConsumerGroup,
    ConsumerGroups,
    Order,
    partition_index,
)


@pytest.mark.parametrize(
    ("orders", "stream", "index"),
    [
        ([], "p-1", -1),
        ([0], "p-1", 0),
        ([7], "p", 7),
        ([2, 1], "p", 1),
        ([None, 3], "p-1", 3),
        ([-5], "p", -5),
        ([None], "p-1", 1),
        ([None], "a-b-12", 12),
        ([None], "a-+3", 3),
        ([None], "p-x", -1),
        ([None], "p-", -1),
        ([None], "p-1\n", -1),
        ([None], "p1", -1),
        ([None], "p-1-x", -1),
        ([None], "p-" + "9" * 60_000, -1),
        ([None], "p-²", -1),
    ],
)
def test_the_partition_index_is_the_bindings_order_or_else_the_number_of_the_name(
    orders: list[int | None], stream: str, index: int
) -> None:
    assert partition_index(orders, stream) == index


class Consumer:
    """A member that remembers what it was told."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.told: list[bool] = []

    def __repr__(self) -> str:
        return self.name

    def become(self, *, active: bool) -> None:
        self.told.append(active)


A, B, C, D = (Consumer(name) for name in "ABCD")


def starts(member: Consumer) -> Order:
    return Order(member, is_active=True)


def steps_down(member: Consumer) -> Order:
    return Order(member, is_active=False)


def group_of(partition_index: int, *members: Consumer) -> ConsumerGroup:
    """A group whose hand-overs are all over."""
    group = ConsumerGroup("app", partition_index)
    for member in members:
        group.join(member)
        while isinstance(group.active, Consumer) and group.is_stepping_down:
            group.stepped_down(group.active)
    return group


# Without a partition index


def test_the_first_to_join_starts_and_the_others_wait() -> None:
    group = ConsumerGroup("app", NO_PARTITION)

    assert group.join(A) == starts(A)
    assert group.join(B) is None
    assert group.join(C) is None
    assert group.active is A


def test_when_the_active_one_goes_the_next_in_line_starts() -> None:
    group = group_of(NO_PARTITION, A, B, C)

    assert group.leave([A]) == starts(B)
    assert group.leave([B]) == starts(C)
    assert group.leave([C]) is None
    assert group.active is None


def test_when_a_waiting_one_goes_nothing_changes() -> None:
    group = group_of(NO_PARTITION, A, B, C)

    assert group.leave([B]) is None
    assert group.leave([A]) == starts(C)


def test_who_comes_back_is_the_last_in_line() -> None:
    group = group_of(NO_PARTITION, A, B, C)

    assert group.leave([A]) == starts(B)
    assert group.join(A) is None
    assert group.leave([B]) == starts(C)


def test_members_that_go_together_do_not_follow_each_other() -> None:
    group = group_of(NO_PARTITION, A, B, C, D)

    assert group.leave([A, B, C]) == starts(D)


# With one


@pytest.mark.parametrize(
    ("partition_index", "active"), [(0, A), (1, B), (2, C), (3, A), (4, B), (1000, B)]
)
def test_partitions_are_dealt_out_round_the_members(partition_index: int, active: Consumer) -> None:
    assert group_of(partition_index, A, B, C).active is active


def test_the_next_one_starts_only_once_the_last_one_has_stepped_down() -> None:
    group = group_of(1, A)

    assert group.join(B) == steps_down(A)
    assert (group.active, group.is_stepping_down) == (A, True)
    assert group.stepped_down(A) == starts(B)
    assert (group.active, group.is_stepping_down) == (B, False)


def test_an_answer_of_who_was_not_asked_to_step_down_changes_nothing() -> None:
    group = group_of(1, A)
    assert group.stepped_down(A) is None
    assert group.join(B) == steps_down(A)

    assert group.stepped_down(B) is None
    assert group.stepped_down(A) == starts(B)
    assert group.stepped_down(A) is None
    assert group.active is B


@pytest.mark.parametrize("together", [[A], [A, C]])
def test_who_goes_need_not_step_down(together: list[Consumer]) -> None:
    group = group_of(1, A)
    group.join(B)
    group.join(C)

    assert group.leave(together) in (starts(B), starts(C))
    assert not group.is_stepping_down


def test_during_a_step_down_who_comes_and_goes_only_changes_who_is_next() -> None:
    group = group_of(1, A)
    assert group.join(B) == steps_down(A)

    assert group.join(C) is None
    assert group.leave([B]) is None
    assert group.join(D) is None

    assert group.stepped_down(A) == starts(C)


def test_who_has_stepped_down_for_nobody_starts_again() -> None:
    group = group_of(1, A)
    assert group.join(B) == steps_down(A)
    assert group.leave([B]) is None

    assert group.stepped_down(A) == starts(A)


def test_a_waiting_one_that_goes_can_cost_the_active_one_its_place() -> None:
    group = group_of(1, A, B, C)

    assert group.leave([A]) == steps_down(B)
    assert group.stepped_down(B) == starts(C)


# The groups of a host


def test_a_group_is_a_stream_and_a_name() -> None:
    groups = ConsumerGroups()

    assert groups.join(1, "app", NO_PARTITION, A) == starts(A)
    assert groups.join(1, "other", NO_PARTITION, B) == starts(B)
    assert groups.join(2, "app", NO_PARTITION, C) == starts(C)
    assert groups.join(2, "app", NO_PARTITION, D) is None
    assert {(stream, group.name, len(group.members)) for stream, group in groups} == {
        (1, "app", 1),
        (1, "other", 1),
        (2, "app", 2),
    }


def test_a_group_has_one_partition_index_while_it_has_members() -> None:
    groups = ConsumerGroups()
    groups.join(1, "app", 0, A)

    with pytest.raises(PreconditionFailed, match="partition index 0, not -1"):
        groups.join(1, "app", NO_PARTITION, B)
    assert groups.leave(1, "app", [A]) is None

    assert groups.join(1, "app", NO_PARTITION, B) == starts(B)


def test_of_a_group_without_members_nothing_is_left() -> None:
    groups = ConsumerGroups()
    groups.join(1, "app", 0, A)
    groups.join(1, "other", 0, B)

    groups.leave(1, "app", [A])
    assert groups.of(1, "app") is None
    groups.leave(1, "other", [B])

    assert list(groups) == []


def test_in_the_groups_of_a_stream_that_is_gone_nobody_follows() -> None:
    groups = ConsumerGroups()
    groups.join(1, "app", NO_PARTITION, A)
    groups.join(1, "app", NO_PARTITION, B)
    groups.join(2, "app", NO_PARTITION, C)

    groups.dissolve(1)

    assert groups.leave(1, "app", [A]) is None
    assert groups.stepped_down(1, "app", A) is None
    assert [group.members for _, group in groups] == [[C]]


def test_an_order_tells_its_member() -> None:
    member = Consumer("E")

    starts(member).carry_out()
    steps_down(member).carry_out()

    assert member.told == [True, False]
