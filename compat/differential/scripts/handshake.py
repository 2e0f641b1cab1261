"""The way from the first byte to an open connection: states, their order, repeats, early frames."""

from __future__ import annotations

from compat.differential import frames as f
from compat.differential.script import (
    Reached,
    Script,
    Wait,
    ask,
    connected,
    ending,
    half_closed,
    in_pieces,
    opened,
    pause,
    raw,
    reached,
    refused,
    script,
    tell,
    timed,
    until_end,
)

ORDER = (
    script(
        "the handshake step by step",
        connected("A"),
        ask("A", f.peer_properties({"product": "x"}, corr=1)),
        ask("A", f.sasl_handshake(corr=2)),
        ask("A", f.plain(corr=3), wait=Wait(frames=2)),
        tell("A", f.tune()),
        ask("A", f.open_host("/", corr=4)),
        ask("A", f.close(corr=5), wait=Wait(fin=True)),
    ),
    script(
        "correlation ids are echoed, whatever they are",
        connected("A"),
        ask("A", f.peer_properties(corr=0)),
        ask("A", f.sasl_handshake(corr=0xFFFFFFFF)),
        ask("A", f.plain(corr=0x80000000), wait=Wait(frames=2)),
        ask("A", f.open_host(corr=3)),
    ),
    script(
        "peer properties may be repeated before the mechanisms are asked for",
        connected("A"),
        ask("A", f.peer_properties({"connection_name": "one"}, corr=1)),
        ask("A", f.peer_properties({"connection_name": "two"}, corr=2)),
        ask("A", f.sasl_handshake(corr=3)),
    ),
    script(
        "mechanisms may be asked for twice",
        reached("A", Reached.PROPERTIES),
        ask("A", f.sasl_handshake(corr=1)),
        ask("A", f.sasl_handshake(corr=2)),
        ask("A", f.plain(corr=3), wait=Wait(frames=2)),
    ),
    script(
        "open without an answer to Tune takes the server's values",
        reached("A", Reached.AUTHENTICATED),
        ask("A", f.open_host()),
        ask("A", f.metadata()),
    ),
    script(
        "tune may be sent twice",
        reached("A", Reached.AUTHENTICATED),
        tell("A", f.tune(1 << 20)),
        pause(0.1),
        tell("A", f.tune(1 << 19)),
        pause(0.1),
        ask("A", f.open_host()),
    ),
    script(
        "tune may come with the bit of a response",
        reached("A", Reached.AUTHENTICATED),
        tell("A", f.tune(key=0x8014)),
        pause(0.1),
        ask("A", f.open_host()),
    ),
    script(
        "tune and open in one piece",
        reached("A", Reached.AUTHENTICATED),
        ask("A", f.tune(), f.open_host(), wait=Wait(frames=1)),
        ask("A", f.metadata()),
    ),
    script(
        "a frame may come byte by byte",
        connected("A"),
        in_pieces("A", 1, f.peer_properties()),
    ),
    script(
        "a heartbeat says nothing in any state",
        connected("A"),
        tell("A", f.heartbeat()),
        ask("A", f.peer_properties()),
        tell("A", f.heartbeat()),
        ask("A", f.sasl_handshake()),
        tell("A", f.heartbeat()),
        ask("A", f.plain(), wait=Wait(frames=2)),
        tell("A", f.heartbeat()),
        tell("A", f.tune()),
        tell("A", f.heartbeat()),
        ask("A", f.open_host()),
        tell("A", f.heartbeat()),
        ask("A", f.metadata()),
    ),
    script(
        "many peer properties, some of them empty",
        connected("A"),
        ask("A", f.peer_properties({f"key-{i}": "v" * i for i in range(60)})),
        ask("A", f.sasl_handshake()),
    ),
)

