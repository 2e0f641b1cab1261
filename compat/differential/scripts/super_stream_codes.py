"""Super streams: made, asked for, taken apart, and what is in their way.

No DeleteSuperStream has an empty name, and no partition's name has a line break: the one deletes
all of a real broker's streams, the other leaves it with half a super stream.
"""

from __future__ import annotations

from collections.abc import Sequence

from compat.differential import frames as f
from compat.differential.script import Script, Step, Wait, ask, hear, opened, refused, script

PARTS = ("~x-0", "~x-1", "~x-2")
KEYS = ("0", "1", "2")


def look(*keys: str, streams: Sequence[str] = PARTS) -> tuple[Step, ...]:
    """Ask on A for everything that is known of the super stream."""
    return (
        ask("A", f.partitions("~x")),
        *(ask("A", f.route(key, "~x")) for key in keys),
        ask("A", f.metadata(*streams)),
    )


def made(streams: Sequence[str] = PARTS, keys: Sequence[str] = KEYS) -> tuple[Step, ...]:
    """Begin on A with a super stream."""
    return opened("A"), ask("A", f.create_super("~x", streams, keys))


MADE = (
    script("super: three partitions", *made(), *look("0", "1", "2", "3", "")),
    script("super: partitions in the order given", *made(PARTS[::-1]), *look("0", "2")),
    script("super: one partition", *made(PARTS[:1], KEYS[:1]), *look("0", "1")),
    script("super: no partition", *made((), ()), *look("0")),
    script("super: one key for all", *made(keys=("k", "k", "k")), *look("k", "0")),
    script("super: an empty key", *made(keys=("", "", "1")), *look("", "1")),
    script("super: keys with dots and stars", *made(keys=("*", "a.#", "a.b")),
           *look("*", "a.#", "a.b", "a")),
    script("super: partitions of unlike names", *made(("~z", "~y", "~other"), KEYS), *look("1")),
    script("super: its name is that of a partition", *made(("~x",), ("0",)), *look("0")),
    script(
        "super: arguments reach its partitions",
        opened("A"),
        ask("A", f.create_super("~x", PARTS[:1], KEYS[:1], {"max-age": "1h"})),
        ask("A", f.create("~x-0", {"max-age": "60m"})),
        ask("A", f.create("~x-0")),
    ),
    script(
        "super: line breaks in its name are removed by create",
        opened("A"),
        ask("A", f.create_super("~\nx\r", PARTS[:1], KEYS[:1])),
        *look("0"),
        ask("A", f.partitions("~\nx\r")),
    ),
    script("super: 40 partitions in order",
           *made([f"~x-{at}" for at in range(40)], [str(at) for at in range(40)]),
           *look("0", "39", "40", streams=("~x-7",))),
)  # fmt: skip

REFUSED = (
    script("super: made again", *made(), ask("A", f.create_super("~x", PARTS, KEYS)),
           ask("A", f.create_super("~x", ("~z",), ("0",))), *look("0", streams=("~z",))),
    script(
        "super: a partition exists as a stream",
        opened("A"),
        ask("A", f.create("~x-1")),
        ask("A", f.create_super("~x", PARTS, KEYS)),
        *look("0"),
    ),
    script(
        "super: a stream of its name is not in its way",
        opened("A"),
        ask("A", f.create("~x")),
        ask("A", f.create_super("~x", PARTS, KEYS)),
        *look("0"),
        ask("A", f.delete("~x")),
        *look("1"),
    ),
    script("super: fewer keys", *made(keys=("0", "1")), *look("0")),
    script("super: more keys", *made(keys=("0", "1", "2", "3")), *look("0")),
    script("super: a partition twice", *made(("~x-0", "~x-0"), ("0", "1")), *look("0")),
    script("super: a partition without a name", *made(("~x-0", ""), ("0", "1")), *look("0")),
    script("super: a reserved partition", *made(("~x-0", "amq.~"), ("0", "1")), *look("0")),
    script("super: a reserved name", opened("A"),
           ask("A", f.create_super("amq.~", ("~x-0",), ("0",))), *look("0")),
    script("super: 1,001 partitions",
           *made([f"~x-{at}" for at in range(1001)], [str(at) for at in range(1001)]),
           *look("0", streams=("~x-0",))),
    *(
        script(
            f"super: {key}={value}",
            opened("A"),
            ask("A", f.create_super("~x", PARTS, KEYS, {key: value})),
            *look("0"),
        )
        for key, value in (
            ("stream-filter-size-bytes", "3"),
            ("queue-leader-locator", "nowhere"),
            ("initial-cluster-size", "0"),
        )
    ),
    script("super: in version 2", opened("A"),
           refused("A", f.request(0x1D, f.text("~x") + bytes(12), version=2))),
)  # fmt: skip

TAKEN_APART = (
    script("super: deleted, and again, and made again", *made(),
           ask("A", f.delete_super("~x")), *look("0"), ask("A", f.delete_super("~x")),
           ask("A", f.create_super("~x", PARTS[:2], KEYS[:2])), *look("0", "2")),
    script("super: a partition is deleted", *made(), ask("A", f.delete("~x-1")),
           *look("0", "1", "2"), ask("A", f.create("~x-1")), *look("1"),
           ask("A", f.delete_super("~x")), *look("0")),
    script(
        "super: all partitions are deleted",
        *made(),
        *(ask("A", f.delete(part)) for part in PARTS),
        *look("0"),
        ask("A", f.delete_super("~x")),
        ask("A", f.delete_super("~x")),
    ),
    script(
        "super: who uses a partition is told once",
        *made(),
        opened("B"),
        ask("B", f.declare(1, "~x-0")),
        ask("B", f.subscribe(1, "~x-0")),
        opened("C"),
        ask("C", f.subscribe(1, "~x-1")),
        ask("A", f.declare(1, "~x-2")),
        ask("A", f.delete_super("~x"), wait=Wait(frames=2)),
        hear("B", frames=1),
        hear("C", frames=1),
        ask("B", f.messages(1, 1, b"late")),
        ask("C", f.credit(1, 1)),
    ),
    script(
        "super: published to by its routes and read",
        *made(),
        *(
            ask("A", f.declare(number, part), f.messages(number, 1, part.encode()),
                wait=Wait(frames=1, confirmed=1))
            for number, part in enumerate(PARTS)
        ),
        *(
            ask("A", f.subscribe(number, part), wait=Wait(frames=1, records=1))
            for number, part in enumerate(PARTS)
        ),
    ),
    script(
        "super: asked for from another connection",
        *made(),
        opened("B"),
        ask("B", f.partitions("~x", corr=2)),
        ask("B", f.route("1", "~x", corr=3), f.route("none", "~x", corr=4)),
    ),
)  # fmt: skip

SCRIPTS: tuple[Script, ...] = (*MADE, *REFUSED, *TAKEN_APART)
