"""Exchanges: declared again, and what goes by another one because it leads nowhere."""

from __future__ import annotations

from collections.abc import Mapping

from compat.differential import frames as f
from compat.differential.script import (
    Script,
    Step,
    add_user,
    administer,
    allow,
    ask,
    judged,
    opened,
    pause,
    script,
)


def declared(
    name: str, kind: str = "direct", arguments: Mapping[str, object] | None = None
) -> Step:
    """Make an exchange."""
    return administer(
        "add_exchange", name=name, virtual_host="/", type=kind, arguments=arguments or {}
    )


def by(other: object) -> dict[str, object]:
    """Return the arguments of an exchange with an alternate one."""
    return {"alternate-exchange": other}


def bound(source: str, stream: str, key: str = "", **arguments: object) -> Step:
    """Bind a stream to an exchange."""
    return administer(
        "bind",
        virtual_host="/",
        source=source,
        destination=stream,
        routing_key=key,
        arguments=arguments,
    )


AGAIN = tuple(
    script(
        f"an exchange with arguments {arguments}, declared again with {again}",
        opened("A"),
        ask("A", f.create("~a")),
        declared("~e", arguments=arguments),
        bound("~e", "~a", "k"),
        judged("add_exchange", **{"name": "~e", "virtual_host": "/", "type": "direct"} | again),
        ask("A", f.partitions("~e")),
        ask("A", f.route("k", "~e")),
    )
    for arguments, again in (
        ({}, {}),
        ({}, {"arguments": {"x-super-stream": True}}),
        ({"x-super-stream": True}, {"arguments": {}}),
        ({"a": 1}, {"arguments": {"a": [2]}}),
        ({}, {"type": "fanout"}),
        ({}, {"durable": False}),
        ({}, {"internal": True}),
        ({}, {"auto_delete": True}),
        ({}, {"arguments": {"alternate-exchange": "f"}}),
        ({"alternate-exchange": "f"}, {"arguments": {"alternate-exchange": "f", "b": 1}}),
        ({"alternate-exchange": "f"}, {"arguments": {"alternate-exchange": "g"}}),
        ({"alternate-exchange": "f"}, {"arguments": {}}),
    )
)

ALWAYS_THERE = tuple(
    script(
        f"amq.direct declared again with {again}",
        judged(
            "add_exchange", **{"name": "amq.direct", "virtual_host": "/", "type": "direct"} | again
        ),
    )
    for again in ({}, {"arguments": {"a": 1}}, {"type": "topic"}, {"durable": False})
)


TO_B = (opened("A"), ask("A", f.create("~a")), ask("A", f.create("~b")),
        declared("~o", "fanout"), bound("~o", "~b"))  # fmt: skip


def routed(*keys: str, exchange: str = "~e") -> tuple[Step, ...]:
    """Ask where keys lead, and what is bound."""
    asked = (ask("A", f.route(key, exchange), label=f"to {key}") for key in keys)
    return (*asked, ask("A", f.partitions(exchange), label="partitions"))


ALTERNATES = (
    script(
        "an alternate exchange: what leads nowhere goes by it",
        *TO_B,
        declared("~e", arguments=by("~o")),
        bound("~e", "~a", "k"),
        *routed("k", "nowhere", ""),
    ),
    script(
        "an alternate exchange that is not there",
        *TO_B,
        declared("~e", arguments=by("~never")),
        *routed("nowhere"),
    ),
    script(
        "an alternate exchange that comes later, and goes",
        *TO_B,
        declared("~e", arguments=by("~later")),
        declared("~later", "fanout"),
        bound("~later", "~a"),
        *routed("nowhere"),
        administer("delete_exchange", name="~later", virtual_host="/"),
        *routed("nowhere"),
    ),
    script(
        "an alternate exchange of a super stream's exchange",
        *TO_B,
        declared("~e", arguments=by("~o") | {"x-super-stream": True}),
        bound("~e", "~a", "emea", **{"x-stream-partition-order": 0}),
        *routed("emea", "apac"),
    ),
    script(
        "alternate exchanges: a chain of three",
        *TO_B,
        declared("~e", arguments=by("~f")),
        declared("~f", "topic", arguments=by("~g")),
        declared("~g", "direct", arguments=by("~o")),
        bound("~f", "~a", "found.#"),
        *routed("nowhere", "found.there"),
    ),
    script(
        "alternate exchanges: a circle",
        *TO_B,
        declared("~e", arguments=by("~f")),
        declared("~f", arguments=by("~e")),
        bound("~f", "~a", "k"),
        *routed("nowhere", "k"),
    ),
    script(
        "alternate exchanges: itself",
        *TO_B,
        declared("~e", arguments=by("~e")),
        *routed("nowhere"),
    ),
    script(
        "alternate exchanges: the default one, and one without streams",
        *TO_B,
        declared("~e", arguments=by("")),
        declared("~f", arguments=by("amq.fanout")),
        *routed("~a", "nowhere"),
        *routed("~a", exchange="~f"),
    ),
    *(
        script(
            f"an alternate exchange by a policy for {apply_to}",
            *TO_B,
            declared("~e"),
            bound("~e", "~a", "k"),
            administer(
                "set_policy",
                name="~p",
                pattern="^~e$",
                definition={"alternate-exchange": "~o"},
                apply_to=apply_to,
            ),
            pause(0.5),
            *routed("k", "nowhere"),
            administer("clear_policy", name="~p"),
            pause(0.5),
            *routed("nowhere"),
        )
        for apply_to in ("exchanges", "all", "streams")
    ),
    script(
        "an alternate exchange by a policy, and another by the arguments",
        *TO_B,
        declared("~n", "fanout"),
        bound("~n", "~a"),
        declared("~e", arguments=by("~n")),
        administer(
            "set_policy",
            name="~p",
            pattern="^~e$",
            definition={"alternate-exchange": "~o"},
            apply_to="exchanges",
        ),
        pause(0.5),
        *routed("nowhere"),
    ),
    script(
        "an alternate exchange, and who may write where",
        *TO_B,
        declared("~e", arguments=by("~o")),
        bound("~e", "~a", "k"),
        add_user("~u"),
        allow("~u", write="^~[ea]$"),
        opened("U", user="~u"),
        ask("U", f.route("k", "~e"), label="to its own"),
        ask("U", f.route("nowhere", "~e"), label="to the other's"),
        allow("~u", write="^~[eb]$"),
        ask("U", f.route("nowhere", "~e"), label="without a right on the other"),
    ),
    *(
        script(
            f"an alternate exchange called {wrong!r}",
            judged(
                "add_exchange",
                name="~e",
                virtual_host="/",
                type="direct",
                arguments=by(wrong),
            ),
        )
        for wrong in (5, True, ["~o"], None, "")
    ),
)

SCRIPTS: tuple[Script, ...] = (*AGAIN, *ALWAYS_THERE, *ALTERNATES)
