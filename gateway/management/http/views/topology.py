"""Virtual hosts, exchanges and bindings."""

import hashlib
from collections.abc import Iterator
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.responses import Response

from gateway.broker.exchanges import DEFAULT_EXCHANGE, Binding, Exchange, is_predeclared
from gateway.broker.virtual_host import VirtualHost
from gateway.management.administration import Role
from gateway.management.errors import NotAllowed, NotFound, WrongRequest
from gateway.management.http.answers import empty_answer, made_answer
from gateway.management.http.call import Call
from gateway.management.http.json_text import pack_json
from gateway.management.http.listing import listed, listed_whole, object_answer
from gateway.management.http.paths import encode
from gateway.management.http.views.figures import messages
from gateway.management.http.views.streams import count_messages
from gateway.management.kinds import BINDINGS, EXCHANGES

_DEFAULT: Final = "amq.default"
"""What paths call the exchange without a name."""
_QUEUE_TYPES: Final = ("classic", "quorum", "stream")


class PlacedExchange(NamedTuple):
    """An exchange and where it is."""

    host: str
    exchange: Exchange


class PlacedBinding(NamedTuple):
    """A binding and where it is."""

    host: str
    binding: Binding


# Virtual hosts


def _host_view(call: Call, name: str, count: int) -> dict[str, object]:
    entry = call.administration.virtual_hosts.entry(name)
    queue_type = entry.default_queue_type or "stream"
    return {
        "name": name,
        "description": entry.description,
        "tags": list(entry.tags),
        "default_queue_type": queue_type,
        "metadata": {
            "description": entry.description,
            "tags": list(entry.tags),
            "default_queue_type": queue_type,
        },
        "protected_from_deletion": False,
        "tracing": False,
        "cluster_state": {call.facts.node: "running"},
        **messages(count),
    }


async def list_hosts(call: Call) -> Response:
    """The virtual hosts that who asks may see; all of them for monitoring."""
    counted = {host.name: await count_messages(host) for host in call.watched_hosts()}
    names = [host.name for host in call.watched_hosts() if host.name in counted]  # still
    return await listed(call, names, lambda name: _host_view(call, name, counted[name]))


async def get_host(call: Call) -> Response:
    """One virtual host."""
    count = await count_messages(call.host())
    return object_answer(call, _host_view(call, call.host().name, count))


async def put_host(call: Call) -> Response:
    """Create a virtual host, in which its creator may do everything, or describe it anew."""
    call.require(Role.ADMINISTRATOR)
    tags = call.body.get("tags", "")
    listed = tags if isinstance(tags, list) else _split(call.text("tags", ""))
    given = {
        "name": call.path["virtual_host"],
        "user": call.actor.name,
        "description": call.text("description", ""),
        "tags": listed,
    }
    call.flag("tracing", default=False)  # judged, though nothing is traced here
    queue_type = _queue_type(call.body.get("default_queue_type"))
    if queue_type is not None:
        given["default_queue_type"] = queue_type
    put = await call.ask("put_vhost", given)
    return made_answer(is_new=put["is_new"])


def _queue_type(given: object) -> str | None:
    """Return a virtual host's default type of queues; None is left open. Raises WrongRequest."""
    if given is None or given == "undefined":
        return None
    if given not in _QUEUE_TYPES:
        raise WrongRequest(f"{given!r} is not a valid queue type"[:200])
    return str(given)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


async def delete_host(call: Call) -> Response:
    """Delete a virtual host with all that is in it."""
    await call.ask("delete_vhost", {"name": call.path["virtual_host"]})
    return empty_answer(HTTPStatus.NO_CONTENT)


# Exchanges


def _exchange_view(placed: PlacedExchange) -> dict[str, object]:
    shown = EXCHANGES.outer(placed.exchange)
    return {"name": shown.pop("name"), "vhost": placed.host, **shown}


def _exchanges(host: VirtualHost) -> list[PlacedExchange]:
    known = [Exchange(DEFAULT_EXCHANGE), *host.exchanges.all()]
    known.sort(key=lambda exchange: exchange.name)
    return [PlacedExchange(host.name, exchange) for exchange in known]


async def list_exchanges(call: Call) -> Response:
    """All exchanges, or those of a virtual host."""
    placed = [each for host in call.hosts() for each in _exchanges(host)]
    return await listed(call, placed, _exchange_view)


def _named(call: Call) -> PlacedExchange:
    host, name = call.host(), call.path["exchange"]
    if name == _DEFAULT:
        return PlacedExchange(host.name, Exchange(DEFAULT_EXCHANGE))
    return PlacedExchange(host.name, host.exchanges.declared(name).exchange)


async def get_exchange(call: Call) -> Response:
    """One exchange."""
    return object_answer(call, {**_exchange_view(_named(call)), "incoming": [], "outgoing": []})


