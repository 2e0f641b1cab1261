"""What the server has, in the words of definitions."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

from gateway.broker.access.model import User
from gateway.broker.access.passwords import RABBITMQ_ALGORITHMS
from gateway.broker.exchanges import is_predeclared
from gateway.broker.policies import PolicyTable
from gateway.broker.virtual_host import VirtualHost
from gateway.management.administration import Administration
from gateway.management.definitions.objects import (
    NO_PASSWORD,
    BindingObject,
    DefinedObject,
    Definitions,
    ExchangeObject,
    HostObject,
    OperatorPolicyObject,
    PermissionObject,
    PolicyObject,
    StreamObject,
    UserObject,
)

Thing = TypeVar("Thing", bound=DefinedObject)
Ruling = TypeVar("Ruling", bound=PolicyObject)


def current_definitions(administration: Administration) -> Definitions:
    """Return everything that definitions can hold. The values are copies: nothing changes them."""
    result = Definitions()
    for user in administration.access.users():
        _take(result.users, [user_object(user)])
    for name in administration.virtual_hosts.names():
        _take(result.hosts, [host_object(administration, name)])
        host = administration.host(name)
        _take(result.streams, _streams(host))
        _take(result.policies, _policies(host, host.policies, PolicyObject))
        _take(
            result.operator_policies,
            _policies(host, host.policies.operators, OperatorPolicyObject),
        )
        _take(result.exchanges, _exchanges(host))
        _take(result.bindings, _bindings(host))
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


def _policies(host: VirtualHost, table: PolicyTable, kind: type[Ruling]) -> Iterable[Ruling]:
    for one in table.all():
        definition = dict(one.definition)
        yield kind(host.name, one.name, one.pattern, one.apply_to, definition, one.priority)


def _exchanges(host: VirtualHost) -> Iterable[ExchangeObject]:
    for one in host.exchanges.all():
        if not is_predeclared(one.name):
            yield ExchangeObject(
                host.name,
                one.name,
                one.type,
                one.durable,
                one.auto_delete,
                one.internal,
                dict(one.arguments),
            )


def _bindings(host: VirtualHost) -> Iterable[BindingObject]:
    for one in host.exchanges.bindings():
        yield BindingObject(
            host.name, one.source, one.destination, one.routing_key, dict(one.arguments)
        )
