"""Users, permissions and limits, kept in a table; and the authorisation that every port asks.

A client that is connected loses at once what was taken away as a whole: a user, a virtual host, all
of a user's permissions in one. A pattern that is replaced counts for later requests, and
connections hear of it: publishers and consumers that are open are judged again then or, in a
protocol where a client can renew its secret, when it does. What rests on a token that names a user
ends with every change of its password or its permissions.
"""

import dataclasses
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from gateway.broker.access.access_table import TABLE, AccessTable, Rows
from gateway.broker.access.model import (
    VIRTUAL_HOST_LIMITS,
    PermissionKey,
    Right,
    User,
    UserPermission,
    check_limits,
)
from gateway.broker.access.standings import Standings, described, marked
from gateway.broker.errors import NoSuchPermission, NoSuchUser, NoSuchVirtualHost
from gateway.broker.locks import Locks
from gateway.pending import Pending
from store.api import SegmentStore

May: TypeAlias = Callable[[Right, str], bool]
"""Returns whether a user has a right on a name, in the virtual host of its connection."""


class RightsHolder(Protocol):
    """A client that has logged in."""

    @property
    def virtual_host_name(self) -> str:
        """The virtual host that it entered."""
        ...

    def lose_access(self) -> None:
        """Drop every publisher and subscription, and tell the client of each stream."""
        ...

    def rights_changed(self, may: May) -> None:
        """Take note that the user has other rights now, as `may` says."""
        ...

    def end(self, reason: str) -> None:
        """End the connection; the client gets no word but those queued already."""
        ...


class RightsHolders(Protocol):
    """Every client."""

    def count_of_user(self, name: str) -> int:
        """Return how many a user has, in all virtual hosts."""
        ...

    def count_of_virtual_host(self, name: str) -> int:
        """Return how many are in a virtual host."""
        ...

    def of(
        self, *, user: str | None = None, virtual_host: str | None = None
    ) -> Iterable[RightsHolder]:
        """Return those of a user, of a virtual host, or of both."""
        ...


