"""Single active consumers: the questions to members as they come, answer and go."""

from __future__ import annotations

from compat.differential import frames as f
from compat.differential.script import (
    Script,
    Step,
    Wait,
    ask,
    drop,
    hear,
    opened,
    script,
    silence,
)

SINGLE = {"single-active-consumer": "true", "name": "app"}
TOLD = Wait(frames=2)


def single(**more: str) -> dict[str, str]:
    """Return the properties of a single active consumer."""
    return SINGLE | {key.replace("_", "-"): value for key, value in more.items()}


def join(
    connection: str,
    subscription_id: int = 1,
    stream: str = "~s",
    offset: bytes = f.FIRST,
    *,
    credit: int = 10,
    pairs: dict[str, str] | None = None,
    is_told: bool = False,
) -> Step:
    """Subscribe to a group; whether the joiner itself is told at once to start."""
    return ask(
        connection,
        f.subscribe(subscription_id, stream, offset, credit, SINGLE if pairs is None else pairs),
        wait=Wait(frames=1 + is_told),
    )


def answer(connection: str, corr: int, offset: bytes = f.NONE, code: int = 1, **wait: int) -> Step:
    """Answer a ConsumerUpdate, and wait for what that leads to on the same connection."""
    return ask(
        connection,
        f.consumer_update_answer(corr, offset, code),
        wait=Wait(**wait),  # type: ignore[arg-type]  # counts only
    )


def settled(connection: str) -> Step:
    """Ask something, whose answer shows that all sent before it was acted upon."""
    return ask(connection, f.query_offset("nobody", "~s"))


def plain(*letters: str, records: int = 3) -> tuple[Step, ...]:
    """Return the beginning: a stream with records, a chunk each, and open connections."""
    return (
        opened("P"),
        ask("P", f.create("~s")),
        ask("P", f.declare(1, "~s")),
        *(
            ask("P", f.messages(1, number, b"m%d" % number), wait=Wait(confirmed=1))
            for number in range(records)
        ),
        *(opened(letter) for letter in letters),
    )


def stored(connection: str, number: int, publisher_id: int = 1) -> Step:
    """Publish one more record, in a chunk of its own that no server joins with others."""
    batch = f.sub_batch(number, f.inner(b"m%d" % number), records=1)
    return ask(connection, f.publish(publisher_id, batch), wait=Wait(confirmed=1))


def credited(connection: str, chunks: int, subscription_id: int = 1, **wait: int) -> Step:
    """Return credit, and wait for an error or records."""
    return ask(
        connection,
        f.credit(subscription_id, chunks),
        wait=Wait(**wait),  # type: ignore[arg-type]  # counts only
    )


def told(*connections: str) -> tuple[Step, ...]:
    """Wait until each connection was told something."""
    return tuple(hear(connection, frames=1) for connection in connections)


ANSWERS = (
    ("nothing", f.NONE, 3),
    ("first", f.FIRST, 3),
    ("last", f.LAST, 1),
    ("next", f.NEXT, 0),
    ("offset 1", f.at_offset(1), 2),
    ("an offset beyond the end", f.at_offset(1000), 0),
    ("a time long ago", f.at_timestamp(-5), 3),
    ("a time to come", f.at_timestamp(1 << 60), 0),
)

