"""The Erlang that test suites of RabbitMQ's clients evaluate: some fixed expressions, no others."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from gateway.commands.asking import Refused
from gateway.commands.grammar import Ask, Asked, Command, Options, WrongUse, argument

NODE: Final = "rabbit@localhost"
"""As the management API calls the server."""
_MS: Final = 1_000


class _Expression(NamedTuple):
    """One that is known.

    Attributes:
        pattern: What it looks like.
        request: What it asks of the server.
        arguments: Makes the arguments of the request of what the pattern has found.
        value: What it is evaluated to.
    """

    pattern: str
    request: str
    arguments: Callable[[Mapping[str, str]], Asked]
    value: str


def _nothing(_: Mapping[str, str]) -> Asked:
    return {}


def _resource(found: Mapping[str, str]) -> Asked:
    return {"resource": found["resource"]}


_EXPRESSIONS: Final[Sequence[_Expression]] = (
    _Expression(r"node\(\)", "status", _nothing, NODE),
    _Expression(r"nodes\(\)", "status", _nothing, "[]"),
    _Expression(
        r'exit\(rabbit_misc:string_to_pid\("<\S+?\.(?P<number>[0-9]{1,18})\.0>"\), *kill\)',
        "close_connections",
        lambda found: {"number": int(found["number"]), "reason": "killed by its number"},
        "true",
    ),
    _Expression(
        r"rabbit_alarm:set_alarm\(\{\{resource_limit, *(?P<resource>\w+), *node\(\)\}, *\[\]\}\)",
        "set_alarm",
        _resource,
        "ok",
    ),
    _Expression(
        r"rabbit_alarm:clear_alarm\(\{resource_limit, *(?P<resource>\w+), *node\(\)\}\)",
        "clear_alarm",
        _resource,
        "ok",
    ),
    _Expression(
        r"application:set_env\(rabbitmq_stream, *request_timeout, *(?P<seconds>[0-9]{1,9})\)",
        "set_consumer_update_timeout",
        lambda found: {"timeout_ms": int(found["seconds"]) * _MS},
        "ok",
    ),
    _Expression(r"rabbit_maintenance:drain\(\)", "drain", _nothing, "ok"),
    _Expression(r"rabbit_maintenance:revive\(\)", "revive", _nothing, "ok"),
    _Expression(
        r'case rabbit_stream_manager:lookup_leader\(<<"(?P<host>.+?)">>, *<<"(?P<name>.+?)">>\)'
        r" of .* end",
        "restart_stream",
        lambda found: {"virtual_host": found["host"], "name": found["name"]},
        "true",
    ),
)


def _known(options: Options) -> Asked:
    """Return which expression is meant and what it asks. Raises WrongUse."""
    text = options.expression.strip().rstrip(".").strip()
    for number, expression in enumerate(_EXPRESSIONS):
        if (match := re.fullmatch(expression.pattern, text)) is not None:
            return {"number": number, "arguments": expression.arguments(match.groupdict())}
    raise WrongUse(
        "this is none of the expressions that are known; see hutch ctl eval --help, and the other"
        " commands for what the server can do"
    )


def _evaluated(server: Ask, asked: Asked) -> str:
    expression = _EXPRESSIONS[asked["number"]]
    try:
        server(expression.request, asked["arguments"])
    except Refused as refusal:
        # Who is gone is killed as well, to Erlang.
        if expression.request != "close_connections" or refusal.code != "not_found":
            raise
    return expression.value


def _line(answer: Any) -> str:  # noqa: ANN401  # of any answer
    return f"{answer}\n"


EVAL: Final = Command(
    "eval",
    "do what an Erlang expression would do that clients' test suites use",
    (argument("expression", metavar="EXPRESSION", help="one of those below"),),
    _known,
    _line,
    (
        "hutch ctl eval 'nodes().'",
        """hutch ctl eval 'exit(rabbit_misc:string_to_pid("<rabbit@localhost.1.7.0>"), kill).'""",
        "hutch ctl eval 'rabbit_maintenance:drain().'",
    ),
    more="Known are node(), nodes(), rabbit_maintenance:drain() and revive(),\n"
    "rabbit_alarm:set_alarm({{resource_limit, disk, node()}, []}) and\n"
    "clear_alarm({resource_limit, disk, node()}), disk or memory,\n"
    "application:set_env(rabbitmq_stream, request_timeout, SECONDS),\n"
    'exit(rabbit_misc:string_to_pid("PID"), kill) with a pid of list_stream_connections, and\n'
    "the `case rabbit_stream_manager:lookup_leader(…) of … end` that ends a stream's leader.\n"
    "Each does what the command does that is for it: close_connections, set_alarm, and so on.",
    conversation=_evaluated,
)