OUT_OF_ORDER = (
    script(
        "out of order: mechanisms first",
        connected("A"),
        ending("A", f.sasl_handshake()),
    ),
    script(
        "out of order: authentication first",
        connected("A"),
        ending("A", f.plain()),
    ),
    script(
        "out of order: authentication without the mechanisms",
        reached("A", Reached.PROPERTIES),
        ending("A", f.plain()),
    ),
    script(
        "out of order: tune first",
        connected("A"),
        ending("A", f.tune()),
    ),
    script(
        "out of order: open first",
        connected("A"),
        ending("A", f.open_host()),
    ),
    script(
        "out of order: open after the properties",
        reached("A", Reached.PROPERTIES),
        ending("A", f.open_host()),
    ),
    script(
        "out of order: open before authentication",
        reached("A", Reached.MECHANISMS),
        ending("A", f.open_host()),
    ),
    script(
        "out of order: tune before authentication",
        reached("A", Reached.MECHANISMS),
        ending("A", f.tune()),
    ),
    script(
        "out of order: properties again before authentication",
        reached("A", Reached.MECHANISMS),
        ending("A", f.peer_properties()),
    ),
    script(
        "out of order: mechanisms again after authentication",
        reached("A", Reached.AUTHENTICATED),
        ending("A", f.sasl_handshake()),
    ),
    script(
        "out of order: authentication again before tune",
        reached("A", Reached.AUTHENTICATED),
        ending("A", f.plain()),
    ),
    script(
        "out of order: properties again after tune",
        reached("A", Reached.TUNED),
        ending("A", f.peer_properties()),
    ),
)

# After Open these are commands of another phase.
TOO_LATE = tuple(
    script(f"too late: {name} once open", opened("A"), refused("A", body))
    for name, body in (
        ("peer properties", f.peer_properties()),
        ("mechanisms", f.sasl_handshake()),
        ("tune", f.tune()),
        ("tune with the bit of a response", f.tune(key=0x8014)),
        ("open", f.open_host()),
    )
)

# As many answers as requests: the update after delete stands for the offset that is stored.
LIFE = (
    f.create("~s", {"max-age": "1h"}, corr=1),
    f.declare(1, "~s", "ref", corr=2),
    f.query_sequence("ref", "~s", corr=3),
    f.subscribe(1, "~s", f.NEXT, 5, {"name": "n"}, corr=4),
    f.store_offset("app", "~s", 3),
    f.query_offset("app", "~s", corr=5),
    f.stream_stats("~none", corr=6),
    f.resolve("~none", f.LAST, corr=7),
    f.metadata("~s", "~none", corr=8),
    f.unsubscribe(1, corr=9),
    f.delete_publisher(7, corr=10),
    f.create("~s", {"max-age": "60m"}, corr=11),
    f.delete("~s", corr=12),
)

PIPELINED = (
    script(
        "pipelined: properties and mechanisms",
        connected("A"),
        ending("A", f.peer_properties(corr=1), f.sasl_handshake(corr=2)),
    ),
    script(
        "pipelined: authentication and tune",
        reached("A", Reached.MECHANISMS),
        ending("A", f.plain(), f.tune()),
    ),
    script(
        "pipelined: tune, open and a command",
        reached("A", Reached.AUTHENTICATED),
        ending("A", f.tune(), f.open_host(), f.metadata()),
    ),
    script(
        "pipelined: commands after open are answered in order",
        opened("A"),
        ask("A", f.metadata(corr=1), f.stream_stats("~none", corr=2), f.unsubscribe(9, corr=3)),
    ),
    script(
        "pipelined: the whole life of a stream",
        opened("A"),
        ask("A", *LIFE, wait=Wait(frames=len(LIFE))),
    ),
    *(
        script(
            f"pipelined: the whole life of a stream in pieces of {size} bytes",
            opened("A"),
            in_pieces("A", size, *LIFE),
        )
        for size in (1, 5, 23, 64)
    ),
    script(
        "pipelined: what follows a close is not looked at",
        opened("A"),
        ending("A", f.metadata(corr=1), f.close(corr=2), f.metadata(corr=3)),
    ),
    script(
        "pipelined: what follows a wrong frame is not looked at",
        opened("A"),
        ask("A", f.metadata(corr=1), f.command(0x7F), f.metadata(corr=3), wait=Wait(frames=2)),
    ),
)