STARTING = (
    *(
        script(
            f"group: the answer is {name}",
            *plain("A"),
            join("A", is_told=True),
            answer("A", 0, offset, records=records),
            settled("A"),
            stored("P", 9),
            hear("A", records=1),
        )
        for name, offset, records in ANSWERS
    ),
    *(
        script(
            f"group: the answer is nothing, the subscription asked for {name}",
            *plain("A"),
            join("A", offset=offset, is_told=True),
            answer("A", 0, records=records),
            settled("A"),
            stored("P", 9),
            hear("A", records=1),
        )
        for name, offset, records in ANSWERS[1:]
    ),
    *(
        script(
            f"group: the answer carries code {code}",
            *plain("A"),
            join("A", is_told=True),
            answer("A", 0, f.at_offset(1), code, records=2),
        )
        for code in (0, 2, 6, 17, 65535)
    ),
    script(
        "group: answered twice",
        *plain("A"),
        join("A", is_told=True),
        answer("A", 0, f.at_offset(1), records=2),
        answer("A", 0, f.FIRST),
        stored("P", 9),
        hear("A", records=1),
    ),
    script(
        "group: an answer that nobody waits for, then the right one",
        *plain("A"),
        join("A", is_told=True),
        answer("A", 1, f.FIRST),
        answer("A", 1 << 31, f.FIRST),
        answer("A", 0, f.FIRST, records=3),
    ),
    script(
        "group: nothing is delivered before the answer",
        *plain("A"),
        join("A", is_told=True),
        silence("A"),
        stored("P", 9),
        silence("A"),
        answer("A", 0, records=4),
    ),
    script(
        "group: credit before the answer is an error and counts",
        *plain("A", records=0),
        *(stored("P", number) for number in range(4)),
        join("A", credit=0, is_told=True),
        credited("A", 1, frames=1),
        credited("A", 2, frames=1),
        credited("A", -1, frames=1),
        answer("A", 0, records=2),
        credited("A", 1, records=1),
        credited("A", 1, records=1),
        exact_chunks=True,
    ),
    script(
        "group: no credit at all",
        *plain("A"),
        join("A", credit=0, is_told=True),
        answer("A", 0),
        silence("A"),
        credited("A", 5, records=3),
    ),
    script(
        "group: the stored offset is asked for before the answer",
        *plain("A"),
        ask("A", f.store_offset("app", "~s", 1), f.query_offset("app", "~s"), wait=Wait(frames=1)),
        join("A", is_told=True),
        ask("A", f.query_offset("app", "~s")),
        answer("A", 0, f.at_offset(2), records=1),
    ),
    script(
        "group: Deliver in version 2",
        *plain("A", records=0),
        stored("P", 1),
        ask("A", f.versions((8, 1, 2))),
        join("A", is_told=True),
        answer("A", 0, records=1),
        exact_chunks=True,
    ),
    script(
        "group: a name of 255 bytes",
        *plain("A", "B"),
        join("A", pairs=SINGLE | {"name": "n" * 255}, is_told=True),
        join("B", pairs=SINGLE | {"name": "n" * 255}),
        drop("A"),
        *told("B"),
    ),
)

