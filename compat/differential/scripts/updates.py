"""News of deleted streams to connections, and the versions of commands that they speak."""

from __future__ import annotations

from compat.differential import frames as f
from compat.differential.script import (
    Script,
    Step,
    Wait,
    ask,
    hear,
    opened,
    script,
    silence,
)

TOLD = Wait(frames=2)
WATCHED = (opened("A"), ask("A", f.create("~s")), opened("B"))


def deleted_under(name: str, *steps: Step, is_told: bool) -> Script:
    """Return a script in which B does something and A then deletes the stream."""
    end = hear("B", frames=1) if is_told else silence("B")
    return script(
        f"a stream is deleted under a connection that {name}",
        *WATCHED,
        *steps,
        ask("A", f.delete("~s")),
        end,
    )


UPDATES = (
    deleted_under("has a publisher", ask("B", f.declare(1, "~s")), is_told=True),
    deleted_under("has a subscription", ask("B", f.subscribe(1, "~s")), is_told=True),
    deleted_under("has asked for an offset", ask("B", f.query_offset("r", "~s")), is_told=True),
    deleted_under(
        "has stored an offset",
        ask("B", f.store_offset("r", "~s", 1), f.metadata(), wait=Wait(frames=1)),
        is_told=True,
    ),
    deleted_under(
        "has several of each",
        ask("B", f.declare(1, "~s"), f.declare(2, "~s", "ref")),
        ask("B", f.subscribe(1, "~s"), f.subscribe(2, "~s")),
        ask("B", f.query_offset("r", "~s")),
        is_told=True,
    ),
    deleted_under("has done nothing", is_told=False),
    deleted_under("has asked for statistics", ask("B", f.stream_stats("~s")), is_told=False),
    deleted_under("has asked for metadata", ask("B", f.metadata("~s")), is_told=False),
    deleted_under("has asked for a sequence", ask("B", f.query_sequence("r", "~s")), is_told=False),
    deleted_under("has resolved a place", ask("B", f.resolve("~s", f.FIRST)), is_told=False),
    deleted_under(
        "had a publisher",
        ask("B", f.declare(1, "~s")),
        ask("B", f.delete_publisher(1)),
        is_told=False,
    ),
    deleted_under(
        "had a subscription",
        ask("B", f.subscribe(1, "~s")),
        ask("B", f.unsubscribe(1)),
        is_told=False,
    ),
    deleted_under(
        "has asked for an offset and had a publisher since",
        ask("B", f.query_offset("r", "~s")),
        ask("B", f.declare(1, "~s")),
        ask("B", f.delete_publisher(1)),
        is_told=False,
    ),
    script(
        "the connection that deletes is told after the answer",
        opened("A"),
        ask("A", f.create("~s")),
        ask("A", f.declare(1, "~s")),
        ask("A", f.subscribe(1, "~s")),
        ask("A", f.delete("~s"), wait=TOLD),
    ),
    script(
        "after the update the publisher is gone",
        *WATCHED,
        ask("B", f.declare(1, "~s", "ref")),
        ask("A", f.delete("~s")),
        hear("B", frames=1),
        ask("B", f.messages(1, 5, b"x", b"y")),
        ask("B", f.delete_publisher(1)),
        ask("A", f.create("~s")),
        ask("B", f.declare(1, "~s", "ref")),
        ask("B", f.messages(1, 1, b"x"), wait=Wait(confirmed=1)),
    ),
    script(
        "after the update the subscription is gone",
        *WATCHED,
        ask("B", f.subscribe(1, "~s")),
        ask("A", f.delete("~s")),
        hear("B", frames=1),
        ask("B", f.credit(1, 1)),
        ask("B", f.unsubscribe(1)),
        ask("A", f.create("~s")),
        ask("B", f.subscribe(1, "~s")),
    ),
    script(
        "two streams deleted, one update each",
        *WATCHED,
        ask("A", f.create("~t")),
        ask("B", f.declare(1, "~s"), f.declare(2, "~t")),
        ask("A", f.delete("~s")),
        hear("B", frames=1),
        ask("B", f.messages(2, 1, b"x"), wait=Wait(confirmed=1)),
        ask("A", f.delete("~t")),
        hear("B", frames=1),
    ),
    script(
        "everybody is told",
        *WATCHED,
        opened("C"),
        opened("D"),
        ask("B", f.declare(1, "~s")),
        ask("C", f.subscribe(1, "~s")),
        ask("A", f.delete("~s")),
        hear("B", frames=1),
        hear("C", frames=1),
        silence("D", 0.1),
        silence("A", 0.1),
    ),
    script(
        "what was read stays read when the stream goes",
        *WATCHED,
        ask("A", f.declare(1, "~s")),
        ask("A", f.messages(1, 1, b"x"), wait=Wait(confirmed=1)),
        ask("B", f.subscribe(1, "~s"), wait=Wait(frames=1, records=1)),
        ask("A", f.delete("~s"), wait=TOLD),
        hear("B", frames=1),
    ),
)

