"""The objects of definitions on the server: all of a kind, one, written, removed."""

import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

from gateway.broker.access.errors import NoSuchVirtualHost
from gateway.broker.errors import StreamExists
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.rules.policies import PolicyTable
from gateway.broker.topology.exchanges import Binding, is_predeclared
from gateway.management.administration import Administration, Turns
from gateway.management.definitions.objects import Definitions, Host, Key, Stream, binding_key
from gateway.management.requests.parallel import AT_ONCE

Things: TypeAlias = Mapping[Key, Any]


class Kept(ABC):
    """The objects of one kind on the server.

    Attributes:
        at_once: How many groups of them may be written at a time.
    """

    at_once = AT_ONCE

    def __init__(self, administration: Administration) -> None:
        self.administration = administration
        self.access = administration.access

    @abstractmethod
    def all(self) -> Iterable[tuple[Key, Any]]:
        """Return the objects. Nothing changes them."""

    def find(self, _key: Key) -> Any:  # noqa: ANN401  # of its kind
        """Return an object that an import may write over; None if there is none."""
        return None

    def group(self, key: Key) -> Hashable:
        """Return the same for keys whose objects are written in one update."""
        return key

    @abstractmethod
    async def put(self, things: Things, made: set[Key]) -> None:
        """Write the objects of a group; add those to `made` that a rollback has to care about.

        Raises:
            AccessError, BrokerError, StoreError: They could not be written.
        """

    @abstractmethod
    async def remove(self, key: Key) -> None:
        """Remove an object. Raises as `put`."""

    def host(self, key: Key) -> VirtualHost:
        """Return the virtual host of an object. Raises NoSuchVirtualHost."""
        found = self.administration.virtual_hosts.find(key[0])
        if found is None:
            raise NoSuchVirtualHost(key[0])
        return found

    def every_host(self) -> list[VirtualHost]:
        """Return all virtual hosts, by name."""
        return self.administration.hosts(None)


class _Hosts(Kept):
    at_once = 1

    def all(self) -> Iterable[tuple[Key, Host]]:
        for each in self.every_host():
            if (found := self.find(("", each.name))) is not None:  # it may go meanwhile
                yield ("", each.name), found

    def find(self, key: Key) -> Host | None:
        is_there = self.administration.virtual_hosts.find(key[1]) is not None
        return self._described(key[1]) if is_there else None

    def _described(self, name: str) -> Host:
        entry = self.administration.virtual_hosts.entry(name)
        limits = dict(self.access.virtual_host_limits(name))
        return Host(name, entry.description, entry.tags, entry.default_queue_type, limits)

    async def put(self, things: Things, made: set[Key]) -> None:
        hosts = self.administration.virtual_hosts
        for key, host in things.items():
            said = {
                "description": host.description,
                "tags": host.tags,
                "default_queue_type": host.default_queue_type,
            }
            if hosts.find(host.name) is None:
                await hosts.create(host.name, **said)
                made.add(key)
            else:
                metadata = hosts.entry(host.name).metadata
                await hosts.describe(host.name, **said, metadata=metadata)
            if host.limits != self.access.virtual_host_limits(host.name):
                await self.access.set_virtual_host_limits(host.name, host.limits)

    async def remove(self, key: Key) -> None:
        await self.administration.virtual_hosts.delete(key[1])


class _Users(Kept):
    def all(self) -> Iterable[tuple[Key, Any]]:
        return ((("", each.name), each) for each in self.access.users())

    def find(self, key: Key) -> Any:  # noqa: ANN401
        return self.access.user(key[1])

    def group(self, _key: Key) -> Hashable:
        return None

    async def put(self, things: Things, made: set[Key]) -> None:
        await self.access.put_many(things.values(), [])
        made.update(things)

    async def remove(self, key: Key) -> None:
        await self.access.delete_user(key[1])


