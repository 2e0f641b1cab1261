"""`hutch ctl` commands on super streams, exchanges, bindings and policies."""

from typing import Any, Final

from gateway.management.ctl.grammar import (
    ANY_HOST,
    HOST,
    Ask,
    Asked,
    WrongUse,
    argument,
    command,
    commands_on,
    json_value,
    lines,
    listed,
    named,
    named_anew,
    new_name,
)
from gateway.management.ctl.streams import PARTITIONS_ARGUMENTS
from gateway.management.fields import key_list
from gateway.management.kinds.policies import OPERATOR_POLICIES, POLICIES
from gateway.management.kinds.topology import EXCHANGES, TYPES

_SUPER_STREAM: Final = named("super stream")
_DIVIDED: Final = (
    argument("--partitions N", "so many, numbered", type=int),
    argument("--binding-keys A,B", "one for each of these keys, which name them"),
)
_EXCHANGE: Final = named("exchange")
_ENDS: Final = (
    HOST,
    named("exchange", "source"),
    named("stream", "destination"),
    argument("--routing-key KEY", "key, or a topic's pattern", default=""),
)


def _divided(asked: Asked) -> Asked:
    """Read the binding keys, if partitions are not counted instead."""
    given = asked.pop("binding_keys", "")
    keys = [new_name(key) for key in key_list(given)]
    if ("partitions" in asked) == bool(keys):
        raise WrongUse("say either --partitions or --binding-keys")
    if not keys:
        return asked
    if len(keys) <= given.count(","):
        raise WrongUse(f"one of the keys is empty: --binding-keys {given}")
    return {**asked, "binding_keys": keys}


def _partitions(answer: Any) -> str:  # noqa: ANN401  # what JSON holds
    return lines(answer["partitions"])


def _definition(text: str) -> dict[str, Any]:
    definition = json_value(text)
    if not isinstance(definition, dict):
        raise WrongUse("the definition is no JSON object")
    return definition


_FIELDS: Final = (
    named("policy"),
    argument("pattern PATTERN", "looked for in the names of streams"),
    argument("definition JSON", "what it says", read=_definition),
    argument(
        "--apply-to",
        "for RabbitMQ; here all three mean streams (default: streams)",
        choices=("streams", "queues", "all"),
        default="streams",
    ),
    argument("--priority N", "the highest counts", type=int, default=0),
)


@command(ANY_HOST, shown=listed("virtual_host", "name", "partitions"))
def list_super_streams() -> None:
    """List the super streams and their partitions."""


@command(
    HOST,
    named_anew("super stream"),
    *_DIVIDED,
    PARTITIONS_ARGUMENTS,
    uses=("orders --partitions 3 -a max-age=7D", "orders --binding-keys emea,amer"),
    shown=_partitions,
)
def add_super_stream(ask: Ask, asked: Asked) -> object:
    """Create a super stream with its partitions.

    Partitions are streams: orders-0, orders-1, orders-2, or orders-emea, orders-amer.
    Of a super stream that is there, partitions that it lacks are made and bound.
    """
    return ask("add_super_stream", {**_divided(asked), "mends": True})


@command(HOST, _SUPER_STREAM, *_DIVIDED, uses=("orders --partitions 2",), shown=_partitions)
def add_partitions(ask: Ask, asked: Asked) -> object:
    """Add partitions to a super stream that is in use.

    They come behind those there are, with the arguments of the first. Connected clients are told to
    ask again. Clients that choose a partition by a key's hash send most keys to another partition
    from then on: the messages of one key are in two partitions.
    """
    return ask("add_partitions", _divided(asked))


@command(HOST, _SUPER_STREAM, uses=("orders",))
def delete_super_stream() -> None:
    """Delete a super stream WITH ALL ITS PARTITIONS."""


@command(ANY_HOST, shown=listed("virtual_host", *EXCHANGES.names(without=("internal",))))
def list_exchanges() -> None:
    """List the exchanges."""


@command(
    HOST,
    named_anew("exchange"),
    argument(
        "--type",
        "direct (default), fanout or topic",
        choices=TYPES,
        default="direct",
    ),
    argument("--auto-delete", "goes with its last binding"),
    uses=("events --type topic",),
)
def add_exchange() -> None:
    """Create an exchange."""


@command(HOST, _EXCHANGE, uses=("events",))
def delete_exchange() -> None:
    """Delete an exchange; the streams bound to it stay."""


@command(
    ANY_HOST, shown=listed("virtual_host", "source", "routing_key", "destination", "arguments")
)
def list_bindings() -> None:
    """List the bindings: which routing keys lead where."""


@command(*_ENDS, uses=("events orders --routing-key 'order.#'",))
def bind() -> None:
    """Let a routing key of an exchange lead to a stream."""


@command(*_ENDS, uses=("events orders --routing-key 'order.#'",))
def unbind() -> None:
    """Undo bind."""


list_policies, set_policy, clear_policy = commands_on(
    POLICIES,
    *_FIELDS,
    sets="""Say what holds for streams by their names.

    It counts at once, over what the streams were created with: max-age, max-length-bytes,
    stream-max-segment-size-bytes, stream-filter-size-bytes. Of several whose pattern fits, only the
    one of the highest priority counts.
    """,
    use="""keep7d '^orders' '{"max-age": "7D"}' --priority 1""",
)
list_operator_policies, set_operator_policy, clear_operator_policy = commands_on(
    OPERATOR_POLICIES,
    *_FIELDS,
    lists="List the operator policies: limits that hold beside the policies.",
    sets="""Set a limit that holds beside the policies.

    Of a stream's policy and its operator policy the smaller max-length-bytes counts.
    """,
    use="""most '.*' '{"max-length-bytes": 5000000000}'""",
)