# All that a client of today sends in one go.
ALL_KEYS = (*range(0x01, 0x20),)
STOCKED = (
    opened("A"),
    ask("A", f.create("~s")),
    ask("A", f.declare(1, "~s")),
    ask("A", f.messages(1, 1, b"one"), wait=Wait(confirmed=1)),
    opened("B"),
)
READ_ONE = Wait(frames=1, records=1)


def second_message(number: int) -> Step:
    """Publish one message on A."""
    return ask("A", f.messages(1, number, b"m%d" % number), wait=Wait(confirmed=1))


VERSIONS = (
    script("versions: what the server lists", opened("A"), ask("A", f.versions())),
    script(
        "versions: everything is announced",
        opened("A"),
        ask("A", f.versions(*((key, 1, 2 if key in (2, 8) else 1) for key in ALL_KEYS))),
        ask("A", f.metadata()),
    ),
    script(
        "versions: strange ranges are taken",
        opened("A"),
        ask("A", f.versions((2, 5, 1), (2, 0, 0), (2, 65535, 65535))),
    ),
    *(
        script(
            f"versions: Deliver {low} to {high}",
            *STOCKED,
            ask("B", f.versions((8, low, high))),
            ask("B", f.subscribe(1, "~s"), wait=READ_ONE),
            exact_chunks=True,
        )
        for low, high in ((1, 2), (1, 1), (2, 2), (1, 3), (3, 3))
    ),
    script(
        "versions: announced in the middle of a subscription",
        *STOCKED,
        ask("B", f.subscribe(1, "~s"), wait=READ_ONE),
        ask("B", f.versions((8, 1, 2))),
        second_message(2),
        hear("B", records=1),
        ask("B", f.versions((8, 1, 1))),
        second_message(3),
        hear("B", records=1),
        exact_chunks=True,
    ),
    script(
        "versions: Deliver announced twice, the second time differently",
        *STOCKED,
        ask("B", f.versions((8, 1, 1), (8, 1, 2))),
        ask("B", f.subscribe(1, "~s"), wait=READ_ONE),
        exact_chunks=True,
    ),
)

GROUPS = (
    *(
        script(
            f"single active consumer: {name}",
            opened("A"),
            ask("A", f.create("~s")),
            ask("A", f.subscribe(1, "~s", pairs=pairs)),
            ask("A", f.unsubscribe(1)),
        )
        for name, pairs in (
            ("no name", {"single-active-consumer": "true"}),
            ("no name, with a super stream",
             {"single-active-consumer": "true", "super-stream": "~x"}),
            ("a name of 256 bytes", {"single-active-consumer": "true", "name": "n" * 256}),
            ("the word in upper case, which does not count", {"single-active-consumer": "TRUE"}),
            ("the word false", {"single-active-consumer": "false", "name": "n"}),
        )
    ),
    script(
        "single active consumer: what does not exist",
        opened("A"),
        ask("A", f.subscribe(1, "~none", pairs={"single-active-consumer": "true", "name": "n"})),
        ask("A", f.subscribe(1, "~none", pairs={"single-active-consumer": "true"})),
    ),
    script(
        "single active consumer: an id that is taken",
        opened("A"),
        ask("A", f.create("~s")),
        ask("A", f.subscribe(1, "~s", f.NEXT)),
        ask("A", f.subscribe(1, "~s", pairs={"single-active-consumer": "true"})),
        ask("A", f.subscribe(1, "~s", pairs={"single-active-consumer": "true", "name": "n"})),
    ),
    script(
        "single active consumer: a group of one",
        opened("A"),
        ask("A", f.create("~s")),
        ask("A", f.subscribe(1, "~s", pairs={"single-active-consumer": "true", "name": "n"}),
            wait=Wait(frames=2), label="join"),
    ),
)  # fmt: skip

SCRIPTS: tuple[Script, ...] = (*UPDATES, *VERSIONS, *GROUPS)
