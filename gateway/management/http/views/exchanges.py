"""Exchanges and bindings."""

import hashlib
from collections.abc import Iterator
from http import HTTPStatus

from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.topology.exchanges import DEFAULT_EXCHANGE, Binding, Exchange, is_predeclared
from gateway.management.errors import NotAllowed, NotFound
from gateway.management.http.answers import empty_answer, pack_json
from gateway.management.http.call import Answer, ApiCall
from gateway.management.http.listing import listed, listed_whole
from gateway.management.http.paths import DEFAULT_EXCHANGE_NAME, encode
from gateway.management.kinds.topology import BINDINGS, EXCHANGES
from gateway.management.requests import topology as requests


def _exchange_view(virtual_host: str, exchange: Exchange) -> dict[str, object]:
    return {"name": exchange.name, "vhost": virtual_host, **EXCHANGES.outer(exchange)}


def _exchanges(host: VirtualHost) -> list[Exchange]:
    known = [Exchange(DEFAULT_EXCHANGE), *host.exchanges.all()]
    return sorted(known, key=lambda exchange: exchange.name)


async def list_exchanges(call: ApiCall) -> Answer:
    """List all exchanges, or those of a virtual host."""
    placed = [(host.name, exchange) for host in call.hosts() for exchange in _exchanges(host)]
    return await listed(call, placed, lambda one: _exchange_view(*one))


def _named(call: ApiCall) -> Exchange:
    """Return the exchange of the path. Raises NotFound, and errors of the broker."""
    host, name = call.host(), call.path["exchange"]
    is_default = name == DEFAULT_EXCHANGE_NAME
    return Exchange(DEFAULT_EXCHANGE) if is_default else host.exchanges.declared(name).exchange


async def get_exchange(call: ApiCall) -> Answer:
    """Show one exchange."""
    shown = _exchange_view(call.host().name, _named(call))
    return {**shown, "incoming": [], "outgoing": []}


async def put_exchange(call: ApiCall) -> Answer:
    """Create an exchange, if there is none like it."""
    host, name = call.host(), call.path["exchange"]
    if is_predeclared(name) and name not in host.exchanges:
        raise NotAllowed(f"no exchange can be made with a reserved name such as {name!r}")
    exchange = call.thing(EXCHANGES, name=name)
    return await call.put(requests.add_exchange, virtual_host=host.name, exchange=exchange)


async def delete_exchange(call: ApiCall) -> None:
    """Delete an exchange and its bindings, or only one that has none."""
    host, name = call.path["virtual_host"], _named(call).name
    if is_predeclared(name):
        raise NotAllowed(f"exchange {name!r} cannot be deleted")
    if_unused = call.query.get("if-unused") == "true"
    await call.ask(requests.delete_exchange, virtual_host=host, name=name, if_unused=if_unused)


def _key_of(binding: Binding) -> str:
    """Return a key that differs among bindings of the same source and destination."""
    if not binding.routing_key and not binding.arguments:
        return "~"
    # A tilde of the key itself is encoded: those that are not stand for something else.
    key = encode(binding.routing_key).replace("~", "%7E")
    if not binding.arguments:
        return key
    packed = pack_json(dict(sorted(binding.arguments.items()))).encode()
    return f"{key}~{hashlib.sha256(packed).hexdigest()[:8]}"


def _binding_view(virtual_host: str, binding: Binding) -> dict[str, object]:
    return {
        "source": binding.source,
        "vhost": virtual_host,
        "destination": binding.destination,
        "destination_type": "queue",
        **BINDINGS.outer(binding),
        "properties_key": _key_of(binding),
    }


def _bindings(host: VirtualHost) -> Iterator[Binding]:
    for name in host.streams.names():
        yield Binding(source=DEFAULT_EXCHANGE, destination=name, routing_key=name)
    yield from host.exchanges.bindings()


async def list_bindings(call: ApiCall) -> Answer:
    """List all bindings, or those of a virtual host, an exchange or a stream, or between two."""
    stream = call.path.get("stream")
    hosts = call.hosts()
    if stream is not None:
        hosts[0].streams.find(stream)
    source = _named(call).name if "exchange" in call.path else None
    placed = [
        (host.name, binding)
        for host in hosts
        for binding in _bindings(host)
        if source in (None, binding.source) and stream in (None, binding.destination)
    ]
    return await listed_whole(call, placed, lambda one: _binding_view(*one))


async def no_bindings(call: ApiCall) -> Answer:
    """List the bindings that lead to an exchange: there are none."""
    _named(call)
    return await listed_whole(call, [], dict)


async def post_binding(call: ApiCall) -> Answer:
    """Let a routing key of an exchange lead to a stream."""
    host, source, stream = call.host().name, call.path["exchange"], call.path["stream"]
    if source == DEFAULT_EXCHANGE_NAME:
        raise NotAllowed("nothing can be bound to the default exchange")
    binding = call.thing(BINDINGS, source=source, destination=stream)
    await call.ask(requests.bind, virtual_host=host, binding=binding)
    location = f"{encode(stream)}/{encode(_key_of(binding))}"
    return empty_answer(HTTPStatus.CREATED, {"location": location})


def _keyed(call: ApiCall) -> Binding:
    """Return the binding of the path. Raises NotFound, and errors of the broker."""
    host, stream, key = call.host(), call.path["stream"], call.path["key"]
    host.streams.find(stream)
    ends = _named(call).name, stream
    for binding in _bindings(host):
        if (binding.source, binding.destination) == ends and _key_of(binding) == key:
            return binding
    raise NotFound(f"there is no binding {key!r}")


async def get_binding(call: ApiCall) -> Answer:
    """Show one binding."""
    return _binding_view(call.host().name, _keyed(call))


async def delete_binding(call: ApiCall) -> None:
    """Undo one binding."""
    binding = _keyed(call)
    if binding.source == DEFAULT_EXCHANGE:
        raise NotAllowed("bindings of the default exchange cannot be deleted")
    await call.ask(requests.unbind, virtual_host=call.path["virtual_host"], binding=binding)
