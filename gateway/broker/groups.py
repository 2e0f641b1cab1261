"""Single active consumers: the member of a group that reads a stream, decided without any I/O.

A group is what subscribes to one stream under one name; of its members one reads, the active one.
With a partition index the active one is the member at that place, counted round, so that the
partitions of a super stream spread over the members; without, it is the first member.

A change of the active member takes two steps. The old one is told to step down, and reads nothing
from that instant; the new one is told to start once the old one has answered or is gone. Whatever
happens meanwhile only changes the list: the next one is chosen when the step-down ends.

    none ──start──▶ active ──step down──▶ stepping down ──answered, or gone──▶ none

Every event returns at most one order, for the caller to carry out. A member that never answers is
the caller's to remove: then, and only then, every hand-over ends.

Source: RabbitMQ 4.3, observed.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from gateway.broker.errors import PreconditionFailed

NO_PARTITION: Final = -1
"""Partition index of a group on a stream that is no partition of a super stream."""

_NUMBER_OF_NAME: Final = re.compile(r"-\+?([0-9]{1,18})\Z")


def partition_index(orders: Iterable[int | None], stream: str) -> int:
    """Return the partition index of a stream's groups in a super stream.

    Args:
        orders: What each of its bindings to the super stream states as its order, None if nothing.
        stream: Its name, of which the number at its end counts if no binding states an order.

    Source: RabbitMQ 4.3, observed.
    """
    stated = list(orders)
    if not stated:
        return NO_PARTITION
    numbers = [order for order in stated if order is not None]
    if numbers:
        return min(numbers)
    number = _NUMBER_OF_NAME.search(stream)
    return NO_PARTITION if number is None else int(number[1])


class Member(Protocol):
    """A consumer that may become the active one."""

    def become(self, *, active: bool) -> None:
        """Start, or step down now; `ConsumerGroups.stepped_down` is called once it has."""
        ...


@dataclass(frozen=True, slots=True)
class Order:
    """An order for a member."""

    member: Member
    is_active: bool

    def carry_out(self) -> None:
        """Notify it."""
        self.member.become(active=self.is_active)


class ConsumerGroup:
    """The members of one name on one stream.

    Attributes:
        name: As its members give it.
        partition_index: 0 and up, or NO_PARTITION.
        members: In the order in which they came.
        active: The member that was told to start, until it has answered the order to step down.
        is_stepping_down: Whether the active one was told to step down, and reads no more.
    """

    def __init__(self, name: str, partition_index: int) -> None:
        self.name = name
        self.partition_index = partition_index
        self.members: list[Member] = []
        self.active: Member | None = None
        self.is_stepping_down = False

    @property
    def wanted(self) -> Member | None:
        """Return the member that should read; None in an empty group."""
        if not self.members:
            return None
        if self.partition_index < 0:
            return self.active or self.members[0]
        return self.members[self.partition_index % len(self.members)]

    def join(self, member: Member) -> Order | None:
        """Take in a member, as the last."""
        self.members.append(member)
        return self._next()

    def leave(self, members: Iterable[Member]) -> Order | None:
        """Let members go, all at once; their step-down needs no answer any more."""
        for member in members:
            self.members.remove(member)
            if member is self.active:
                self._has_stopped()
        return self._next()

    def stepped_down(self, member: Member) -> Order | None:
        """Note a member's answer to its step-down."""
        if not (self.is_stepping_down and member is self.active):
            return None
        self._has_stopped()
        return self._next()

    def _has_stopped(self) -> None:
        self.active = None
        self.is_stepping_down = False

    def _next(self) -> Order | None:
        wanted = self.wanted
        if self.is_stepping_down or wanted is self.active:
            return None
        if self.active is None:
            assert wanted is not None
            self.active = wanted
            return Order(wanted, is_active=True)
        self.is_stepping_down = True
        return Order(self.active, is_active=False)


class ConsumerGroups:
    """The groups of a virtual host, by stream (its generation, which no other has) and name."""

    def __init__(self) -> None:
        self._groups: dict[int, dict[str, ConsumerGroup]] = {}

    def __iter__(self) -> Iterator[tuple[int, ConsumerGroup]]:
        for generation, groups in self._groups.items():
            for group in groups.values():
                yield generation, group

    def of(self, generation: int, name: str) -> ConsumerGroup | None:
        """Return a group, None if it has no member."""
        return self._groups.get(generation, {}).get(name)

    def join(
        self, generation: int, name: str, partition_index: int, member: Member
    ) -> Order | None:
        """Take a member into a group, which is made by its first.

        Raises:
            PreconditionFailed: The group has another partition index.
        """
        group = self.of(generation, name)
        if group is None:
            group = ConsumerGroup(name, partition_index)
            self._groups.setdefault(generation, {})[name] = group
        elif group.partition_index != partition_index:
            raise PreconditionFailed(
                f"group {name!r} has partition index {group.partition_index}, not {partition_index}"
            )
        return group.join(member)

    def leave(self, generation: int, name: str, members: Iterable[Member]) -> Order | None:
        """Let members of a group go; nothing happens if the group was dissolved."""
        group = self.of(generation, name)
        if group is None:
            return None
        order = group.leave(members)
        if not group.members:
            groups = self._groups[generation]
            del groups[name]
            if not groups:
                del self._groups[generation]
        return order

    def stepped_down(self, generation: int, name: str, member: Member) -> Order | None:
        """Note a member's answer to its step-down."""
        group = self.of(generation, name)
        return None if group is None else group.stepped_down(member)

    def dissolve(self, generation: int) -> None:
        """Forget the groups of a stream that is gone: no member becomes active any more."""
        self._groups.pop(generation, None)
