"""Requests on exchanges and bindings."""

from typing import Annotated, TypeAlias

from gateway.broker.access.authorisation import Demand, to_bind, to_configure, to_publish, to_read
from gateway.broker.locks import Check
from gateway.broker.naming import check_given_name, without_line_ends
from gateway.broker.topology.exchange import ALTERNATE_EXCHANGE
from gateway.broker.topology.exchanges import Binding, Exchange
from gateway.management.administration import Role
from gateway.management.errors import WrongRequest
from gateway.management.kinds.topology import BINDINGS, EXCHANGES
from gateway.management.requests.arguments import Arguments, demand_values
from gateway.management.requests.row import Host, Hosts, Name, listed_by_host, request, thing_of
from gateway.management.requests.streams import to_configure_it


@request(Role.MONITORING)
async def list_exchanges(hosts: Hosts) -> object:
    """Return the exchanges of a virtual host, or of all."""
    return listed_by_host(hosts, EXCHANGES)


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


@request(Role.MONITORING)
async def list_bindings(hosts: Hosts) -> object:
    """Return the bindings of a virtual host, or of all."""
    return listed_by_host(hosts, BINDINGS)


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
