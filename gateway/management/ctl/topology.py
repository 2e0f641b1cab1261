"""`hutch ctl` commands on super streams, exchanges, bindings and policies."""

import json
from typing import Any, Final

from gateway.management.ctl.grammar import (
    ANY_HOST,
    HOST,
    Asked,
    Command,
    Options,
    WrongUse,
    argument,
    key_list,
    lines,
    listed,
    stream_arguments,
)

_SUPER_STREAM: Final = argument("name", metavar="SUPER_STREAM", help="name of the super stream")
_PARTITIONS: Final = argument("--partitions", metavar="N", type=int, help="so many, numbered")
_KEYS: Final = argument(
    "--binding-keys", metavar="A,B", help="one for each of these keys, which name them"
)
_ARGUMENTS: Final = argument(
    "--argument",
    "-a",
    dest="arguments",
    metavar="NAME=VALUE",
    action="append",
    default=[],
    help="of each partition: max-age=7D, max-length-bytes=20000000000, …; again for each",
)
_ENDS: Final = (
    HOST,
    argument("source", metavar="EXCHANGE", help="name of the exchange"),
    argument("destination", metavar="STREAM", help="name of the stream"),
    argument("--routing-key", metavar="KEY", default="", help="key, or a topic's pattern"),
)


def _in_host(options: Options) -> Asked:
    return {"virtual_host": options.vhost}


def _named(options: Options) -> Asked:
    return {"virtual_host": options.vhost, "name": options.name}


def _divided(options: Options) -> Asked:
    keys = None if options.binding_keys is None else key_list(options.binding_keys)
    if (options.partitions is None) == (not keys):
        raise WrongUse("say either --partitions or --binding-keys")
    if keys and len(keys) <= options.binding_keys.count(","):
        raise WrongUse(f"one of the keys is empty: --binding-keys {options.binding_keys}")
    return {**_named(options), "partitions": options.partitions, "binding_keys": keys}


def _bound(options: Options) -> Asked:
    return {
        "virtual_host": options.vhost,
        "source": options.source,
        "destination": options.destination,
        "routing_key": options.routing_key,
    }


def _policy(options: Options) -> Asked:
    try:
        definition = json.loads(options.definition)
    except (ValueError, RecursionError) as error:
        raise WrongUse(f"the definition is not JSON: {error}") from None
    if not isinstance(definition, dict):
        raise WrongUse("the definition is no JSON object")
    return {
        **_named(options),
        "pattern": options.pattern,
        "definition": definition,
        "apply_to": options.apply_to,
        "priority": options.priority,
    }


def _partitions(answer: Any) -> str:  # noqa: ANN401  # what JSON holds
    return lines(answer["partitions"])


_SAID: Final = (
    argument("name", metavar="POLICY", help="name of the policy"),
    argument("pattern", metavar="PATTERN", help="looked for in the names of streams"),
    argument("definition", metavar="JSON", help="what it says"),
    argument(
        "--apply-to",
        choices=("streams", "queues", "all"),
        default="streams",
        help="for RabbitMQ; here all three mean streams (default: streams)",
    ),
    argument("--priority", metavar="N", type=int, default=0, help="the highest counts"),
)