class _Permissions(Kept):
    def all(self) -> Iterable[tuple[Key, Any]]:
        return (((each.virtual_host, each.user), each) for each in self.access.permissions())

    def find(self, key: Key) -> Any:  # noqa: ANN401
        return self.access.permission(key[1], key[0])

    def group(self, _key: Key) -> Hashable:
        return None

    async def put(self, things: Things, made: set[Key]) -> None:
        await self.access.put_many([], things.values())
        made.update(things)

    async def remove(self, key: Key) -> None:
        await self.access.delete_permission(key[1], key[0])


class _Policies(Kept):
    def table_of(self, host: VirtualHost) -> PolicyTable:
        return host.policies

    def all(self) -> Iterable[tuple[Key, Any]]:
        for host in self.every_host():
            for each in self.table_of(host).all():
                yield (host.name, each.name), each

    def find(self, key: Key) -> Any:  # noqa: ANN401
        host = self.administration.virtual_hosts.find(key[0])
        return None if host is None else self.table_of(host).find(key[1])

    async def put(self, things: Things, made: set[Key]) -> None:
        for key, policy in things.items():
            await self.table_of(self.host(key)).put(policy)
            made.add(key)

    async def remove(self, key: Key) -> None:
        await self.table_of(self.host(key)).delete(key[1])


class _OperatorPolicies(_Policies):
    def table_of(self, host: VirtualHost) -> PolicyTable:
        return host.policies.operators


class _Streams(Kept):
    def all(self) -> Iterable[tuple[Key, Stream]]:
        for host in self.every_host():
            for name in host.streams.names():
                if name not in host.streams:  # any more
                    continue
                given = host.streams.find(name).entry.arguments
                arguments = {argument: str(value) for argument, value in given.items()}
                yield (host.name, name), Stream(name, arguments)

    async def put(self, things: Things, made: set[Key]) -> None:
        for key, stream in things.items():
            with suppress(StreamExists):  # since the plan was made
                await self.host(key).streams.create(stream.name, stream.arguments)
                made.add(key)

    async def remove(self, key: Key) -> None:
        streams = self.host(key).streams
        await streams.delete(key[1], streams.logs.tell_watchers)


class _Exchanges(Kept):
    def all(self) -> Iterable[tuple[Key, Any]]:
        for host in self.every_host():
            for each in host.exchanges.all():
                if not is_predeclared(each.name):
                    yield (host.name, each.name), each

    async def put(self, things: Things, made: set[Key]) -> None:
        for key, exchange in things.items():
            await self.host(key).exchanges.declare(exchange)
            made.add(key)

    async def remove(self, key: Key) -> None:
        await self.host(key).exchanges.delete(key[1])


class _Bindings(Kept):
    def all(self) -> Iterable[tuple[Key, Any]]:
        for host in self.every_host():
            for each in host.exchanges.bindings():
                yield binding_key(host.name, each), each

    def group(self, key: Key) -> Hashable:
        return key[:2]

    async def put(self, things: Things, made: set[Key]) -> None:
        await self.host(next(iter(things))).exchanges.bind(*things.values())
        made.update(things)

    async def remove(self, key: Key) -> None:
        source, destination, routing_key, arguments = key[1:]
        binding = Binding(
            source=source,
            destination=destination,
            routing_key=routing_key,
            arguments=json.loads(arguments),
        )
        await self.host(key).exchanges.unbind(binding)


KEPT: Final[Mapping[str, type[Kept]]] = {
    "hosts": _Hosts,
    "users": _Users,
    "permissions": _Permissions,
    "policies": _Policies,
    "operator_policies": _OperatorPolicies,
    "streams": _Streams,
    "exchanges": _Exchanges,
    "bindings": _Bindings,
}


async def current_definitions(administration: Administration) -> Definitions:
    """Return everything that definitions can hold. Nothing changes the values.

    Others have their turn meanwhile: what is made or goes then may be there or not.
    """
    found = Definitions()
    turns = Turns(administration)
    for kind, kept in KEPT.items():
        things = found.of(kind)
        for key, thing in kept(administration).all():
            things[key] = thing
            await turns.give()
    return found