# Commands that belong to an open connection.
TOO_EARLY = tuple(
    script(f"too early: {name} before {state.value}", reached("A", state), ending("A", body))
    for state in (Reached.PROPERTIES, Reached.TUNED)
    for name, body in (
        ("close", f.close()),
        ("command versions", f.versions((2, 1, 2))),
        ("publish", f.messages(1, 1, b"x")),
        ("metadata", f.metadata("~s")),
        ("create", f.create("~s")),
        ("credit", f.credit(1, 1)),
    )
)

HOSTS = (
    script(
        "an unknown virtual host is refused late, and the connection ends",
        reached("A", Reached.TUNED),
        timed("A", f.open_host("no such host"), wait=Wait(fin=True)),
    ),
    script(
        "an empty virtual host is unknown",
        reached("A", Reached.TUNED),
        timed("A", f.open_host(""), wait=Wait(fin=True)),
    ),
    script(
        "a virtual host whose name is no text",
        reached("A", Reached.TUNED),
        timed("A", f.request(0x15, f.text(b"\xff\xfe")), wait=Wait(fin=True)),
    ),
    script(
        "after a refused virtual host nothing more is answered",
        reached("A", Reached.TUNED),
        timed("A", f.open_host("nope"), f.open_host("/"), wait=Wait(fin=True)),
    ),
)

WRONG = tuple(
    script(f"malformed before open: {name}", reached("A", state), ending("A", body))
    for name, state, body in (
        ("peer properties cut short", Reached.PROPERTIES, f.peer_properties({"a": "b"})[:-1]),
        ("a byte behind peer properties", Reached.PROPERTIES, f.peer_properties() + b"\0"),
        ("peer properties without a map", Reached.PROPERTIES, f.request(0x11)),
        ("a byte behind the handshake", Reached.PROPERTIES, f.sasl_handshake() + b"\0"),
        ("a handshake of version 2", Reached.PROPERTIES, f.request(0x12, version=2)),
        ("an answer in place of a request", Reached.PROPERTIES, f.request(0x8012)),
        ("tune cut short", Reached.AUTHENTICATED, f.tune()[:-1]),
        ("a byte behind tune", Reached.AUTHENTICATED, f.tune() + b"\0"),
        ("open cut short", Reached.TUNED, f.open_host("/x")[:-1]),
        ("a byte behind open", Reached.TUNED, f.open_host() + b"\0"),
        ("open with a null name", Reached.TUNED, f.request(0x15, f.text(None))),
        ("a byte behind a heartbeat", Reached.TUNED, f.heartbeat() + b"\0"),
    )
)

GONE = (
    script(
        "half closed: what was asked before is answered, and the connection ends",
        opened("A"),
        ask("A", f.metadata()),
        half_closed("A"),
        until_end("A", 2.0),
    ),
    script(
        "half closed: inside a frame",
        opened("A"),
        raw("A", b"\0\0\0\x20\0\x0f"),
        half_closed("A"),
        until_end("A", 2.0),
    ),
    script(
        "half closed: before the first byte",
        connected("A"),
        half_closed("A"),
        until_end("A", 2.0),
    ),
)

SILENT = (
    *(
        script(f"silence for 10 s: {state.value}", reached("A", state), until_end("A", 14))
        for state in (Reached.PROPERTIES, Reached.MECHANISMS, Reached.AUTHENTICATED, Reached.TUNED)
    ),
    script("silence for 10 s: connected", connected("A"), until_end("A", 14)),
    script(
        "silence for 10 s: inside a frame",
        connected("A"),
        raw("A", b"\0\0\0\x20\0\x11"),
        until_end("A", 14),
    ),
)

SCRIPTS: tuple[Script, ...] = (
    *ORDER, *OUT_OF_ORDER, *TOO_LATE, *PIPELINED, *TOO_EARLY, *HOSTS, *WRONG, *GONE, *SILENT,
)  # fmt: skip
