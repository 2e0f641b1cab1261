"""Streams, which are queues to the API."""

from collections import Counter
from typing import Any, Final

from gateway.broker.errors import StreamNotAvailable
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.naming import NAME_BYTES_MAX
from gateway.broker.rules.arguments import InvalidStreamArgument, StreamArguments
from gateway.broker.streams.streams import Stream
from gateway.log.names import pravega_name
from gateway.management.errors import Conflict, NotAllowed, WrongRequest
from gateway.management.fields import key_list, usable_text
from gateway.management.http.answers import Paired, in_slices, made_answer, sliced_answer
from gateway.management.http.call import Answer, ApiCall, ServerFacts
from gateway.management.http.listing import listed
from gateway.management.http.views.connections import GARBAGE_COLLECTION, queue_consumers
from gateway.management.http.views.figures import counted, messages
from gateway.management.kinds.streams import (
    STREAM_ARGUMENTS,
    TEXT_ARGUMENTS,
    DeclaredStream,
    queue_arguments,
)
from gateway.management.requests import publishing, topology
from gateway.management.requests import streams as requests

_COUNTED_AT_ONCE: Final = 1_000
_TYPE: Final = "x-queue-type"


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
        is_right = isinstance(value, str) if name in TEXT_ARGUMENTS else type(value) is int
        if not is_right:
            raise WrongRequest(f"invalid arg {name!r}: it has the wrong type")
        result[ours] = str(value)
        try:
            StreamArguments.parse({ours: result[ours]}, is_strict=True)
        except InvalidStreamArgument as error:
            why = "invalid_max_age" if ours == "max-age" else error  # RabbitMQ's word
            raise WrongRequest(f"invalid arg {name!r}: {why}") from None
    return result


def queue_view(
    facts: ServerFacts, host: VirtualHost, stream: Stream, consumers: int
) -> dict[str, object]:
    """Show a stream with the number of its consumers, and how much is in it if that is known.

    Its policies are those that were last looked for.
    """
    governed = stream.governed
    policy, of_operators = governed.policy, governed.operator_policy
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
        "arguments": queue_arguments(stream.arguments.texts()),
        "effective_policy_definition": governed.effective(),
        "policy": None if policy is None else policy.name,
        "operator_policy": None if of_operators is None else of_operators.name,
        "internal_owner": False,
        "consumers": consumers,
        "readers": {facts.node: consumers},
        "pravega_name": pravega_name(host.name, stream.name, stream.entry.generation),
        "memory": 0,
        **counted([("reductions", 0)]),
    }
    extent = host.streams.logs.extent_at_hand(stream)
    if extent is None:
        return shown
    segments = host.streams.logs.limits_of(stream).units_of(extent.size_bytes)
    index = None if stream.log is None else stream.log.index
    return {
        **shown,
        **messages(extent.records),
        "message_bytes": extent.size_bytes,
        "segments": segments,
        "first_timestamp": 0 if index is None else index.timestamp_at(extent.start) or 0,
    }


async def count_messages(call: ApiCall, host: VirtualHost) -> int:
    """Count the records of all streams; other requests run meanwhile."""
    logs = host.streams.logs
    await call.awaits(logs.look_up_all())
    extents = [
        logs.extent_at_hand(stream) async for stream in in_slices(host.streams, _COUNTED_AT_ONCE)
    ]
    return sum(extent.records for extent in extents if extent is not None)


async def list_queues(call: ApiCall) -> Answer:
    """List all streams, or those of a virtual host."""
    for host in call.hosts():
        await call.awaits(host.streams.logs.look_up_all())
    placed = [(host, stream) for host in call.hosts() for stream in host.streams]
    placed.sort(key=lambda each: (each[0].name, each[1].name))
    reading = Counter(
        [
            consumer.stream
            async for connection in in_slices(call.administration.connections)
            for consumer in connection.consumer_details()
        ]
    )
    return await listed(call, placed, lambda each: queue_view(call.facts, *each, reading[each[1]]))


async def get_queue(call: ApiCall) -> Answer:
    """Show one stream, which is opened to count its records."""
    host = call.host()
    stream = host.streams.find(call.path["stream"])
    state = "running"
    await call.awaits(host.policies.look_for_stream(stream.governed))
    try:
        await call.awaits(host.streams.logs.of(stream))
    except StreamNotAvailable:
        state = "down"
    consumers = await queue_consumers(call, stream)
    count = sum(1 for _ in consumers.items)
    return {
        **queue_view(call.facts, host, stream, count),
        "state": state,
        "consumer_details": consumers,
        "incoming": [],
        "deliveries": [],
        "garbage_collection": GARBAGE_COLLECTION,
    }


