"""Subscriptions that want some filter values only.

Every chunk is one message that was confirmed before the next was sent, since how several are put
into chunks is free. What a server delivers is compared as it comes, without the client's own look
at each message: with so few values RabbitMQ's Bloom filter lets nothing through that an exact set
would not.
"""

from __future__ import annotations

from collections.abc import Mapping

from compat.differential import frames as f
from compat.differential.script import Script, Step, Wait, ask, hear, opened, script, silence, tell

# Values of the messages, None is no value; the bodies are the offsets.
STOCK = ("fig", "pear", None, "", "fig", "plum", "pear", "fig", None, "x" * 5000, "pear", "päär")


def frame(publishing_id: int, value: str | None, body: str) -> bytes:
    """Publish v2 with one message."""
    return f.publish(1, f.filtered_entry(publishing_id, value, body.encode()), version=2)


def stored(publishing_id: int, value: str | None, body: str) -> Step:
    """Store one message, on A."""
    return ask("A", frame(publishing_id, value, body), wait=Wait(confirmed=1))


def plain(publishing_id: int) -> Step:
    """Store one chunk of a Publish v1, on A."""
    return ask("A", f.messages(1, publishing_id, b"plain"), wait=Wait(confirmed=1))


def stocked(*steps: Step) -> tuple[Step, ...]:
    """Return steps that begin with a stream that holds STOCK."""
    fill = (stored(at + 1, value, str(at)) for at, value in enumerate(STOCK))
    return (
        opened("A"),
        ask("A", f.create("~s")),
        ask("A", f.declare(1, "~s")),
        *fill,
        opened("B"),
        *steps,
    )


def records_for(properties: Mapping[str, str]) -> int:
    """Return how many records of STOCK are to be waited for."""
    wanted = {value for key, value in properties.items() if key.startswith("filter.")}
    if not wanted:
        return len(STOCK)
    if properties.get("match-unfiltered") == "true":
        wanted.add("")
    return sum((value or "") in wanted for value in STOCK)


def reading(properties: Mapping[str, str], *, subscription_id: int = 1) -> tuple[Step, ...]:
    """Subscribe on B with properties, and hear all that comes of STOCK."""
    wait = Wait(frames=1, records=records_for(properties))
    frame = f.subscribe(subscription_id, "~s", f.FIRST, 100, properties)
    return (ask("B", frame, wait=wait), silence("B", 0.1))


WANTED: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("one value", {"filter.0": "fig"}),
    ("two values", {"filter.0": "fig", "filter.1": "plum"}),
    ("values named otherwise", {"filter.": "fig", "filter.x.y": "pear"}),
    ("a value that nothing has", {"filter.0": "apple"}),
    ("a value beyond ASCII", {"filter.0": "päär"}),
    ("a long value", {"filter.0": "x" * 5000}),
    ("the beginning of a value", {"filter.0": "pea"}),
    ("the empty value alone", {"filter.0": ""}),
    ("the empty value and unfiltered", {"filter.0": "", "match-unfiltered": "true"}),
    ("one value and unfiltered", {"filter.0": "plum", "match-unfiltered": "true"}),
    ("no such value and unfiltered", {"filter.0": "apple", "match-unfiltered": "true"}),
    ("unfiltered in capitals", {"filter.0": "plum", "match-unfiltered": "TRUE"}),
    ("unfiltered as 1", {"filter.0": "plum", "match-unfiltered": "1"}),
    ("unfiltered false", {"filter.0": "plum", "match-unfiltered": "false"}),
    ("unfiltered without a filter", {"match-unfiltered": "true"}),
    ("not unfiltered, without a filter", {"match-unfiltered": "false"}),
    ("filter without a dot", {"filter": "fig"}),
    ("Filter in capitals", {"FILTER.0": "fig"}),
    ("a name and a value", {"name": "app", "filter.0": "pear"}),
    ("all values", {f"filter.{n}": v for n, v in enumerate(("fig", "pear", "plum"))}),
    # Of most names RabbitMQ's Bloom filter takes some for those of STOCK.
    ("1,100 values", {f"filter.{n}": f"j{n}" for n in range(1100)} | {"filter.z": "plum"}),
    ("1,100 values that nothing has", {f"filter.{n}": f"g{n}" for n in range(1100)}),
    ("a hundred values", {f"filter.{n}": f"v{n}" for n in range(99)} | {"filter.z": "plum"}),
)  # fmt: skip

