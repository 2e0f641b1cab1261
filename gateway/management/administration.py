"""What the requests of administrators act on, and who may ask which of them."""

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from gateway.broker.access.access import Access
from gateway.broker.access.attempts import AttemptLedger
from gateway.broker.access.passwords import PasswordHash
from gateway.broker.connections import Connections
from gateway.broker.service import Service
from gateway.broker.virtual_host import VirtualHost
from gateway.broker.virtual_hosts import VirtualHosts
from gateway.management.errors import NotAllowed, NotFound
from gateway.management.requests.unfinished import Unfinished
from gateway.pending import Pending

T = TypeVar("T")


class RunsInThread(Protocol):
    """Runs a function that takes long, beside everything else."""

    def __call__(self, function: Callable[[], T]) -> Pending[T]: ...


class Turn:
    """Lets one after the other do something that waits for the store between its steps.

    Attributes:
        is_over: Nobody shall begin anything more: the server stops.
    """

    def __init__(self) -> None:
        self._taken: Pending[None] | None = None
        self.is_over = False

    async def take(self) -> None:
        """Wait until nobody has the turn, and take it."""
        while self._taken is not None:
            await self._taken
        self._taken = Pending()

    def end(self) -> None:
        """Give the turn back."""
        taken, self._taken = self._taken, None
        assert taken is not None
        taken.settle(None)

    async def close(self) -> None:
        """Have who has the turn stop soon, and wait for it."""
        self.is_over = True
        await self.take()


@dataclass(frozen=True, slots=True)
class Administration:
    """Everything that administrators look at and change.

    Attributes:
        access: Users, permissions, limits.
        virtual_hosts: The virtual hosts, with all that is in them.
        connections: Who is connected.
        service: How all of them are served just now.
        in_thread: Runs what takes long.
        partitions_max: Most partitions of a super stream.
        attempts: Who has tried to log in.
        unfinished: Where an import is written down while it is done; None for nowhere.
        importing: Whose turn it is to import definitions.
    """

    access: Access
    virtual_hosts: VirtualHosts
    connections: Connections
    service: Service
    in_thread: RunsInThread
    partitions_max: int = 1_000
    attempts: AttemptLedger = field(default_factory=lambda: AttemptLedger(time.monotonic))
    unfinished: Unfinished | None = None
    importing: Turn = field(default_factory=Turn)

    def host(self, name: str) -> VirtualHost:
        """Return a virtual host. Raises NotFound."""
        found = self.virtual_hosts.find(name)
        if found is None:
            raise NotFound(f"there is no virtual host {name!r}")
        return found

    def hosts(self, name: str | None) -> list[VirtualHost]:
        """Return the virtual host of that name, all if it is None. Raises NotFound."""
        names = self.virtual_hosts.names() if name is None else [name]
        return [self.host(each) for each in names]


class Role(enum.Enum):
    """What an administrator has to be; RabbitMQ's tags."""

    MANAGEMENT = "management"
    """Sees what is in the virtual hosts that it may enter."""
    POLICYMAKER = "policymaker"
    """Changes policies there."""
    MONITORING = "monitoring"
    """Sees everything."""
    ADMINISTRATOR = "administrator"
    """Changes everything."""


IMPLIED: Final = {
    Role.MANAGEMENT: frozenset({Role.MANAGEMENT}),
    Role.POLICYMAKER: frozenset({Role.MANAGEMENT, Role.POLICYMAKER}),
    Role.MONITORING: frozenset({Role.MANAGEMENT, Role.MONITORING}),
    Role.ADMINISTRATOR: frozenset(Role),
}
"""Whom each tag makes somebody."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks.

    Attributes:
        name: The user; empty for who owns the server's files.
        roles: What it may be.
        virtual_hosts: Where it may look if it is no administrator.
        password_hash: Of the password that it had when it logged in; None for none.
    """

    name: str
    roles: frozenset[Role]
    virtual_hosts: frozenset[str] = frozenset()
    password_hash: PasswordHash | None = None

    @classmethod
    def of(cls, access: Access, user: str) -> "Actor":
        """Return what a user may ask for, by its tags and permissions."""
        known = access.user(user)
        if known is None:
            return cls(user, frozenset())
        roles = {role for tag in Role if tag.value in known.tags for role in IMPLIED[tag]}
        hosts = access.virtual_hosts_of(user)
        return cls(user, frozenset(roles), hosts, known.password_hash)

    def now(self, access: Access) -> "Actor":
        """Return what the same user may ask for by now: nothing if its password is another."""
        actor = Actor.of(access, self.name)
        is_same = actor.password_hash == self.password_hash
        return actor if is_same else Actor(self.name, frozenset())

    def require(self, role: Role) -> None:
        """Demand a tag. Raises NotAllowed."""
        if role not in self.roles:
            raise NotAllowed(f"this is for users with the tag {role.value}")

    def may_see(self, virtual_host: str) -> bool:
        """Tell whether it may look at what is in a virtual host."""
        return Role.ADMINISTRATOR in self.roles or virtual_host in self.virtual_hosts

    def may_see_of(self, user: str, virtual_host: str) -> bool:
        """Tell whether it may look at a connection of a user in a virtual host."""
        is_own = user == self.name and virtual_host in self.virtual_hosts
        return Role.MONITORING in self.roles or is_own

    def may_end(self, user: str) -> bool:
        """Tell whether it may end a connection of a user."""
        return Role.ADMINISTRATOR in self.roles or user == self.name


OWNER: Final = Actor("", frozenset(Role))
"""Who may open the admin socket."""
