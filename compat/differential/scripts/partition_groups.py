"""Single active consumers over the partitions of a super stream, and the partitions of each."""

from __future__ import annotations

from compat.differential import frames as f
from compat.differential.script import Script, Step, Wait, ask, drop, hear, opened, script, silence
from compat.differential.scripts.groups import (
    SINGLE,
    TOLD,
    answer,
    credited,
    join,
    single,
    stored,
    told,
)

PARTS = ("~p-0", "~p-1", "~p-2")


def of_parts(**more: str) -> dict[str, str]:
    """Return those of one on a partition."""
    return single(super_stream="~p", **more)


def parts(*letters: str) -> tuple[Step, ...]:
    """Return the beginning: a super stream of three partitions, a record in each."""
    return (
        opened("P"),
        ask("P", f.create_super("~p", PARTS, ("0", "1", "2"))),
        *(ask("P", f.declare(at, name)) for at, name in enumerate(PARTS)),
        *(
            ask("P", f.messages(at, 1, b"in %d" % at), wait=Wait(confirmed=1))
            for at in range(len(PARTS))
        ),
        *(opened(letter) for letter in letters),
    )


def on_part(connection: str, at: int = 1, *, is_told: bool = False, credit: int = 10) -> Step:
    """Subscribe to one partition, under the partition's number as subscription id."""
    return join(connection, at, PARTS[at], pairs=of_parts(), is_told=is_told, credit=credit)


def on_parts(connection: str, *, is_told: bool = False) -> tuple[Step, ...]:
    """Subscribe to all three partitions; whether all are told at once to start."""
    return tuple(on_part(connection, at, is_told=is_told) for at in range(len(PARTS)))


# A is active on the partition of index 1 until B comes: then it is B's turn.
HANDING_OVER = (
    on_part("A", is_told=True),
    answer("A", 0, records=1),
    on_part("B"),
    hear("A", frames=1),
)