class Access:
    """Users, permissions and limits. Create it with `open_access`.

    Attributes:
        is_fresh: Nothing was ever written: there are no users, and `seed` has to make the first.
        has_virtual_host: Returns whether there is a virtual host; set by their owner.
        standings: What the tokens of users rest on.
        user_left: Drops what a user that is not there has in virtual hosts; set by their owner.
    """

    def __init__(self, table: AccessTable, rows: Rows, connections: RightsHolders) -> None:
        self._table = table
        self._connections = connections
        self._users = rows.users
        self._permissions = rows.permissions
        self._limits = rows.limits
        self._lock = Locks()
        self.is_fresh = rows.is_fresh
        self.standings = Standings(partial(described, self._users, self._permissions))
        self.has_virtual_host: Callable[[str], bool] = lambda _name: True
        self.user_left: Callable[[str], Coroutine[Pending[Any], None, None]] = _nothing

    async def seed(self, users: Iterable[User], permissions: Iterable[UserPermission]) -> None:
        """Write the first users, all or none. Raises StoreError."""
        users, permissions = [marked(user, self._users) for user in users], list(permissions)
        await self._table.write(users=users, permissions=permissions)
        self.is_fresh = False
        self._users |= {user.name: user for user in users}
        self._permissions.put(permissions)

    # What is asked

    def users(self) -> list[User]:
        """Return all users, by name."""
        return [self._users[name] for name in sorted(self._users)]

    def user(self, name: str) -> User | None:
        """Return a user, None if there is none of that name."""
        return self._users.get(name)

    def has_user(self, name: str) -> bool:
        """Return whether there is a user."""
        return name in self._users

    def permissions(self) -> list[UserPermission]:
        """All permissions, by user and virtual host."""
        return sorted(self._permissions, key=lambda one: (one.user, one.virtual_host))

    def permission(self, user: str, virtual_host: str) -> UserPermission | None:
        """Return a user's permission in a virtual host, None if it may not even enter it."""
        return self._permissions.find(user, virtual_host)

    def virtual_hosts_of(self, user: str) -> frozenset[str]:
        """Return the virtual hosts that a user may enter."""
        return frozenset(self._permissions.of(user))

    def virtual_host_limits(self, name: str) -> Mapping[str, int]:
        """Return the limits of a virtual host; below 0 is no limit."""
        return self._limits.get(name, {})

    def may(self, user: str, virtual_host: str, right: Right, name: str) -> bool:
        """Return whether a user has a right on a stream or super stream."""
        permission = self._permissions.find(user, virtual_host)
        return permission is not None and permission.allows(right, name)

    def may_enter(self, user: str, virtual_host: str) -> bool:
        """Return whether a user may enter a virtual host: any permission entry there is enough."""
        return self._permissions.find(user, virtual_host) is not None

    def has_room(self, user: str, virtual_host: str) -> bool:
        """Return whether limits allow one more connection of a user in a virtual host."""
        known = self._users.get(user)
        of_user = -1 if known is None else known.limits.get("max-connections", -1)
        of_host = self.virtual_host_limits(virtual_host).get("max-connections", -1)
        return not (
            0 <= of_user <= self._connections.count_of_user(user)
            or 0 <= of_host <= self._connections.count_of_virtual_host(virtual_host)
        )

    # What is changed, one change after the other. All raise StoreError.

    async def put_user(self, user: User) -> None:
        """Create a user, or replace all of it: password, tags and limits."""
        async with self._lock.hold(TABLE):
            await self._put_user(user)

    async def change_user(self, name: str, change: Callable[[User | None], User]) -> bool:
        """Create or change a user by its state when the change has its turn.

        Args:
            name: The user.
            change: Makes the user as it shall be of what it is, None where there is none; what it
                raises ends this, with nothing changed.

        Returns:
            Whether the user is new.
        """
        async with self._lock.hold(TABLE):
            known = self._users.get(name)
            await self._put_user(change(known))
        return known is None

    async def _put_user(self, user: User) -> None:
        user = marked(user, self._users)
        await self._table.write(users=[user])
        self._users[user.name] = user
        self.standings.look_again([user.name])

    async def put_many(self, users: Iterable[User], permissions: Iterable[UserPermission]) -> None:
        """Create or replace users and permissions, all or none: one update of the store.

        Args:
            users: Whole, as for `put_user`.
            permissions: Their users are there, or among `users`.

        Raises:
            NoSuchUser: The user of a permission does not exist.
            NoSuchVirtualHost: The virtual host of one does not exist.
        """
        given = {(one.user, one.virtual_host): one for one in permissions}
        async with self._lock.hold(TABLE):
            people = {user.name: marked(user, self._users) for user in users}
            for user, virtual_host in given:
                if user not in people and user not in self._users:
                    raise NoSuchUser(user)
                if not self.has_virtual_host(virtual_host):
                    raise NoSuchVirtualHost(virtual_host)
            await self._table.write(users=people.values(), permissions=given.values())
            self._users |= people
            self._permissions.put(given.values())
            self._rights_changed(given)
            self.standings.look_again(people)

    async def delete_user(self, name: str) -> None:
        """Delete a user with its permissions, and end its connections. Raises NoSuchUser.

        What it has in virtual hosts goes before another of its name can be made. If a crash comes
        between, it goes at the next start.
        """
        async with self._lock.hold(TABLE):
            if name not in self._users:
                raise NoSuchUser(name)
            theirs = [(name, host) for host in self._permissions.of(name)]
            await self._table.remove(user=name, permissions=theirs)
            del self._users[name]
            self._permissions.remove(theirs)
            for connection in self._connections.of(user=name):
                connection.lose_access()
                connection.end("its user was deleted")
            self.standings.look_again([name])
            await self.user_left(name)

    async def put_permission(self, permission: UserPermission) -> bool:
        """Set a user's permission in a virtual host, and return whether it had none.

        Raises:
            NoSuchUser: The user does not exist.
            NoSuchVirtualHost: The virtual host does not exist.
        """
        async with self._lock.hold(TABLE):
            if permission.user not in self._users:
                raise NoSuchUser(permission.user)
            if not self.has_virtual_host(permission.virtual_host):
                raise NoSuchVirtualHost(permission.virtual_host)
            is_new = self.permission(permission.user, permission.virtual_host) is None
            await self._table.write(permissions=[permission])
            self._permissions.put([permission])
            self._rights_changed([(permission.user, permission.virtual_host)])
        return is_new

    def _rights_changed(self, changed: Collection[PermissionKey]) -> None:
        """Let connections whose rights have changed judge all they have open, and end tokens."""
        may_of = {key: lru_cache(None)(partial(self.may, *key)) for key in changed}
        users = {user for user, _ in changed}
        for user in users:
            for connection in self._connections.of(user=user):
                may = may_of.get((user, connection.virtual_host_name))
                if may is not None:
                    connection.rights_changed(may)
        self.standings.look_again(users)

    async def delete_permission(self, user: str, virtual_host: str) -> None:
        """Take all rights in a virtual host from a user; all it has open there ends.

        Raises:
            NoSuchPermission: There was nothing to take.
        """
        async with self._lock.hold(TABLE):
            if not self.may_enter(user, virtual_host):
                raise NoSuchPermission(user, virtual_host)
            await self._table.remove(permissions=[(user, virtual_host)])
            self._permissions.remove([(user, virtual_host)])
            self.standings.look_again([user])
        for connection in self._connections.of(user=user, virtual_host=virtual_host):
            connection.lose_access()

    async def change_user_limits(
        self, name: str, change: Callable[[Mapping[str, int]], Mapping[str, int]]
    ) -> None:
        """Change limits of a user by those there are; they act on connections that come.

        Raises:
            NoSuchUser: The user does not exist.
            Unusable: There is no such limit.
        """

        def limited(user: User | None) -> User:
            if user is None:
                raise NoSuchUser(name)
            return dataclasses.replace(user, limits=dict(change(user.limits)))

        await self.change_user(name, limited)

    async def set_virtual_host_limits(self, name: str, limits: Mapping[str, int]) -> None:
        """Replace the limits of a virtual host; they act on later requests.

        Raises:
            NoSuchVirtualHost: The virtual host does not exist.
            Unusable: There is no such limit.
        """
        await self.change_virtual_host_limits(name, lambda _: limits)

    async def change_virtual_host_limits(
        self, name: str, change: Callable[[Mapping[str, int]], Mapping[str, int]]
    ) -> bool:
        """Change limits of a virtual host by those there are, and return whether it had none.

        Raises:
            NoSuchVirtualHost: The virtual host does not exist.
            Unusable: There is no such limit.
        """
        async with self._lock.hold(TABLE):
            if not self.has_virtual_host(name):
                raise NoSuchVirtualHost(name)
            known = self.virtual_host_limits(name)
            limits = change(known)
            check_limits(limits, VIRTUAL_HOST_LIMITS)
            await self._table.write_limits(name, limits)
            self._limits[name] = dict(limits)
        return not known

    async def forget_virtual_host(self, name: str) -> None:
        """Remove the permissions and limits of a virtual host that goes."""
        async with self._lock.hold(TABLE):
            theirs = [(one.user, name) for one in self._permissions if one.virtual_host == name]
            await self._table.remove(permissions=theirs, limits_of=name)
            self._permissions.remove(theirs)
            self._limits.pop(name, None)
            self.standings.look_again(user for user, _ in theirs)


