"""Requests on super streams, exchanges, bindings and policies."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from typing import Any, Final

from gateway.broker import super_streams
from gateway.broker.access.authorisation import (
    Demand,
    to_bind,
    to_configure,
    to_manage_super_stream,
    to_publish,
    to_read,
)
from gateway.broker.access.errors import Unusable
from gateway.broker.errors import ExchangeExists
from gateway.broker.exchange import ALTERNATE_EXCHANGE
from gateway.broker.exchanges import Binding, Exchange
from gateway.broker.mending import mend_super_stream
from gateway.broker.naming import without_line_ends
from gateway.broker.patterns import length_fault
from gateway.broker.policies import Policy, PolicyTable, check_operator_policy
from gateway.broker.policy_settings import check_known, check_values
from gateway.broker.virtual_host import VirtualHost
from gateway.management.administration import Administration, Role, Row
from gateway.management.errors import WrongRequest
from gateway.management.kinds import BINDINGS, EXCHANGES, POLICIES
from gateway.management.requests.arguments import Arguments
from gateway.management.requests.streams import stream_arguments

PARTITIONS_MAX: Final = 10_000
"""Nobody counts so far before it is judged how many may be."""


async def list_super_streams(
    administration: Administration, arguments: Arguments, _: bytes
) -> object:
    """Return the super streams of a virtual host, or of all, with their partitions."""
    virtual_host = arguments.optional_text("virtual_host")
    arguments.end()
    return [
        {
            "virtual_host": host.name,
            "name": exchange.name,
            "partitions": list(super_streams.partitions_of(host, exchange.name)),
        }
        for host in administration.hosts(virtual_host)
        for exchange in sorted(host.exchanges.all(), key=lambda each: each.name)
        if super_streams.is_super_stream(exchange)
    ]


async def add_super_stream(
    administration: Administration, arguments: Arguments, _: bytes
) -> object:
    """Create a super stream with numbered partitions, or with one for each binding key."""
    host, name = _host(administration, arguments), arguments.text("name")
    keys = _keys(arguments, count())
    given = stream_arguments(arguments.mapping("arguments"))
    mends = arguments.flag("mends", default=False)
    arguments.end()
    partitions = [f"{name}-{key}" for key in keys]

    async def check() -> None:
        arguments.judge()

    try:
        await super_streams.create_super_stream(host, name, partitions, keys, given, check=check)
    except ExchangeExists:
        if not mends:
            raise
        await mend_super_stream(host, name, partitions, keys, given, check=arguments.judge)
    return {"partitions": partitions}


async def add_partitions(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Add partitions to a super stream, behind those it has."""
    host, name = _host(administration, arguments), arguments.text("name")
    keys = _keys(arguments, _free_numbers(host, name))
    arguments.end()
    partitions = [f"{name}-{key}" for key in keys]
    await super_streams.add_partitions(host, name, partitions, keys)
    return {"partitions": partitions}


def _keys(arguments: Arguments, numbers: Iterable[int]) -> Sequence[str]:
    """Return the binding keys: those that are given, or so many of some numbers."""
    wanted, keys = arguments.optional_integer("partitions"), arguments.texts("binding_keys")
    if (wanted is None) == (not keys):
        raise WrongRequest("say either how many partitions, or the binding keys")
    if wanted is None:
        return keys
    if not 1 <= wanted <= PARTITIONS_MAX:
        raise WrongRequest(f"{wanted} partitions are not possible")
    return [str(number) for number in islice(numbers, wanted)]


def _free_numbers(host: VirtualHost, super_stream: str) -> Iterator[int]:
    """Number partitions to come: behind those there are, without what is a stream or a key."""
    declared = host.exchanges.declared(super_stream)
    keys = {binding.routing_key for binding in declared.bindings.values()}
    return (
        number
        for number in count(max(0, declared.last_order + 1))
        if str(number) not in keys and f"{super_stream}-{number}" not in host.streams
    )