async def put_exchange(call: Call) -> Response:
    """Create an exchange, if there is none like it."""
    host, name = call.host().name, call.path["exchange"]
    is_new = name not in call.host().exchanges
    if is_new and is_predeclared(name):
        raise NotAllowed(f"no exchange can be made with a reserved name such as {name!r}")
    await call.ask(
        "add_exchange",
        {
            "virtual_host": host,
            "name": name,
            "type": call.text("type", "direct"),
            "durable": call.flag("durable", default=True),
            "auto_delete": call.flag("auto_delete", default=False),
            "internal": call.flag("internal", default=False),
            "arguments": call.mapping("arguments"),
        },
    )
    return made_answer(is_new=is_new)


async def delete_exchange(call: Call) -> Response:
    """Delete an exchange and its bindings, or only one that has none."""
    host, name = call.path["virtual_host"], _named(call).exchange.name
    if is_predeclared(name):
        raise NotAllowed(f"exchange {name!r} cannot be deleted")
    if_unused = call.query.get("if-unused") == "true"
    where = {"virtual_host": host, "name": name, "if_unused": if_unused}
    await call.ask("delete_exchange", where)
    return empty_answer(HTTPStatus.NO_CONTENT)


# Bindings


def _key_of(binding: Binding) -> str:
    """Return what tells this binding from others of the same source and destination."""
    if not binding.routing_key and not binding.arguments:
        return "~"
    # A tilde of the key itself is encoded: those that are not stand for something else.
    key = encode(binding.routing_key).replace("~", "%7E")
    if not binding.arguments:
        return key
    packed = pack_json(dict(sorted(binding.arguments.items()))).encode()
    return f"{key}~{hashlib.sha256(packed).hexdigest()[:8]}"


def _binding_view(placed: PlacedBinding) -> dict[str, object]:
    shown = BINDINGS.outer(placed.binding)
    return {
        "source": shown.pop("source"),
        "vhost": placed.host,
        "destination": shown.pop("destination"),
        "destination_type": "queue",
        **shown,
        "properties_key": _key_of(placed.binding),
    }


def _bindings(host: VirtualHost) -> Iterator[PlacedBinding]:
    for name in host.streams.names():
        yield PlacedBinding(host.name, Binding(DEFAULT_EXCHANGE, name, name))
    for binding in host.exchanges.bindings():
        yield PlacedBinding(host.name, binding)


async def list_bindings(call: Call) -> Response:
    """All bindings, or those of a virtual host, an exchange, a stream, or between two of these."""
    source, stream = call.path.get("exchange"), call.path.get("stream")
    hosts = call.hosts()
    if stream is not None:
        hosts[0].streams.find(stream)
    if source is not None:
        source = _named(call).exchange.name
    placed = [
        each
        for host in hosts
        for each in _bindings(host)
        if source in (None, each.binding.source) and stream in (None, each.binding.destination)
    ]
    return await listed_whole(call, placed, _binding_view)


async def no_bindings(call: Call) -> Response:
    """Exchanges that lead to an exchange: there are none here."""
    _named(call)
    return await listed_whole(call, [], _binding_view)


async def post_binding(call: Call) -> Response:
    """Let a routing key of an exchange lead to a stream."""
    call.host()
    source, stream = call.path["exchange"], call.path["stream"]
    if source == _DEFAULT:
        raise NotAllowed("nothing can be bound to the default exchange")
    binding = Binding(source, stream, call.text("routing_key", ""), call.mapping("arguments"))
    await call.ask("bind", _fields(call, binding))
    location = f"{encode(stream)}/{encode(_key_of(binding))}"
    return empty_answer(HTTPStatus.CREATED, {"location": location})


def _fields(call: Call, binding: Binding) -> dict[str, object]:
    return {"virtual_host": call.path["virtual_host"], **BINDINGS.shown(binding)}


def _keyed(call: Call) -> PlacedBinding:
    host, key = call.host(), call.path["key"]
    host.streams.find(call.path["stream"])
    ends = _named(call).exchange.name, call.path["stream"]
    for placed in _bindings(host):
        binding = placed.binding
        if (binding.source, binding.destination) == ends and _key_of(binding) == key:
            return placed
    raise NotFound(f"there is no binding {key!r}")


async def get_binding(call: Call) -> Response:
    """One binding."""
    return object_answer(call, _binding_view(_keyed(call)))


async def delete_binding(call: Call) -> Response:
    """Undo one binding."""
    placed = _keyed(call)
    if placed.binding.source == DEFAULT_EXCHANGE:
        raise NotAllowed("bindings of the default exchange cannot be deleted")
    await call.ask("unbind", _fields(call, placed.binding))
    return empty_answer(HTTPStatus.NO_CONTENT)