async def _nothing(_user: str) -> None:
    """Stand in until there are virtual hosts."""


async def open_access(store: SegmentStore, connections: RightsHolders) -> Access:
    """Open the table of users, creating it if it is missing. Raises StoreError."""
    table = AccessTable(store)
    return Access(table, await table.load(), connections)


DEFAULT_EXCHANGE: Final = "amq.default"
"""Name of the exchange without a name, where permissions are looked up."""


class Demand(NamedTuple):
    """Something that takes a right on a name."""

    rights: tuple[Right, ...]
    """Any of these will do."""
    name: str

    def __str__(self) -> str:
        return f"no {' or '.join(right.value for right in self.rights)} on {self.name!r}"


def refused(
    access: Access, user: str, virtual_host: str, demands: Iterable[Demand]
) -> Demand | None:
    """Return the first demand that a user does not meet, None if it may go on.

    Every way to the server asks here: the wire, the HTTP API and the commands of administrators say
    what they are about to do as a list of demands.

    Source: RabbitMQ, "Access Control"; RabbitMQ 4.3 as observed.
    """
    may = access.may
    for demand in demands:
        for right in demand.rights:
            if may(user, virtual_host, right, demand.name):
                break
        else:
            return demand
    return None


def to_configure(name: str) -> list[Demand]:
    """Return the demands to create or delete a stream or an exchange."""
    return [Demand((Right.CONFIGURE,), name)]


def to_read(name: str) -> list[Demand]:
    """Return the demands to look into a stream."""
    return [Demand((Right.READ,), name)]


def name_of_exchange(exchange: str) -> str:
    """Return the name of an exchange by which permissions are looked up."""
    return exchange or DEFAULT_EXCHANGE


def to_publish(exchange: str) -> list[Demand]:
    """Return the demands to publish to an exchange, to whichever streams that leads."""
    return [Demand((Right.WRITE,), name_of_exchange(exchange))]


def to_bind(source: str, destination: str) -> list[Demand]:
    """Return the demands to bind a stream to an exchange, or to undo that."""
    return [Demand((Right.WRITE,), destination), Demand((Right.READ,), source)]


def to_manage_super_stream(super_stream: str, partitions: Iterable[str] = ()) -> list[Demand]:
    """Return the demands to create or delete a super stream with these partitions.

    Configure and read on the super stream, configure and write on each partition, whichever way the
    request came.
    """
    names = list(partitions)
    return [
        *to_configure(super_stream),
        *(Demand((Right.CONFIGURE,), name) for name in names),
        Demand((Right.READ,), super_stream),
        *(Demand((Right.WRITE,), name) for name in names),
    ]
