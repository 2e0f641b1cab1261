"""Groups of single active consumers: any events in any order, against RabbitMQ's rules.

With at least one live member there is exactly one that is active, or a hand-over that ends; two
are never active at once.
"""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.differential.group_model import ModelGroup, Told
from gateway.broker.groups import NO_PARTITION, ConsumerGroup, Order

STEPS = 100_000


class Consumer:
    """A member as its connection sees it: what it was told last, and whether it has answered."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_told = False
        self.is_to_start = False
        self.is_reading = False

    def __repr__(self) -> str:
        return f"consumer {self.number}"

    def become(self, *, active: bool) -> None:
        assert active is not self.is_to_start, "told what it does already"
        self.is_reading = False
        self.is_to_start = active
        self.is_told = True


class World:
    """A group, its model, and its consumers."""

    def __init__(self, partition_index: int) -> None:
        self.group = ConsumerGroup("app", partition_index)
        self.model = ModelGroup(partition_index)
        self.members: list[Consumer] = []
        self.count = 0
        self.hand_over_count = 0

    def carry_out(self, order: Order | None, expected: list[Told]) -> None:
        assert ([] if order is None else [(order.member, order.is_active)]) == expected
        if order is not None:
            self.hand_over_count += not order.is_active
            order.carry_out()

    def join(self) -> None:
        self.count += 1
        member = Consumer(self.count)
        self.members.append(member)
        self.carry_out(self.group.join(member), self.model.register(member))

    def leave(self, numbers: set[int]) -> None:
        gone = [self.members[number % len(self.members)] for number in numbers]
        gone = list(dict.fromkeys(gone))
        for member in gone:
            self.members.remove(member)
        self.carry_out(self.group.leave(gone), self.model.unregister(gone))

    def answer(self, number: int) -> None:
        """A consumer answers what it was told last; nothing, if it has."""
        member = self.members[number % len(self.members)]
        if not member.is_told:
            assert self.group.stepped_down(member) is None
            return
        member.is_told = False
        if member.is_to_start:
            member.is_reading = True
            assert self.group.stepped_down(member) is None
        else:
            order = self.group.stepped_down(member)
            self.carry_out(order, self.model.answered_step_down(member))

    def check(self) -> None:
        assert self.group.members == self.members
        assert sum(each.is_reading for each in self.members) <= 1
        assert sum(each.is_to_start for each in self.members) <= 1
        if not self.members:
            assert self.group.active is None
            return
        # One reads, or somebody was asked something, which ends with the answer or the time limit.
        active = self.group.active
        assert isinstance(active, Consumer)
        assert active in self.members
        assert active.is_reading or active.is_told
        assert active.is_to_start is not self.group.is_stepping_down

    def settle(self) -> None:
        """Let everybody answer; a hand-over takes two answers at most."""
        for _ in range(2):
            for number in range(len(self.members)):
                self.answer(number)
                self.check()
        assert [each for each in self.members if each.is_told] == []
        if self.members:
            (reading,) = [each for each in self.members if each.is_reading]
            index = self.group.partition_index
            if index >= 0:
                assert reading is self.members[index % len(self.members)]


EVENTS = st.lists(
    st.one_of(
        st.just("join"),
        st.sets(st.integers(0, 9), min_size=1, max_size=3),
        st.integers(0, 9),
    ),
    max_size=40,
)


@given(partition_index=st.integers(-1, 5), events=EVENTS)
def test_one_member_is_active_or_a_hand_over_is_under_way_that_ends(
    partition_index: int, events: list[str | set[int] | int]
) -> None:
    world = World(partition_index)
    for event in events:
        if isinstance(event, str):
            world.join()
        elif not world.members:
            continue
        elif isinstance(event, int):
            world.answer(event)
        else:
            world.leave(event)
        world.check()
    world.settle()


@pytest.mark.parametrize("partition_index", [NO_PARTITION, 0, 1, 2])
def test_a_hundred_thousand_steps_leave_no_partition_without_a_reader(
    partition_index: int,
) -> None:
    """Comings and goings, slow answers, late ones and none at all, in long walks."""
    chance = random.Random(partition_index)
    world = World(partition_index)
    for _ in range(STEPS):
        number = chance.randrange(1 << 16)
        kind = chance.random()
        # The fuller the group the likelier that somebody goes: about ten members.
        if kind < 0.5 and world.members:
            world.answer(number)
        elif chance.random() < len(world.members) / 20:
            world.leave({number} if kind < 0.9 else {number, number // 3})
        else:
            world.join()
        world.check()
    world.settle()
    assert world.count > 1_000
    assert (world.hand_over_count > 1_000) is (partition_index > 0)
