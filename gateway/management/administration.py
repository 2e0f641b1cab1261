"""State that the requests of administrators act on, and the roles that they take."""

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from gateway.broker.access.access import Access
from gateway.broker.access.attempts import AttemptLedger
from gateway.broker.access.passwords import PasswordHash
from gateway.broker.connections import Connections
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.hosts.virtual_hosts import VirtualHosts
from gateway.broker.service import ServiceState
from gateway.management.definitions.unfinished import UnfinishedImport
from gateway.management.errors import NotAllowed, NotFound
from gateway.management.scopes import Scopes
from gateway.pending import Pending, nothing

T = TypeVar("T")
_TURN_S: Final = 0.005


class RunsInThread(Protocol):
    """Runs a function that takes long, beside everything else."""

    def __call__(self, function: Callable[[], T]) -> Pending[T]: ...


class Turn:
    """A lock for work that waits for the store between its steps.

    Attributes:
        is_over: The server stops: nothing more is to begin.
    """

    def __init__(self) -> None:
        self._taken: Pending[None] | None = None
        self.is_over = False

    async def take(self) -> None:
        """Wait until the turn is free, and take it."""
        while self._taken is not None:
            await self._taken
        self._taken = Pending()

    def end(self) -> None:
        """Release the turn."""
        taken, self._taken = self._taken, None
        assert taken is not None
        taken.settle(None)

    async def close(self) -> None:
        """Ask the holder of the turn to stop soon, and wait for it."""
        self.is_over = True
        await self.take()


@dataclass(frozen=True, slots=True)
class Administration:
    """Everything that administrators see and change.

    Attributes:
        access: Users, permissions, limits.
        virtual_hosts: The virtual hosts, with all that is in them.
        connections: The open connections.
        service: State of service: listeners, alarms, maintenance.
        in_thread: Runs long work.
        partitions_max: Most partitions of a super stream.
        attempts: Counts of attempts to log in.
        unfinished: Journal of the import that is under way; None for none.
        importing: The lock of imports.
        scopes: The scopes of Pravega's controller.
    """

    access: Access
    virtual_hosts: VirtualHosts
    connections: Connections
    service: ServiceState
    in_thread: RunsInThread
    partitions_max: int = 1_000
    attempts: AttemptLedger = field(default_factory=lambda: AttemptLedger(time.monotonic))
    unfinished: UnfinishedImport | None = None
    importing: Turn = field(default_factory=Turn)
    scopes: Scopes = field(default_factory=Scopes)

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

    async def done(self, function: Callable[[], T]) -> T:
        """Run what takes long beside everything else, and wait for it."""
        return await self.in_thread(function)

    def staged_bytes(self, user: str) -> int:
        """Return the bytes that a user has staged, in all virtual hosts."""
        return sum(host.commits.stages.bytes_of(user) for host in self.hosts(None))


class RequestTurns:
    """Gives others their turn while one request goes through a great many things."""

    def __init__(self, administration: Administration) -> None:
        self._administration = administration
        self._began_s = time.perf_counter()

    async def give(self) -> None:
        """Let others have their turn if it is time; called once for each thing."""
        if time.perf_counter() - self._began_s > _TURN_S:
            await self._administration.in_thread(nothing)
            self._began_s = time.perf_counter()


class Role(enum.Enum):
    """A role of an administrator; RabbitMQ's tags."""

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
"""The roles that each tag implies."""


@dataclass(frozen=True, slots=True)
class Actor:
    """An administrator that makes a request.

    Attributes:
        name: The user; empty for the owner of the server's files.
        roles: Its roles.
        virtual_hosts: Those that it may see if it is no administrator.
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

    def require(self, role: Role, request: str = "this") -> None:
        """Demand a tag for a request. Raises NotAllowed."""
        if role not in self.roles:
            raise NotAllowed(f"{request} is for users with the tag {role.value}")

    def may_see(self, virtual_host: str) -> bool:
        """Return whether it may look at what is in a virtual host."""
        return Role.ADMINISTRATOR in self.roles or virtual_host in self.virtual_hosts

    def may_see_of(self, user: str, virtual_host: str) -> bool:
        """Return whether it may look at a connection of a user in a virtual host."""
        is_own = user == self.name and virtual_host in self.virtual_hosts
        return Role.MONITORING in self.roles or is_own

    def may_end(self, user: str) -> bool:
        """Return whether it may end a connection of a user."""
        return Role.ADMINISTRATOR in self.roles or user == self.name


OWNER: Final = Actor("", frozenset(Role))
"""The administrator that comes by the admin socket."""