PARTITIONED = (
    script(
        "partitions: one member reads all",
        *parts("A"),
        *on_parts("A", is_told=True),
        answer("A", 0, records=1),
        answer("A", 1, records=1),
        answer("A", 2, records=1),
    ),
    script(
        "partitions: three members come, share, and go",
        *parts("A", "B", "C"),
        *on_parts("A", is_told=True),
        *(answer("A", corr, records=1) for corr in range(3)),
        *on_parts("B"),
        hear("A", frames=1),
        answer("A", 3),
        hear("B", frames=1),
        answer("B", 0, records=1),
        *on_parts("C"),
        hear("A", frames=1),
        answer("A", 4),
        hear("C", frames=1),
        answer("C", 0, records=1),
        drop("B"),
        hear("C", frames=2),
        answer("C", 1),
        hear("A", frames=1),
        answer("C", 2, records=1),
        answer("A", 5, records=1),
        drop("A"),
        hear("C", frames=2),
        answer("C", 3, records=1),
        answer("C", 4, records=1),
    ),
    script(
        "partitions: the first stays with the first of two",
        *parts("A", "B"),
        on_part("A", 0, is_told=True),
        answer("A", 0, records=1),
        on_part("B", 0),
        silence("A"),
        drop("A"),
        *told("B"),
        answer("B", 0, records=1),
    ),
    *(
        script(
            f"partitions: a step-down is answered with {name}",
            *parts("A", "B"),
            *HANDING_OVER,
            silence("B"),
            answer("A", 1, offset, code),
            *told("B"),
            answer("B", 0, records=1),
        )
        for name, offset, code in (
            ("nothing", f.NONE, 1),
            ("a place", f.at_offset(5), 1),
            ("code 17", f.NONE, 17),
            ("code 0", f.NONE, 0),
        )
    ),
    script(
        "partitions: nothing is delivered from the step-down on",
        *parts("A", "B"),
        *HANDING_OVER,
        stored("P", 2),
        silence("A"),
        credited("A", 3, frames=1),
        answer("A", 1),
        *told("B"),
        silence("A", 0.05),
        credited("A", 3, frames=1),
        answer("B", 0, f.NEXT),
        stored("P", 3),
        hear("B", records=1),
        silence("A", 0.05),
    ),
    script(
        "partitions: a step-down answered twice",
        *parts("A", "B"),
        *HANDING_OVER,
        answer("A", 1),
        *told("B"),
        answer("A", 1),
        silence("B"),
        answer("B", 0, records=1),
    ),
    *(
        script(
            f"partitions: the one that steps down {name} instead of answering",
            *parts("A", "B"),
            *HANDING_OVER,
            leave,
            *told("B"),
            answer("B", 0, records=1),
        )
        for name, leave in (
            ("unsubscribes", ask("A", f.unsubscribe(1))),
            ("vanishes", drop("A")),
        )
    ),
    *(
        script(
            f"partitions: the one that is to follow {name} before the step-down is answered",
            *parts("A", "B"),
            *HANDING_OVER,
            leave,
            silence("A"),
            answer("A", 1, frames=1),
            answer("A", 2, records=1),
        )
        for name, leave in (
            ("unsubscribes", ask("B", f.unsubscribe(1))),
            ("vanishes", drop("B")),
        )
    ),
    script(
        "partitions: asked to step down before it has answered that it starts",
        *parts("A", "B"),
        on_part("A", is_told=True),
        on_part("B"),
        hear("A", frames=1),
        answer("A", 1),
        *told("B"),
        answer("B", 0, records=1),
    ),
    script(
        "partitions: starts and steps down in one breath, answered in order",
        *parts("A", "B"),
        on_part("A", is_told=True),
        on_part("B"),
        hear("A", frames=1),
        ask("A", f.consumer_update_answer(0, f.FIRST), f.consumer_update_answer(1, f.NONE),
            wait=Wait()),
        *told("B"),
        silence("A", 0.1),
        answer("B", 0, records=1),
    ),
    script(
        "partitions: the late answer to a start does not stand for the step-down",
        *parts("A", "B"),
        on_part("A", is_told=True),
        on_part("B"),
        hear("A", frames=1),
        answer("A", 0, f.FIRST),
        silence("A"),
        silence("B"),
        answer("A", 1),
        *told("B"),
        answer("B", 0, records=1),
    ),
    script(
        "partitions: a third comes while one steps down",
        *parts("A", "B", "C"),
        *HANDING_OVER,
        on_part("C"),
        silence("A", label="asked again"),
        silence("C"),
        answer("A", 1),
        *told("B"),
        answer("B", 0, records=1),
        silence("C"),
        answer("A", 2),
        silence("B"),
        silence("C"),
    ),
    script(
        "partitions: the one that steps down unsubscribes, which changes who is to follow",
        *parts("A", "B", "C", "D"),
        on_part("A", 2, is_told=True),
        answer("A", 0, records=1),
        on_part("B", 2),
        on_part("C", 2),
        hear("A", frames=1),
        answer("A", 1),
        *told("C"),
        answer("C", 0, records=1),
        on_part("D", 2),
        drop("A"),
        hear("C", frames=1),
        ask("C", f.unsubscribe(2)),
        silence("B", label="of two"),
        silence("D", label="of three"),
    ),
    script(
        "partitions: the last of three is to follow once the second comes",
        *parts("A", "B", "C"),
        on_part("A", 2, is_told=True),
        answer("A", 0, records=1),
        on_part("B", 2),
        silence("A"),
        on_part("C", 2),
        hear("A", frames=1),
        answer("A", 1),
        *told("C"),
        answer("C", 0, records=1),
        silence("B"),
    ),
    script(
        "partitions: a waiting one goes, and the active one must",
        *parts("A", "B", "C"),
        *HANDING_OVER,
        answer("A", 1),
        *told("B"),
        answer("B", 0, records=1),
        on_part("C"),
        drop("A"),
        hear("B", frames=1),
        silence("C"),
        answer("B", 1),
        *told("C"),
        answer("C", 0, records=1),
    ),
    script(
        "partitions: a waiting one goes, and the active one stays",
        *parts("A", "B", "C"),
        *HANDING_OVER,
        answer("A", 1),
        *told("B"),
        answer("B", 0, records=1),
        on_part("C"),
        drop("C"),
        silence("B"),
        silence("A"),
    ),
    script(
        "partitions: who starts again reads from where the answer says",
        *parts("A", "B"),
        *HANDING_OVER,
        answer("A", 1),
        *told("B"),
        answer("B", 0, records=1),
        drop("B"),
        *told("A"),
        stored("P", 2),
        answer("A", 2, f.LAST, records=1),
    ),
    script(
        "partitions: who starts again and says nothing reads from where it subscribed",
        *parts("A", "B"),
        *HANDING_OVER,
        answer("A", 1),
        *told("B"),
        answer("B", 0, records=1),
        drop("B"),
        *told("A"),
        stored("P", 2),
        answer("A", 2, records=2),
    ),
    script(
        "partitions: credit of one that steps down counts when it starts again",
        *parts("A", "B"),
        on_part("A", is_told=True, credit=0),
        answer("A", 0),
        on_part("B"),
        hear("A", frames=1),
        credited("A", 1, frames=1),
        answer("A", 1),
        *told("B"),
        answer("B", 0, records=1),
        drop("B"),
        *told("A"),
        answer("A", 2, records=1),
    ),
    script(
        "partitions: both members on one connection",
        *parts("A"),
        join("A", 1, PARTS[1], pairs=of_parts(), is_told=True),
        answer("A", 0, records=1),
        ask("A", f.subscribe(2, PARTS[1], pairs=of_parts()), wait=TOLD),
        answer("A", 1, frames=1),
        answer("A", 2, records=1),
        ask("A", f.unsubscribe(2), wait=TOLD),
        answer("A", 3, records=1),
    ),
    *(
        script(
            f"partitions: a member {name}",
            *parts("A", "B"),
            join("A", 1, PARTS[1], pairs=first, is_told=True),
            join("B", 1, PARTS[1], pairs=second),
            silence("A"),
            join("B", 1, PARTS[1], pairs=SINGLE | {"name": "other"}, is_told=True),
            drop("A"),
            silence("B"),
        )
        for name, first, second in (
            ("without the super stream among some with it", of_parts(), SINGLE),
            ("with the super stream among some without it", SINGLE, of_parts()),
            ("of a super stream that is none, among those of one", of_parts(),
             single(super_stream="~nothing")),
            ("of a super stream that the stream is no part of", of_parts(),
             single(super_stream="~p-1")),
        )
    ),
    script(
        "partitions: the super stream is deleted while one steps down",
        *parts("A", "B"),
        *HANDING_OVER,
        ask("A", f.delete_super("~p"), wait=TOLD),
        *told("B"),
        silence("B"),
        answer("A", 1),
        silence("B", 0.05),
    ),
)  # fmt: skip

SCRIPTS: tuple[Script, ...] = PARTITIONED