READ = tuple(
    script(f"filtered reading: {name}", *stocked(*reading(properties)))
    for name, properties in WANTED
)

PLACES = (
    ("at the first chunk that it wants", f.at_offset(5), 1),
    ("behind it", f.at_offset(6), 0),
    ("last, which it does not want", f.LAST, 0),
    ("at the next chunk", f.NEXT, 0),
)
STARTS = tuple(
    script(
        f"filtered reading begins {name}",
        *stocked(
            ask(
                "B",
                f.subscribe(1, "~s", place, 100, {"filter.0": "plum"}),
                wait=Wait(frames=1, records=records),
            ),
            silence("B", 0.1),
            stored(20, "fig", "a"),
            stored(21, "plum", "b"),
            hear("B", records=1),
            plain(22),
            silence("B", 0.1),
        ),
    )
    for name, place, records in PLACES
)

CREDIT = (
    script(
        "only chunks that are delivered cost credit",
        *stocked(
            ask(
                "B",
                f.subscribe(1, "~s", f.FIRST, 1, {"filter.0": "fig"}),
                wait=Wait(frames=1, records=1),
            ),
            silence("B", 0.1),
            tell("B", f.credit(1, 1)),
            hear("B", records=1),
            silence("B", 0.1),
            tell("B", f.credit(1, 1)),
            hear("B", records=2),
            tell("B", f.credit(1, 5)),
            silence("B", 0.1),
            stored(20, "pear", "a"),
            stored(21, "fig", "b"),
            hear("B", records=1),
            silence("B", 0.1),
        ),
    ),
    script(
        "two subscriptions of one stream filter on their own",
        *stocked(
            *reading({"filter.0": "fig"}),
            *reading({"filter.0": "plum"}, subscription_id=2),
            *reading({}, subscription_id=3),
            stored(20, "plum", "a"),
            hear("B", records=2),
            stored(21, "fig", "b"),
            hear("B", records=2),
        ),
    ),
    script(
        "a filter that finds nothing does not hold up a subscription that finds everything",
        *stocked(
            ask(
                "B",
                f.subscribe(1, "~s", f.FIRST, 100, {"filter.0": "apple"}),
                f.subscribe(2, "~s", f.NEXT, 100),
                wait=Wait(frames=2),
            ),
            *(stored(20 + number, "fig", f"m{number}") for number in range(5)),
            hear("B", records=5),
            silence("B", 0.1),
        ),
    ),
)

VALUE_KINDS = (
    script(
        "a stream whose messages all have no value, read with a filter",
        opened("A"),
        ask("A", f.create("~s")),
        ask("A", f.declare(1, "~s")),
        plain(1),
        stored(2, None, "a"),
        stored(3, "", "b"),
        opened("B"),
        ask("B", f.subscribe(1, "~s", f.FIRST, 10, {"filter.0": "fig"})),
        silence("B", 0.1),
        ask(
            "B",
            f.subscribe(2, "~s", f.FIRST, 10, {"filter.0": "fig", "match-unfiltered": "true"}),
            wait=Wait(frames=1, records=3),
        ),
        silence("B", 0.1),
    ),
    script(
        "a publisher with a reference and filter values: what is a duplicate has no value",
        opened("A"),
        ask("A", f.create("~s")),
        ask("A", f.declare(1, "~s", "ref")),
        stored(5, "fig", "a"),
        ask("A", frame(5, "pear", "again"), wait=Wait(confirmed=1)),
        stored(6, "plum", "b"),
        opened("B"),
        ask("B", f.subscribe(1, "~s", f.FIRST, 10, {"filter.0": "pear"})),
        silence("B", 0.1),
        ask(
            "B",
            f.subscribe(2, "~s", f.FIRST, 10, {"filter.0": "plum", "filter.1": "pear"}),
            wait=Wait(frames=1, records=1),
        ),
        silence("B", 0.1),
    ),
)

SCRIPTS: tuple[Script, ...] = (*READ, *STARTS, *CREDIT, *VALUE_KINDS)
