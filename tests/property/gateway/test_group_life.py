"""Single active consumers on several connections, in any order of events: exactly one reads.

Consumers come, go, answer early, late, twice, or never; connections die, streams are deleted and
made anew, rights are lost, and the search for a place takes its time.

`HUTCH_GROUP_STEPS` sets how long the walk is, `HUTCH_TEST_SEED` takes another one.
"""

import inspect
import os
import random
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hutch.stream.offsets import FIRST, NONE
from tests.property.gateway.group_world import IDS, STREAMS, Client, Member, World

CLIENTS_MAX = 5
IS_CI = os.environ.get("HYPOTHESIS_PROFILE") == "ci"
STEPS = int(os.environ.get("HUTCH_GROUP_STEPS") or (100_000 if IS_CI else 3_000))
SEED = int(os.environ.get("HUTCH_TEST_SEED") or 1)

numbers = st.integers(0, 1 << 16)
names = st.sampled_from(sorted(STREAMS))


class GroupLife(RuleBasedStateMachine):
    """Rules pick clients and members by number, round."""

    @initialize()
    def begin(self) -> None:
        self.world = World()
        self.world.connect()

    def idle(self, number: int) -> Client | None:
        idle = self.world.idle()
        return idle[number % len(idle)] if idle else None

    def member(self, number: int) -> Member | None:
        """One of a client that the server listens to."""
        members = [each for each in self.world.members() if each.client.busy is None]
        return members[number % len(members)] if members else None

    @precondition(lambda self: len(self.world.clients) < CLIENTS_MAX)
    @rule()
    def connect(self) -> None:
        self.world.connect()

    @rule(number=numbers, subscription_id=st.integers(0, IDS - 1), stream=names)
    def join(self, number: int, subscription_id: int, stream: str) -> None:
        if client := self.idle(number):
            self.world.join(client, subscription_id, stream)

    @rule(number=numbers, stream=names)
    def join_with_another_index(self, number: int, stream: str) -> None:
        if client := self.idle(number):
            self.world.join_with_another_index(client, stream)

    @rule(number=numbers)
    def unsubscribe(self, number: int) -> None:
        if member := self.member(number):
            self.world.unsubscribe(member)

    @precondition(lambda self: self.world.clients)
    @rule(number=numbers)
    def vanish(self, number: int) -> None:
        self.world.vanish(self.world.clients[number % len(self.world.clients)])

    @precondition(lambda self: self.world.clients)
    @rule(number=numbers, stream=names)
    def lose(self, number: int, stream: str) -> None:
        self.world.lose(self.world.clients[number % len(self.world.clients)], stream)

    @rule(number=numbers, is_given=st.booleans(), is_slow=st.booleans())
    def answer(self, number: int, is_given: bool, is_slow: bool) -> None:  # noqa: FBT001 - drawn
        """The next of the questions that are open."""
        asked = [
            each
            for each in self.world.members()
            if each.question is not None and each.client.busy is None
        ]
        if asked:
            member = asked[number % len(asked)]
            assert member.question is not None
            self.world.is_slow = is_slow
            self.world.answer(member.client, member.question[0], FIRST if is_given else NONE)
            self.world.is_slow = False

    @rule(number=numbers, back=st.integers(-1, 10))
    def answer_whatever(self, number: int, back: int) -> None:
        """A question that is open, or was, or comes to be."""
        if client := self.idle(number):
            self.world.answer(client, max(0, client.asked_count - back))

    @precondition(lambda self: self.world.searches)
    @rule()
    def find_place(self) -> None:
        self.world.find_place()

    @rule(number=numbers)
    def time_is_up(self, number: int) -> None:
        late = [each for each in self.world.clients if each.rig.ports.time_limits]
        if late:
            self.world.time_is_up(late[number % len(late)])

    @rule(stream=names)
    def delete(self, stream: str) -> None:
        self.world.delete(stream)

    @rule(stream=names)
    def publish(self, stream: str) -> None:
        self.world.publish(stream)

    @rule(number=numbers)
    def credit(self, number: int) -> None:
        if member := self.member(number):
            self.world.credit(member)

    @rule()
    def settle(self) -> None:
        self.world.settle()

    @invariant()
    def one_reads(self) -> None:
        if hasattr(self, "world"):
            self.world.read()
            self.world.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            try:
                self.world.settle()
            finally:
                self.world.close()


def test_exactly_one_reads_or_a_hand_over_is_under_way_that_ends() -> None:
    case = GroupLife.TestCase
    case.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
    case().runTest()


# What a walk does, and how often: about so many members come as go.
WEIGHTS = {
    "connect": 3,
    "join": 24,
    "unsubscribe": 6,
    "vanish": 1,
    "time_is_up": 1,
    "lose": 1,
    "answer": 30,
    "answer_whatever": 4,
    "find_place": 6,
    "delete": 1,
    "publish": 3,
    "credit": 4,
    "join_with_another_index": 2,
}


def walk(world: World, chance: random.Random, steps: int) -> None:
    """Take steps that the rules draw by chance."""
    machine = GroupLife()
    machine.world = world
    drawn: dict[str, Callable[[], object]] = {
        "number": lambda: chance.randrange(1 << 16),
        "stream": lambda: chance.choice(sorted(STREAMS)),
        "subscription_id": lambda: chance.randrange(IDS),
        "is_given": lambda: chance.random() < 0.5,
        "is_slow": lambda: chance.random() < 0.2,
        "back": lambda: chance.randrange(-1, 10),
    }
    for name in chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=steps):
        step = getattr(machine, name)
        if name in ("vanish", "lose") and not world.clients:
            continue
        if name == "connect" and len(world.clients) == CLIENTS_MAX:
            continue
        if name == "find_place" and not world.searches:
            continue
        step(**{each: drawn[each]() for each in inspect.signature(step).parameters})
        machine.one_reads()
    world.settle()


@pytest.mark.timeout(60 + STEPS // 500)
def test_a_long_walk_leaves_no_group_without_a_reader() -> None:
    world = World()
    try:
        walk(world, random.Random(SEED), STEPS)
    finally:
        world.close()
