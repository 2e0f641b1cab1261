"""Erlang that suites evaluate: a few fixed expressions, and no others."""

from __future__ import annotations

import re

from compat.suites.shim.asking import NODE, USAGE, Failure, ask, ask_unless_gone
from compat.suites.shim.words import Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    Action: TypeAlias = Callable[[re.Match[str]], str]

_MS = 1_000


def _kill(match: re.Match[str]) -> str:
    # A process that is gone already is killed as well, to Erlang.
    ask_unless_gone("close_connections", number=int(match[1]), reason="killed by its number")
    return "true"


def _restart(match: re.Match[str]) -> str:
    ask("restart_stream", virtual_host=match[1], name=match[2])
    return "true"


def _request(name: str) -> Action:
    def evaluated(match: re.Match[str]) -> str:
        ask(name, **match.groupdict())
        return "ok"

    return evaluated


def _set_timeout(match: re.Match[str]) -> str:
    ask("set_consumer_update_timeout", timeout_ms=int(match[1]) * _MS)
    return "ok"


EXPRESSIONS: Sequence[tuple[str, Action]] = (
    (r"nodes\(\)", lambda _: "[]"),
    (r"node\(\)", lambda _: NODE),
    (r'exit\(rabbit_misc:string_to_pid\("<\S+?\.([0-9]{1,18})\.0>"\), *kill\)', _kill),
    (
        r"rabbit_alarm:set_alarm\(\{\{resource_limit, *(?P<resource>\w+), *node\(\)\}, *\[\]\}\)",
        _request("set_alarm"),
    ),
    (
        r"rabbit_alarm:clear_alarm\(\{resource_limit, *(?P<resource>\w+), *node\(\)\}\)",
        _request("clear_alarm"),
    ),
    (r"application:set_env\(rabbitmq_stream, *request_timeout, *([0-9]{1,9})\)", _set_timeout),
    (r"rabbit_maintenance:drain\(\)", _request("drain")),
    (r"rabbit_maintenance:revive\(\)", _request("revive")),
    (
        r'case rabbit_stream_manager:lookup_leader\(<<"(.+?)">>, *<<"(.+?)">>\) of .* end',
        _restart,
    ),
)


def evaluate(words: Words) -> str:
    """Do what an Erlang expression would do, if it is one of those known."""
    words.demand_count(1)
    (text,) = words.plain
    for pattern, action in EXPRESSIONS:
        match = re.fullmatch(pattern, text.strip().rstrip(".").strip())
        if match is not None:
            return action(match)
    raise Failure(f"this expression is not known here: {text}", USAGE)