COMMANDS: Final = (
    Command(
        "list_super_streams",
        "the super streams and their partitions",
        (ANY_HOST,),
        _in_host,
        listed("virtual_host", "name", "partitions"),
    ),
    Command(
        "add_super_stream",
        "create a super stream with its partitions",
        (HOST, _SUPER_STREAM, _PARTITIONS, _KEYS, _ARGUMENTS),
        lambda options: {
            **_divided(options),
            "arguments": stream_arguments(options.arguments),
            "mends": True,
        },
        _partitions,
        (
            "hutch ctl add_super_stream orders --partitions 3 -a max-age=7D",
            "hutch ctl add_super_stream orders --binding-keys emea,amer",
        ),
        more="Partitions are streams: orders-0, orders-1, orders-2, or orders-emea, orders-amer.\n"
        "Of a super stream that is there, partitions that it lacks are made and bound.",
    ),
    Command(
        "add_partitions",
        "add partitions to a super stream that is in use",
        (HOST, _SUPER_STREAM, _PARTITIONS, _KEYS),
        _divided,
        _partitions,
        ("hutch ctl add_partitions orders --partitions 2",),
        more="They come behind those there are, with the arguments of the first. Connected\n"
        "clients are told to ask again. Clients that choose a partition by a key's hash send most\n"
        "keys to another partition from then on: the messages of one key are in two partitions.",
    ),
    Command(
        "delete_super_stream",
        "delete a super stream WITH ALL ITS PARTITIONS",
        (HOST, _SUPER_STREAM),
        _named,
        examples=("hutch ctl delete_super_stream orders",),
    ),
    Command(
        "list_exchanges",
        "the exchanges",
        (ANY_HOST,),
        _in_host,
        listed("virtual_host", "name", "type", "durable", "auto_delete", "arguments"),
    ),
    Command(
        "add_exchange",
        "create an exchange",
        (
            HOST,
            argument("name", metavar="EXCHANGE", help="name of the exchange"),
            argument(
                "--type",
                choices=("direct", "fanout", "topic"),
                default="direct",
                help="direct (default), fanout or topic",
            ),
            argument("--auto-delete", action="store_true", help="goes with its last binding"),
        ),
        lambda options: {
            **_named(options),
            "type": options.type,
            "auto_delete": options.auto_delete,
        },
        examples=("hutch ctl add_exchange events --type topic",),
    ),
    Command(
        "delete_exchange",
        "delete an exchange; the streams bound to it stay",
        (HOST, argument("name", metavar="EXCHANGE", help="name of the exchange")),
        _named,
        examples=("hutch ctl delete_exchange events",),
    ),
    Command(
        "list_bindings",
        "which routing keys lead where",
        (ANY_HOST,),
        _in_host,
        listed("virtual_host", "source", "routing_key", "destination", "arguments"),
    ),
    Command(
        "bind",
        "let a routing key of an exchange lead to a stream",
        _ENDS,
        _bound,
        examples=("hutch ctl bind events orders --routing-key 'order.#'",),
    ),
    Command(
        "unbind",
        "undo bind",
        _ENDS,
        _bound,
        examples=("hutch ctl unbind events orders --routing-key 'order.#'",),
    ),
    Command(
        "list_policies",
        "what holds for streams by their names",
        (ANY_HOST,),
        _in_host,
        listed("virtual_host", "name", "pattern", "apply_to", "definition", "priority"),
    ),
    Command(
        "set_policy",
        "say what holds for streams by their names",
        (HOST, *_SAID),
        _policy,
        examples=("""hutch ctl set_policy keep7d '^orders' '{"max-age": "7D"}' --priority 1""",),
        more="It counts at once, over what the streams were created with: max-age,\n"
        "max-length-bytes, stream-max-segment-size-bytes, stream-filter-size-bytes. Of several\n"
        "whose pattern fits one counts alone: that of the highest priority.",
    ),
    Command(
        "clear_policy",
        "delete a policy",
        (HOST, argument("name", metavar="POLICY", help="name of the policy")),
        _named,
        examples=("hutch ctl clear_policy keep7d",),
    ),
    Command(
        "list_operator_policies",
        "limits that hold beside the policies",
        (ANY_HOST,),
        _in_host,
        listed("virtual_host", "name", "pattern", "apply_to", "definition", "priority"),
    ),
    Command(
        "set_operator_policy",
        "set a limit that holds beside the policies",
        (HOST, *_SAID),
        _policy,
        examples=(
            """hutch ctl set_operator_policy most '.*' '{"max-length-bytes": 5000000000}'""",
        ),
        more="Of a stream's policy and its operator policy the smaller max-length-bytes counts.",
    ),
    Command(
        "clear_operator_policy",
        "delete an operator policy",
        (HOST, argument("name", metavar="POLICY", help="name of the policy")),
        _named,
        examples=("hutch ctl clear_operator_policy most",),
    ),
)
