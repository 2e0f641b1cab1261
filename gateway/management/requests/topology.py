"""Requests on exchanges, bindings and super streams."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from typing import Annotated, Any, Final, TypeAlias

from gateway.broker.access.access import (
    Demand,
    to_bind,
    to_configure,
    to_manage_super_stream,
    to_publish,
    to_read,
)
from gateway.broker.errors import ExchangeExists
from gateway.broker.hosts import super_streams
from gateway.broker.hosts.mending import mend_super_stream
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.locks import Check
from gateway.broker.naming import check_given_name, without_line_ends
from gateway.broker.topology.exchange import ALTERNATE_EXCHANGE
from gateway.broker.topology.exchanges import Binding, Exchange
from gateway.management.administration import Administration, Role
from gateway.management.errors import WrongRequest
from gateway.management.fields import Arguments, demand_values
from gateway.management.kinds.topology import BINDINGS, EXCHANGES
from gateway.management.requests.request import Host, Hosts, Name, listing_of, request, thing_of
from gateway.management.requests.streams import stream_arguments, to_configure_it

list_exchanges: Final = listing_of(EXCHANGES)
list_bindings: Final = listing_of(BINDINGS)


def _exchange(arguments: Arguments) -> Exchange:
    return EXCHANGES.taken(arguments, type=arguments.text("type"))


Said: TypeAlias = Annotated[Exchange, thing_of(EXCHANGES, _exchange)]


def _to_declare(host: Host, exchange: Said) -> list[Demand]:
    """Demand to configure the exchange; of a new one also to pass on to its alternate exchange."""
    name = without_line_ends(exchange.name)
    demands = to_configure(name)
    alternate = exchange.arguments.get(ALTERNATE_EXCHANGE)
    if isinstance(alternate, str) and name not in host.exchanges:
        demands += [*to_read(name), *to_publish(alternate)]
    return demands


@request(Role.MANAGEMENT, needs=_to_declare)
async def add_exchange(host: Host, exchange: Said, judge: Check) -> object:
    """Make sure that there is an exchange."""
    demand_values(exchange.arguments)
    if not isinstance(exchange.arguments.get(ALTERNATE_EXCHANGE, ""), str):
        raise WrongRequest(f"invalid arg {ALTERNATE_EXCHANGE!r}: it is not text")
    if exchange.name not in host.exchanges:
        check_given_name(exchange.name)
    return {"is_new": await host.exchanges.declare(exchange, check=judge)}


@request(Role.MANAGEMENT, needs=to_configure_it)
async def delete_exchange(*, host: Host, name: Name, if_unused: bool = False, judge: Check) -> None:
    """Delete an exchange and its bindings, or only one that has none; the streams stay."""

    def check() -> None:
        judge()
        if if_unused and host.exchanges.declared(name).bindings:
            raise WrongRequest(f"exchange {name!r} in vhost {host.name!r} in use")

    await host.exchanges.delete(name, check=check)


def _binding(arguments: Arguments) -> Binding:
    return BINDINGS.taken(
        arguments,
        source=arguments.name("source"),
        destination=arguments.name("destination"),
        routing_key=arguments.name("routing_key", ""),
    )


Bound: TypeAlias = Annotated[Binding, thing_of(BINDINGS, _binding)]


def _to_bind(binding: Bound) -> list[Demand]:
    return to_bind(binding.source, binding.destination)


@request(Role.MANAGEMENT, needs=_to_bind)
async def bind(host: Host, binding: Bound, judge: Check) -> None:
    """Let a routing key of an exchange lead to a stream."""
    demand_values(binding.arguments)
    await host.exchanges.bind(binding, check=judge)


@request(Role.MANAGEMENT, needs=_to_bind)
async def unbind(host: Host, binding: Bound, judge: Check) -> None:
    """Undo `bind`."""
    demand_values(binding.arguments)
    await host.exchanges.unbind(binding, check=judge)


PARTITIONS_MAX: Final = 10_000
"""Absurd counts are refused before names are made; the configured limit is checked later."""


@request(Role.MONITORING)
async def list_super_streams(hosts: Hosts) -> object:
    """Return the super streams of a virtual host, or of all, with their partitions."""
    return [
        {
            "virtual_host": host.name,
            "name": exchange.name,
            "partitions": list(super_streams.partitions_of(host, exchange.name)),
        }
        for host in hosts
        for exchange in sorted(host.exchanges.all(), key=lambda each: each.name)
        if exchange.is_super_stream
    ]


def _keys(
    partitions: int | None, binding_keys: Sequence[str], numbers: Iterable[int]
) -> Sequence[str]:
    """Return the binding keys: those that are given, or so many of some numbers."""
    if (partitions is None) == (not binding_keys):
        raise WrongRequest("say either how many partitions, or the binding keys")
    if partitions is None:
        return binding_keys
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise WrongRequest(f"{partitions} partitions are not possible")
    return [str(number) for number in islice(numbers, partitions)]


def _to_add(
    administration: Administration, name: str, partitions: int | None, binding_keys: tuple[str, ...]
) -> list[Demand]:
    name, keys = without_line_ends(name), _keys(partitions, binding_keys, count())
    if len(keys) > administration.partitions_max:  # so many are not even looked at
        return to_configure(name)
    return to_manage_super_stream(name, [without_line_ends(f"{name}-{key}") for key in keys])


@request(Role.MANAGEMENT, needs=_to_add)
async def add_super_stream(
    *,
    host: Host,
    name: str,
    partitions: int | None,
    binding_keys: tuple[str, ...],
    arguments: dict[str, Any],
    mends: bool = False,
    judge: Check,
) -> object:
    """Create a super stream with numbered partitions, or with one for each binding key."""
    keys = _keys(partitions, binding_keys, count())
    given = stream_arguments(arguments)
    names = [f"{name}-{key}" for key in keys]
    if name not in host.exchanges:  # another one is mended, whatever it is called
        for each in (name, *names):
            check_given_name(each)

    async def require(_: Iterable[Demand]) -> None:
        judge()

    try:
        await super_streams.create_super_stream(host, name, names, keys, given, require=require)
    except ExchangeExists:
        if not mends:
            raise
        await mend_super_stream(host, name, names, keys, given, check=judge)
    return {"partitions": names}


@request()
async def add_partitions(
    host: Host, name: str, partitions: int | None, binding_keys: tuple[str, ...]
) -> object:
    """Add partitions to a super stream, behind those it has."""
    keys = _keys(partitions, binding_keys, _free_numbers(host, name))
    names = [f"{name}-{key}" for key in keys]
    await super_streams.add_partitions(host, name, names, keys)
    return {"partitions": names}


def _free_numbers(host: VirtualHost, super_stream: str) -> Iterator[int]:
    """Number partitions to come: behind those there are, without what is a stream or a key."""
    declared = host.exchanges.declared(super_stream)
    keys = {binding.routing_key for binding in declared.bindings.values()}
    return (
        number
        for number in count(max(0, declared.last_order + 1))
        if str(number) not in keys and f"{super_stream}-{number}" not in host.streams
    )


def _to_delete(host: Host, name: Name) -> list[Demand]:
    partitions = super_streams.partitions_of(host, name) if name in host.exchanges else ()
    return to_manage_super_stream(name, partitions)


@request(Role.MANAGEMENT, needs=_to_delete)
async def delete_super_stream(host: Host, name: Name, judge: Check) -> None:
    """Delete a super stream with all its partitions."""

    def check() -> None:
        if not host.exchanges.declared(name).exchange.is_super_stream:
            raise WrongRequest(f"exchange {name!r} is no super stream")

    async def require(_: Iterable[Demand]) -> None:
        judge()  # by the partitions that there are now
        check()

    check()
    await super_streams.delete_super_stream(
        host, name, require=require, gone=host.streams.logs.tell_watchers
    )