async def put_queue(call: ApiCall) -> Answer:
    """Create a stream, if there is none like it."""
    host, name = call.host(), call.path["stream"]
    size = len(name.encode("utf-8", "surrogateescape"))
    if size > NAME_BYTES_MAX:
        raise WrongRequest(f"queue should be less than 255 bytes, actually was {size}")
    if name.startswith("amq."):
        raise NotAllowed(f"no queue can be made with a reserved name such as {name!r}")
    arguments = stream_arguments(call.mapping("arguments"))
    for property_, wanted in (("durable", True), ("auto_delete", False), ("exclusive", False)):
        if call.flag(property_, default=wanted) is not wanted:
            raise WrongRequest(f"invalid property {property_!r} for queue {name!r}: it is a stream")
    try:
        declared = DeclaredStream(usable_text("name", name), arguments)
        await call.ask(requests.add_stream, virtual_host=host.name, stream=declared)
    except Conflict:
        return made_answer(is_new=False)
    return made_answer(is_new=True)


async def delete_queue(call: ApiCall) -> None:
    """Delete a stream, or only one without records; its clients are told."""
    host, name = call.path["virtual_host"], call.path["stream"]
    if_empty = call.query.get("if-empty") == "true"
    await call.ask(requests.delete_stream, virtual_host=host, name=name, if_empty=if_empty)


async def get_messages(call: ApiCall) -> Answer:
    """Refuse to read a stream over HTTP, as RabbitMQ does. Raises WrongRequest, NotFound."""
    raise _not_for_streams(call, "540 basic.get", "a stream client reads it from any offset")


async def purge(call: ApiCall) -> Answer:
    """Refuse to empty a stream, as RabbitMQ does. Raises WrongRequest, NotFound."""
    command = "hutch ctl truncate_stream STREAM --before-offset 18446744073709551615"
    raise _not_for_streams(call, "queue.purge", f"`{command}` removes what is in it")


def _not_for_streams(call: ApiCall, what: str, instead: str) -> WrongRequest:
    host, name = call.host(), call.path["stream"]
    host.streams.find(name)
    said = f"{what} not supported by stream queues queue '{name}' in vhost '{host.name}'"
    return WrongRequest(f"{said}: {instead}")


async def put_super_stream(call: ApiCall) -> None:
    """Create a super stream with a number of partitions, or one for each binding key."""
    host = call.host()
    count, keys = call.body.get("partitions"), call.body.get("binding-keys")
    if count is None and keys is None:
        raise WrongRequest("Must specify partitions or binding keys")
    if count is not None and keys is not None:
        raise WrongRequest("Specify partitions or binding keys, not both")
    given: dict[str, object] = {
        "virtual_host": host.name,
        "name": call.path["super_stream"],
        "arguments": _texts(call.mapping("arguments")),
    }
    if keys is None:
        given["partitions"] = _partitions(call, count)
    else:
        given["binding_keys"] = key_list(call.text("binding-keys"))
    try:
        await call.ask(topology.add_super_stream, **given)
    except Conflict as error:
        raise WrongRequest(str(error)) from error


def _partitions(call: ApiCall, count: object) -> int:
    most = call.administration.partitions_max
    text = count if isinstance(count, str) else ""
    if text.isascii() and text.isdecimal() and len(text) <= len(str(most)) + 1:
        count = int(text)
    if type(count) is not int:
        raise WrongRequest("The partitions must be a number")
    if count < 1:
        raise WrongRequest("The partition number must be greater than 0")
    if count > most:
        raise WrongRequest(f"The partition number must not exceed {most}")
    return count


def _texts(arguments: dict[str, Any]) -> dict[str, str]:
    result: dict[str, str] = {}
    for name, value in arguments.items():
        if not isinstance(value, str) and type(value) is not int:
            raise WrongRequest(f"argument {name!r} is neither text nor number"[:200])
        result[name.removeprefix("x-")] = str(value)
    return result


async def get_tracking(call: ApiCall) -> Answer:
    """Show the stored offsets of a stream and the last ids of its publishers."""
    kind = call.query.get("type", "all")
    host, stream = call.host(), call.path["stream"]
    host.streams.find(stream)
    asked = kind if kind in {"offset", "writer"} else "all"
    found = await call.ask(
        publishing.list_tracking, virtual_host=host.name, name=stream, type=asked
    )
    return sliced_answer({kind: Paired(pairs) for kind, pairs in found.items()})