WITHOUT_PARTITION = (
    script(
        "group: the first is active, the others wait",
        *plain("A", "B", "C"),
        join("A", is_told=True),
        join("B"),
        join("C"),
        answer("A", 0, records=3),
        silence("B"),
        silence("C"),
        stored("P", 9),
        hear("A", records=1),
        silence("B"),
    ),
    script(
        "group: the others wait while the first has not answered",
        *plain("A", "B"),
        join("A", is_told=True),
        join("B"),
        silence("B"),
        answer("A", 0, records=3),
        silence("B"),
    ),
    *(
        script(
            f"group: the active one {name}",
            *plain("A", "B", "C"),
            join("A", is_told=True),
            answer("A", 0, records=3),
            join("B"),
            join("C"),
            leave,
            *told("B"),
            answer("B", 0, f.at_offset(1), records=2),
            silence("C"),
            drop("B"),
            *told("C"),
            answer("C", 0, records=3),
        )
        for name, leave in (
            ("unsubscribes", ask("A", f.unsubscribe(1))),
            ("vanishes", drop("A")),
            ("closes", ask("A", f.close(), wait=Wait(frames=1, fin=True))),
        )
    ),
    *(
        script(
            f"group: the active one {name} without having answered",
            *plain("A", "B"),
            join("A", is_told=True),
            join("B"),
            leave,
            *told("B"),
            answer("B", 0, records=3),
        )
        for name, leave in (
            ("unsubscribes", ask("A", f.unsubscribe(1))),
            ("vanishes", drop("A")),
        )
    ),
    *(
        script(
            f"group: a waiting one {name}",
            *plain("A", "B", "C"),
            join("A", is_told=True),
            answer("A", 0, records=3),
            join("B"),
            join("C"),
            leave,
            silence("A"),
            silence("C"),
            drop("A"),
            *told("C"),
        )
        for name, leave in (
            ("unsubscribes", ask("B", f.unsubscribe(1))),
            ("vanishes", drop("B")),
        )
    ),
    script(
        "group: credit of a waiting one is an error and counts",
        *plain("A", "B", records=0),
        *(stored("P", number) for number in range(4)),
        join("A", is_told=True),
        join("B", credit=0),
        credited("B", 2, frames=1),
        drop("A"),
        *told("B"),
        credited("B", 1, frames=1),
        answer("B", 0, records=3),
        credited("B", 1, records=1),
        exact_chunks=True,
    ),
    script(
        "group: both members on one connection, the active one unsubscribes",
        *plain("A"),
        join("A", 1, is_told=True),
        join("A", 2),
        answer("A", 0, records=3),
        ask("A", f.unsubscribe(1), wait=TOLD),
        answer("A", 1, f.at_offset(2), records=1),
    ),
    script(
        "group: both members on one connection, the waiting one unsubscribes",
        *plain("A"),
        join("A", 1, is_told=True),
        join("A", 2),
        ask("A", f.unsubscribe(2)),
        answer("A", 0, records=3),
    ),
    script(
        "group: all members of a connection go at once",
        *plain("A", "B"),
        join("A", 1, is_told=True),
        join("A", 2),
        join("B"),
        join("A", 3),
        drop("A"),
        *told("B"),
        answer("B", 0, records=3),
    ),
    script(
        "group: other names and streams are other groups",
        *plain("A", "B"),
        ask("P", f.create("~t")),
        join("A", 1, is_told=True),
        join("A", 2, "~t", is_told=True),
        join("B", 1, pairs=single(name="other"), is_told=True),
        join("B", 2, "~t"),
        join("B", 3, pairs=single(name="App"), is_told=True),
        answer("B", 1, records=3),
        answer("A", 1),
        answer("A", 0, records=3),
    ),
    script(
        "group: the empty name is a name, none is refused",
        *plain("A", "B"),
        join("A", pairs={"single-active-consumer": "true"}),
        join("A", pairs=single(name=""), is_told=True),
        join("B", 1, pairs=single(name="")),
        join("B", 2, is_told=True),
        answer("A", 0, records=3),
        ask("A", f.unsubscribe(1)),
        *told("B"),
        answer("B", 1, f.LAST, records=1),
    ),
    script(
        "group: a subscription of its name that is no single active consumer stands beside it",
        *plain("A", "B"),
        ask("A", f.subscribe(1, "~s", pairs={"name": "app"}), wait=Wait(frames=1, records=3)),
        join("B", is_told=True),
        answer("B", 0, records=3),
        drop("A"),
        silence("B"),
    ),
    script(
        "group: questions of one connection are numbered from 0",
        *plain("A"),
        *(join("A", each, pairs=single(name=f"n{each}"), is_told=True) for each in range(5)),
        answer("A", 3, f.LAST, records=1),
        ask("A", f.unsubscribe(3)),
        join("A", 3, is_told=True),
        answer("A", 5, f.LAST, records=1),
        answer("A", 0, f.LAST, records=1),
    ),
    script(
        "group: an answer to the question of a subscription that is no more",
        *plain("A"),
        join("A", is_told=True),
        ask("A", f.unsubscribe(1)),
        join("A", is_told=True),
        answer("A", 0, f.FIRST),
        answer("A", 1, f.at_offset(1), records=2),
    ),
    script(
        "group: a member that comes back is the last",
        *plain("A", "B", "C"),
        join("A", is_told=True),
        join("B"),
        join("C"),
        ask("A", f.unsubscribe(1)),
        *told("B"),
        join("A"),
        drop("B"),
        *told("C"),
        drop("C"),
        *told("A"),
        answer("A", 1, records=3),
    ),
    script(
        "group: the stream is deleted",
        *plain("A", "B", "C"),
        join("A", is_told=True),
        answer("A", 0, records=3),
        join("B"),
        join("C"),
        ask("C", f.delete("~s"), wait=TOLD),
        *told("A", "B"),
        silence("B"),
        silence("A", 0.05),
        silence("C", 0.05),
        ask("P", f.create("~s"), wait=TOLD),
        join("B", is_told=True),
        join("A"),
        answer("B", 0),
    ),
    script(
        "group: the stream is deleted before the answer",
        *plain("A"),
        join("A", is_told=True),
        ask("P", f.delete("~s"), wait=TOLD),
        *told("A"),
        answer("A", 0),
        credited("A", 1, frames=1),
        ask("A", f.unsubscribe(1)),
    ),
    script(
        "group: a super stream that is none gives no partition",
        *plain("A", "B"),
        join("A", pairs=single(super_stream="~nothing"), is_told=True),
        join("B"),
        join("B", 2, pairs=single(super_stream="")),
        join("B", 3, pairs=single(super_stream="~s")),
    ),
)

SCRIPTS: tuple[Script, ...] = (*STARTING, *WITHOUT_PARTITION)
