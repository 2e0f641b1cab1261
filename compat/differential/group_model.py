"""Model of RabbitMQ's groups of single active consumers, rule by rule, as observed.

It keeps a status for every member and looks them up; Hutch keeps one active member and whether it
steps down. The two share no code, and must give the same answers. One thing is left out: a member
that has not yet answered a step down is asked again by RabbitMQ when others come or go.
"""

from collections.abc import Iterable
from enum import Enum


class Status(Enum):
    """Status of a member in its group."""

    WAITING = "waiting"
    ACTIVE = "active"
    DEACTIVATING = "deactivating"


Told = tuple[object, bool]
"""A member, and whether it is to start."""


class ModelGroup:
    """Members with a status each, in the order in which they registered."""

    def __init__(self, partition_index: int) -> None:
        self.partition_index = partition_index
        self.rows: dict[object, Status] = {}

    def find(self, status: Status) -> object | None:
        found = [member for member, its in self.rows.items() if its is status]
        assert len(found) <= 1
        return found[0] if found else None

    @property
    def wanted(self) -> object:
        """The member that the partition index picks."""
        return list(self.rows)[self.partition_index % len(self.rows)]

    def register(self, member: object) -> list[Told]:
        """Add a member."""
        assert member not in self.rows
        self.rows[member] = Status.WAITING
        if len(self.rows) == 1:
            return self._activate(member)
        if self.partition_index == -1:
            is_free = self.find(Status.ACTIVE) is None
            return self._activate(member) if is_free else []
        return self._rebalance()

    def unregister(self, members: Iterable[object]) -> list[Told]:
        """Remove members, at once."""
        statuses = {self.rows.pop(member) for member in members}
        if not self.rows:
            return []
        if self.partition_index == -1:
            first = next(iter(self.rows))
            return self._activate(first) if Status.ACTIVE in statuses else []
        if Status.DEACTIVATING in statuses:  # its answer will not come any more
            return self._activate(self.wanted)
        return self._rebalance()

    def answered_step_down(self, member: object) -> list[Told]:
        """Note a step down: the member that the index picks now follows, perhaps the same one."""
        assert self.rows[member] is Status.DEACTIVATING
        self.rows[member] = Status.WAITING
        return self._activate(self.wanted)

    def _rebalance(self) -> list[Told]:
        if self.find(Status.DEACTIVATING) is not None:
            return []
        active = self.find(Status.ACTIVE)
        if active is None:
            return self._activate(self.wanted)
        if active == self.wanted:
            return []
        self.rows[active] = Status.DEACTIVATING
        return [(active, False)]

    def _activate(self, member: object) -> list[Told]:
        self.rows[member] = Status.ACTIVE
        return [(member, True)]
