"""Exchanges: declared again, and what goes by another one because it leads nowhere."""

from __future__ import annotations

from compat.differential import frames as f
from compat.differential.script import Script, Step, administer, ask, judged, opened, script


def declared(name: str, kind: str = "direct", **options: object) -> Step:
    """Make an exchange."""
    return administer("add_exchange", name=name, virtual_host="/", type=kind, **options)


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

SCRIPTS: tuple[Script, ...] = (*AGAIN, *ALWAYS_THERE)