async def delete_super_stream(
    administration: Administration, arguments: Arguments, _: bytes
) -> object:
    """Delete a super stream with all its partitions."""
    host, name = _host(administration, arguments), arguments.name()
    arguments.end()

    def require() -> None:
        if not super_streams.is_super_stream(host.exchanges.declared(name).exchange):
            raise WrongRequest(f"exchange {name!r} is no super stream")

    async def check(_: Sequence[str]) -> None:
        arguments.judge()  # by the partitions that there are now
        require()

    require()
    await super_streams.delete_super_stream(
        host, name, check=check, gone=host.streams.logs.tell_watchers
    )
    return None


async def list_exchanges(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Return the exchanges of a virtual host, or of all."""
    virtual_host = arguments.optional_text("virtual_host")
    arguments.end()
    return [
        {"virtual_host": host.name, **EXCHANGES.shown(exchange)}
        for host in administration.hosts(virtual_host)
        for exchange in sorted(host.exchanges.all(), key=lambda each: each.name)
    ]


async def add_exchange(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Make sure that there is an exchange."""
    host = _host(administration, arguments)
    exchange = Exchange(
        arguments.text("name"),
        arguments.text("type"),
        arguments.flag("durable", default=True),
        arguments.flag("auto_delete", default=False),
        arguments.flag("internal", default=False),
        arguments.values("arguments"),
    )
    arguments.end()
    alternate = exchange.arguments.get(ALTERNATE_EXCHANGE, "")
    if not isinstance(alternate, str):
        raise WrongRequest(f"invalid arg {ALTERNATE_EXCHANGE!r}: it is not text")
    await host.exchanges.declare(exchange, check=arguments.judge)
    return None


async def delete_exchange(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Delete an exchange and its bindings, or only one that has none; the streams stay."""
    host, name = _host(administration, arguments), arguments.name()
    if_unused = arguments.flag("if_unused", default=False)
    arguments.end()

    def check() -> None:
        arguments.judge()
        if if_unused and host.exchanges.declared(name).bindings:
            raise WrongRequest(f"exchange {name!r} in vhost {host.name!r} in use")

    await host.exchanges.delete(name, check=check)
    return None


async def list_bindings(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Return the bindings of a virtual host, or of all."""
    virtual_host = arguments.optional_text("virtual_host")
    arguments.end()
    return [
        {"virtual_host": host.name, **BINDINGS.shown(binding)}
        for host in administration.hosts(virtual_host)
        for binding in host.exchanges.bindings()
    ]


async def bind(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Let a routing key of an exchange lead to a stream."""
    host, binding = _binding(administration, arguments)
    await host.exchanges.bind(binding, check=arguments.judge)
    return None


async def unbind(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Undo `bind`."""
    host, binding = _binding(administration, arguments)
    await host.exchanges.unbind(binding, check=arguments.judge)
    return None


def _binding(administration: Administration, arguments: Arguments) -> tuple[VirtualHost, Binding]:
    host = _host(administration, arguments)
    binding = Binding(
        arguments.name("source"),
        arguments.name("destination"),
        arguments.name("routing_key", ""),
        arguments.values("arguments"),
    )
    arguments.end()
    return host, binding


async def list_policies(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Return the policies of a virtual host, or of all."""
    return _listed(administration, arguments, lambda host: host.policies)


async def list_operator_policies(
    administration: Administration, arguments: Arguments, _: bytes
) -> object:
    """Return the operators' policies of a virtual host, or of all."""
    return _listed(administration, arguments, lambda host: host.policies.operators)


def _listed(
    administration: Administration,
    arguments: Arguments,
    table: Callable[[VirtualHost], PolicyTable],
) -> list[dict[str, Any]]:
    virtual_host = arguments.optional_text("virtual_host")
    arguments.end()
    return [
        {"virtual_host": host.name, **POLICIES.shown(policy)}
        for host in administration.hosts(virtual_host)
        for policy in table(host).all()
    ]


async def set_policy(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Create a policy, or replace the one of that name; it counts at once."""
    host = _host(administration, arguments)
    policy = _policy(arguments)
    check_known(policy.definition)
    check_values(policy.definition)
    await host.policies.put(policy)
    return None


async def set_operator_policy(
    administration: Administration, arguments: Arguments, _: bytes
) -> object:
    """Create an operators' policy, or replace the one of that name; it counts at once."""
    host = _host(administration, arguments)
    policy = _policy(arguments)
    check_operator_policy(policy)
    check_values(policy.definition)
    await host.policies.operators.put(policy)
    return None


def _policy(arguments: Arguments) -> Policy:
    policy = POLICIES.taken(arguments, apply_to=arguments.text("apply_to", "streams"))
    arguments.end()
    if fault := length_fault(policy.pattern):
        raise Unusable(f"the pattern of policy {policy.name!r} {fault}")
    return policy


async def clear_policy(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Delete a policy."""
    host, name = _host(administration, arguments), arguments.text("name")
    arguments.end()
    await host.policies.delete(name)
    return None


async def clear_operator_policy(
    administration: Administration, arguments: Arguments, _: bytes
) -> object:
    """Delete an operators' policy."""
    host, name = _host(administration, arguments), arguments.text("name")
    arguments.end()
    await host.policies.operators.delete(name)
    return None


def _host(administration: Administration, arguments: Arguments) -> VirtualHost:
    return administration.host(arguments.text("virtual_host", "/"))


def _to_configure(_: Administration, arguments: Arguments) -> list[Demand]:
    return to_configure(without_line_ends(arguments.name()))


def _to_declare(administration: Administration, arguments: Arguments) -> list[Demand]:
    """Demand to configure the exchange; of a new one also to pass on to its alternate exchange."""
    name, host = without_line_ends(arguments.name()), _host(administration, arguments)
    demands = to_configure(name)
    alternate = arguments.mapping("arguments").get(ALTERNATE_EXCHANGE)
    if isinstance(alternate, str) and name not in host.exchanges:
        demands += [*to_read(name), *to_publish(alternate)]
    return demands


def _to_enter(_: Administration, __: Arguments) -> list[Demand]:
    """Demand nothing but the virtual host: policies have a tag of their own."""
    return []


def _to_bind(_: Administration, arguments: Arguments) -> list[Demand]:
    return to_bind(arguments.name("source"), arguments.name("destination"))


def _to_add_super_stream(administration: Administration, arguments: Arguments) -> list[Demand]:
    name, keys = without_line_ends(arguments.text("name")), _keys(arguments, count())
    if len(keys) > administration.partitions_max:  # so many are not even looked at
        return to_configure(name)
    return to_manage_super_stream(name, [without_line_ends(f"{name}-{key}") for key in keys])


def _to_delete(administration: Administration, arguments: Arguments) -> list[Demand]:
    name = arguments.name()
    host = administration.host(arguments.text("virtual_host", "/"))
    partitions = super_streams.partitions_of(host, name) if name in host.exchanges else ()
    return to_manage_super_stream(name, partitions)


ROWS: Final = (
    Row("list_super_streams", list_super_streams, Role.MONITORING),
    Row("add_super_stream", add_super_stream, Role.MANAGEMENT, needs=_to_add_super_stream),
    Row("add_partitions", add_partitions),
    Row("delete_super_stream", delete_super_stream, Role.MANAGEMENT, needs=_to_delete),
    Row("list_exchanges", list_exchanges, Role.MONITORING),
    Row("add_exchange", add_exchange, Role.MANAGEMENT, needs=_to_declare),
    Row("delete_exchange", delete_exchange, Role.MANAGEMENT, needs=_to_configure),
    Row("list_bindings", list_bindings, Role.MONITORING),
    Row("bind", bind, Role.MANAGEMENT, needs=_to_bind),
    Row("unbind", unbind, Role.MANAGEMENT, needs=_to_bind),
    Row("list_policies", list_policies, Role.MONITORING),
    Row("set_policy", set_policy, Role.POLICYMAKER, needs=_to_enter),
    Row("clear_policy", clear_policy, Role.POLICYMAKER, needs=_to_enter),
    Row("list_operator_policies", list_operator_policies, Role.MONITORING),
    Row("set_operator_policy", set_operator_policy),
    Row("clear_operator_policy", clear_operator_policy),
)
