"""Requests on exchanges and bindings."""

from operator import attrgetter
from typing import Annotated, Any, Final, TypeAlias

from gateway.broker.access.authorisation import Demand, to_bind, to_configure, to_publish, to_read
from gateway.broker.locks import Check
from gateway.broker.naming import check_given_name, without_line_ends
from gateway.broker.topology.exchange import ALTERNATE_EXCHANGE
from gateway.broker.topology.exchanges import Binding, Exchange
from gateway.management.administration import Administration, Role
from gateway.management.errors import WrongRequest
from gateway.management.kinds import BINDINGS, EXCHANGES
from gateway.management.requests.arguments import Arguments
from gateway.management.requests.row import Host, Hosts, Name, listed_by_host, request
from gateway.management.requests.streams import to_configure_it

_NAME: Final = attrgetter("name")


@request(Role.MONITORING)
async def list_exchanges(hosts: Hosts) -> object:
    """Return the exchanges of a virtual host, or of all."""
    return listed_by_host(hosts, EXCHANGES, lambda host: sorted(host.exchanges.all(), key=_NAME))


def _exchange(_: Administration, arguments: Arguments, __: str) -> Exchange:
    return EXCHANGES.taken(
        arguments, type=arguments.text("type"), arguments=arguments.values("arguments")
    )


def _to_declare(host: Host, name: Name, arguments: dict[str, Any]) -> list[Demand]:
    """Demand to configure the exchange; of a new one also to pass on to its alternate exchange."""
    name = without_line_ends(name)
    demands = to_configure(name)
    alternate = arguments.get(ALTERNATE_EXCHANGE)
    if isinstance(alternate, str) and name not in host.exchanges:
        demands += [*to_read(name), *to_publish(alternate)]
    return demands


@request(Role.MANAGEMENT, needs=_to_declare)
async def add_exchange(host: Host, exchange: Annotated[Exchange, _exchange], judge: Check) -> None:
    """Make sure that there is an exchange."""
    if not isinstance(exchange.arguments.get(ALTERNATE_EXCHANGE, ""), str):
        raise WrongRequest(f"invalid arg {ALTERNATE_EXCHANGE!r}: it is not text")
    if exchange.name not in host.exchanges:
        check_given_name(exchange.name)
    await host.exchanges.declare(exchange, check=judge)


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
    return listed_by_host(hosts, BINDINGS, lambda host: host.exchanges.bindings())


def _binding(_: Administration, arguments: Arguments, __: str) -> Binding:
    return Binding(
        source=arguments.name("source"),
        destination=arguments.name("destination"),
        routing_key=arguments.name("routing_key", ""),
        arguments=arguments.values("arguments"),
    )


Bound: TypeAlias = Annotated[Binding, _binding]


def _to_bind(source: Name, destination: Name) -> list[Demand]:
    return to_bind(source, destination)


@request(Role.MANAGEMENT, needs=_to_bind)
async def bind(host: Host, binding: Bound, judge: Check) -> None:
    """Let a routing key of an exchange lead to a stream."""
    await host.exchanges.bind(binding, check=judge)


@request(Role.MANAGEMENT, needs=_to_bind)
async def unbind(host: Host, binding: Bound, judge: Check) -> None:
    """Undo `bind`."""
    await host.exchanges.unbind(binding, check=judge)
