"""What the server has, in the words of definitions."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

from gateway.broker.access.model import User
from gateway.broker.access.passwords import RABBITMQ_ALGORITHMS
from gateway.broker.administration.administration import Administration
from gateway.broker.definitions.objects import (
    NO_PASSWORD,
    DefinedObject,
    Definitions,
    HostObject,
    PermissionObject,
    StreamObject,
    UserObject,
)
from gateway.broker.virtual_host import VirtualHost

Thing = TypeVar("Thing", bound=DefinedObject)


def current_definitions(administration: Administration) -> Definitions:
    """Return everything that definitions can hold. The values are copies: nothing changes them."""
    result = Definitions()
    for user in administration.access.users():
        _take(result.users, [user_object(user)])
    for name in administration.virtual_hosts.names():
        _take(result.hosts, [host_object(administration, name)])
        _take(result.streams, _streams(administration.host(name)))
    _take(
        result.permissions,
        (
            PermissionObject(one.user, one.virtual_host, one.configure, one.write, one.read)
            for one in administration.access.permissions()
        ),
    )
    return result


def _take(things: dict[Hashable, Thing], found: Iterable[Thing]) -> None:
    things.update((thing.key, thing) for thing in found)


def user_object(user: User) -> UserObject:
    """Return a user in the words of definitions."""
    hashed = user.password_hash
    if hashed is None:
        return UserObject(user.name, NO_PASSWORD, None, user.tags, dict(user.limits))
    if hashed.algorithm not in RABBITMQ_ALGORITHMS:
        return UserObject(
            user.name, NO_PASSWORD, None, user.tags, dict(user.limits), has_foreign_hash=True
        )
    return UserObject(user.name, str(hashed), hashed.algorithm.value, user.tags, dict(user.limits))


def host_object(administration: Administration, name: str) -> HostObject:
    """Return a virtual host in the words of definitions."""
    entry = administration.virtual_hosts.entry(name)
    return HostObject(
        name,
        entry.description,
        entry.tags,
        entry.default_queue_type,
        dict(administration.access.virtual_host_limits(name)),
    )


def _streams(host: VirtualHost) -> Iterable[StreamObject]:
    for name in host.streams.names():
        arguments = {
            argument: str(value)
            for argument, value in host.streams.find(name).entry.arguments.items()
        }
        yield StreamObject(host.name, name, arguments)
