"""Streams, which are queues to the API."""

import asyncio
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from gateway.admin.answers import empty_answer, made_answer
from gateway.admin.call import Call, Facts
from gateway.admin.listing import listed, object_answer
from gateway.admin.views.connections import GARBAGE_COLLECTION, queue_consumers
from gateway.admin.views.figures import counted, messages
from gateway.broker.administration.errors import Conflict, NotAllowed, WrongRequest
from gateway.broker.arguments import MaxAge, StreamArguments, number_of
from gateway.broker.definitions.sections import STREAM_ARGUMENTS
from gateway.broker.errors import StreamNotAvailable
from gateway.broker.streams import Stream
from gateway.broker.virtual_host import VirtualHost

_COUNTED_AT_ONCE: Final = 1_000
_TYPE: Final = "x-queue-type"
_NAME_BYTES_MAX: Final = 255
"""Of a queue; streams that stream clients make may have longer names."""
_TEXTS: Final = frozenset(("x-max-age", "x-queue-leader-locator"))
_QUEUE_NAMES: Final = {ours: theirs for theirs, ours in STREAM_ARGUMENTS.items()}


class Placed(NamedTuple):
    """A stream and where it is."""

    host: VirtualHost
    stream: Stream


def queue_arguments(arguments: StreamArguments) -> dict[str, object]:
    """Show a stream's arguments as those of a queue."""
    shown: dict[str, object] = {_TYPE: "stream"}
    for name, text in arguments.texts().items():
        theirs = _QUEUE_NAMES[name]
        shown[theirs] = text if theirs in _TEXTS else number_of(text)
    return shown


def stream_arguments(arguments: dict[str, Any]) -> dict[str, str]:
    """Read a queue's arguments as those of a stream. Raises WrongRequest."""
    given = dict(arguments)
    kind = given.pop(_TYPE, "stream")
    if kind != "stream":
        raise WrongRequest(f"queues of type {kind!r} are not supported, only streams are"[:200])
    result: dict[str, str] = {}
    for name, value in given.items():
        ours = STREAM_ARGUMENTS.get(name)
        if ours is None:
            raise WrongRequest(f"invalid arg {name!r}: streams do not have it"[:200])
        is_right = isinstance(value, str) if name in _TEXTS else type(value) is int
        if not is_right:
            raise WrongRequest(f"invalid arg {name!r}: it has the wrong type")
        if name == "x-max-age" and MaxAge(value).seconds is None:
            raise WrongRequest(f"invalid arg {name!r}: invalid_max_age")
        if name == "x-max-length-bytes" and value < 0:
            raise WrongRequest(f"invalid arg {name!r}: it is below 0")
        result[ours] = str(value)
    return result


def queue_view(facts: Facts, placed: Placed) -> dict[str, object]:
    """Show a stream; how many records it has only if it is open."""
    host, stream = placed
    policy = host.policies.of(stream.name)
    of_operators = host.policies.operators.of(stream.name)
    shown: dict[str, object] = {
        "name": stream.name,
        "vhost": host.name,
        "type": "stream",
        "node": facts.node,
        "leader": facts.node,
        "members": [facts.node],
        "online": [facts.node],
        "state": "running",
        "durable": True,
        "auto_delete": False,
        "exclusive": False,
        "internal": False,
        "arguments": queue_arguments(stream.arguments),
        "effective_policy_definition": host.policies.effective(stream.name),
        "policy": None if policy is None else policy.name,
        "operator_policy": None if of_operators is None else of_operators.name,
        "internal_owner": False,
        "memory": 0,
        **counted([("reductions", 0)]),
    }
    count = _count(stream)
    return shown if count is None else {**shown, **messages(count)}


def _count(stream: Stream) -> int | None:
    """Return how many records a stream has; None if that would have to be looked up."""
    log = stream.log
    if log is None or log.failure is not None:
        return None
    return 0 if log.is_empty else log.committed_next_offset - log.first_offset


async def count_messages(host: VirtualHost) -> int:
    """Count the records of all open streams; others are served meanwhile."""
    total = 0
    for number, stream in enumerate(host.streams, start=1):
        total += _count(stream) or 0
        if number % _COUNTED_AT_ONCE == 0:
            await asyncio.sleep(0)
    return total


async def list_queues(call: Call) -> Response:
    """All streams, or those of a virtual host."""
    placed = [Placed(host, stream) for host in call.hosts() for stream in host.streams]
    placed.sort(key=lambda each: (each.host.name, each.stream.name))
    return await listed(call, placed, lambda each: queue_view(call.facts, each))


async def get_queue(call: Call) -> Response:
    """One stream, opened to be counted."""
    host = call.host()
    stream = host.streams.find(call.path["stream"])
    state = "running"
    try:
        await call.awaits(host.streams.log_of(stream))
    except StreamNotAvailable:
        state = "down"
    consumers = queue_consumers(call, stream)
    return object_answer(
        call,
        {
            **queue_view(call.facts, Placed(host, stream)),
            "state": state,
            "consumers": len(consumers),
            "readers": {call.facts.node: len(consumers)},
            "consumer_details": consumers,
            "incoming": [],
            "deliveries": [],
            "garbage_collection": GARBAGE_COLLECTION,
        },
    )


async def put_queue(call: Call) -> Response:
    """Create a stream, if there is none like it."""
    host, name = call.host(), call.path["stream"]
    size = len(name.encode("utf-8", "surrogateescape"))
    if size > _NAME_BYTES_MAX:
        raise WrongRequest(f"queue should be less than 255 bytes, actually was {size}")
    if name.startswith("amq."):
        raise NotAllowed(f"no queue can be made with a reserved name such as {name!r}")
    arguments = stream_arguments(call.mapping("arguments"))
    for property_, wanted in (("durable", True), ("auto_delete", False), ("exclusive", False)):
        if call.flag(property_, default=wanted) is not wanted:
            raise WrongRequest(f"invalid property {property_!r} for queue {name!r}: it is a stream")
    where = {"virtual_host": host.name, "name": name}
    try:
        await call.ask("add_stream", where | {"arguments": arguments})
    except Conflict:
        return made_answer(is_new=False)
    return made_answer(is_new=True)


async def delete_queue(call: Call) -> Response:
    """Delete a stream, or only one without records; who uses it is told."""
    name = call.path["stream"]
    if call.query.get("if-empty") == "true":
        host = call.host()
        log = await call.awaits(host.streams.log_of(host.streams.find(name)))
        if not log.is_empty:
            raise WrongRequest(f"queue {name!r} in vhost {host.name!r} is not empty")
    where = {"virtual_host": call.path["virtual_host"], "name": name}
    await call.ask("delete_stream", where)
    return empty_answer(HTTPStatus.NO_CONTENT)
