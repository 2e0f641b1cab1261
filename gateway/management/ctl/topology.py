"""`hutch ctl` commands on super streams, exchanges, bindings and policies."""

from typing import Any, Final

from gateway.broker.policies import Policy
from gateway.management.ctl.grammar import (
    ANY_HOST,
    HOST,
    Asked,
    Command,
    WrongUse,
    argument,
    arguments_of,
    json_value,
    key_list,
    lines,
    listed,
    named,
)
from gateway.management.ctl.streams import PARTITIONS_ARGUMENTS
from gateway.management.kinds import EXCHANGES, OPERATOR_POLICIES, POLICIES, Kind

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
    keys = key_list(given)
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


def _of_policies(
    kind: Kind[Policy], looks: str, sets: str, clears: str, example: str, more: str
) -> tuple[Command, ...]:
    """Return the commands on policies of a kind.

    Args:
        kind: Policies, or operators' policies.
        looks: The summary of the command that lists them.
        sets: That of the one that sets one.
        clears: That of the one that deletes one.
        example: A name and what it is set to.
        more: The rest of the help on setting one.
    """
    name = kind.word.replace(" ", "_")
    fields = arguments_of(
        kind,
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
    shown = listed("virtual_host", *kind.names())
    return (
        Command(f"list_{name.removesuffix('y')}ies", looks, (ANY_HOST,), shown),
        Command(f"set_{name}", sets, (HOST, *fields), uses=(example,), more=more),
        Command(
            f"clear_{name}", clears, (HOST, named("policy")), uses=(example.split(maxsplit=1)[0],)
        ),
    )


COMMANDS: Final = (
    Command(
        "list_super_streams",
        "the super streams and their partitions",
        (ANY_HOST,),
        listed("virtual_host", "name", "partitions"),
    ),
    Command(
        "add_super_stream",
        "create a super stream with its partitions",
        (HOST, _SUPER_STREAM, *_DIVIDED, PARTITIONS_ARGUMENTS),
        _partitions,
        ("orders --partitions 3 -a max-age=7D", "orders --binding-keys emea,amer"),
        "Partitions are streams: orders-0, orders-1, orders-2, or orders-emea, orders-amer.\n"
        "Of a super stream that is there, partitions that it lacks are made and bound.",
        asked=lambda asked: {**_divided(asked), "mends": True},
    ),
    Command(
        "add_partitions",
        "add partitions to a super stream that is in use",
        (HOST, _SUPER_STREAM, *_DIVIDED),
        _partitions,
        ("orders --partitions 2",),
        "They come behind those there are, with the arguments of the first. Connected\n"
        "clients are told to ask again. Clients that choose a partition by a key's hash send most\n"
        "keys to another partition from then on: the messages of one key are in two partitions.",
        asked=_divided,
    ),
    Command(
        "delete_super_stream",
        "delete a super stream WITH ALL ITS PARTITIONS",
        (HOST, _SUPER_STREAM),
        uses=("orders",),
    ),
    Command(
        "list_exchanges",
        "the exchanges",
        (ANY_HOST,),
        listed("virtual_host", *EXCHANGES.names(without=("internal",))),
    ),
    Command(
        "add_exchange",
        "create an exchange",
        (
            HOST,
            _EXCHANGE,
            argument(
                "--type",
                "direct (default), fanout or topic",
                choices=("direct", "fanout", "topic"),
                default="direct",
            ),
            argument("--auto-delete", "goes with its last binding"),
        ),
        uses=("events --type topic",),
    ),
    Command(
        "delete_exchange",
        "delete an exchange; the streams bound to it stay",
        (HOST, _EXCHANGE),
        uses=("events",),
    ),
    Command(
        "list_bindings",
        "which routing keys lead where",
        (ANY_HOST,),
        listed("virtual_host", "source", "routing_key", "destination", "arguments"),
    ),
    Command(
        "bind",
        "let a routing key of an exchange lead to a stream",
        _ENDS,
        uses=("events orders --routing-key 'order.#'",),
    ),
    Command("unbind", "undo bind", _ENDS, uses=("events orders --routing-key 'order.#'",)),
    *_of_policies(
        POLICIES,
        "what holds for streams by their names",
        "say what holds for streams by their names",
        "delete a policy",
        """keep7d '^orders' '{"max-age": "7D"}' --priority 1""",
        "It counts at once, over what the streams were created with: max-age,\n"
        "max-length-bytes, stream-max-segment-size-bytes, stream-filter-size-bytes. Of several\n"
        "whose pattern fits one counts alone: that of the highest priority.",
    ),
    *_of_policies(
        OPERATOR_POLICIES,
        "limits that hold beside the policies",
        "set a limit that holds beside the policies",
        "delete an operator policy",
        """most '.*' '{"max-length-bytes": 5000000000}'""",
        "Of a stream's policy and its operator policy the smaller max-length-bytes counts.",
    ),
)
