"""Policies that say what streams may keep: what they stand above, and what is left without them.

As for retention by arguments, three messages fill a segment, limits leave room, and there is a
pause before anything is asked: RabbitMQ removes segments in a process of its own, also after a
change of a policy.
"""

from __future__ import annotations

from compat.differential import frames as f
from compat.differential.script import (
    Script,
    Step,
    Wait,
    administer,
    ask,
    judged,
    opened,
    pause,
    script,
)
from compat.differential.scripts.retention import SEGMENT, SETTLED_S, described, message, read

CHANGED_S = 0.8
"""Time in which RabbitMQ tells a stream of another policy, and the stream acts on it."""


def policy(definition: dict[str, object], **arguments: object) -> Step:
    """Set a policy for the script's stream."""
    given = {"name": "~p", "pattern": "^~s$", "definition": definition} | arguments
    return administer("set_policy", **given)


def cleared(name: str = "~p") -> Step:
    """Clear a policy."""
    return administer("clear_policy", name=name)


def of_operators(definition: dict[str, object], **arguments: object) -> Step:
    """Set an operator policy for the script's stream."""
    given = {"name": "~o", "pattern": "^~s$", "definition": definition} | arguments
    return administer("set_operator_policy", **given)


def stream(arguments: dict[str, str]) -> tuple[Step, ...]:
    """Make a stream to publish to."""
    return opened("A"), ask("A", f.create("~s", arguments)), ask("A", f.declare(1, "~s"))


def messages(first: int, last: int) -> list[Step]:
    """Publish messages from a number up to another."""
    return [*(message(number) for number in range(first, last + 1)), pause(SETTLED_S)]


def left(records: int) -> tuple[Step, ...]:
    """Ask what is left in every way there is, and read it."""
    return (*described("described"), *read(records))


SIZE = (
    script(
        "policy: a limit of size that comes later acts at once",
        *stream(SEGMENT),
        *messages(0, 9),
        policy({"max-length-bytes": 8000}),
        pause(CHANGED_S),
        *left(7),
    ),
    script(
        "policy: a limit of size that was there before acts as an argument does",
        policy({"max-length-bytes": 8000}),
        *stream(SEGMENT),
        *messages(0, 9),
        *left(7),
    ),
    script(
        "policy: a larger size stands above the argument",
        policy({"max-length-bytes": 100_000}),
        *stream(SEGMENT | {"max-length-bytes": "5000"}),
        *messages(0, 9),
        *left(10),
    ),
    script(
        "policy: a smaller size stands above the argument",
        policy({"max-length-bytes": 5000}),
        *stream(SEGMENT | {"max-length-bytes": "100000"}),
        *messages(0, 6),
        *left(4),
    ),
    script(
        "policy: another limit in its place acts at once",
        policy({"max-length-bytes": 100_000}),
        *stream(SEGMENT),
        *messages(0, 9),
        policy({"max-length-bytes": 5000}),
        pause(CHANGED_S),
        *left(4),
    ),
    script(
        "policy: a limit of 0 leaves the last segment",
        *stream(SEGMENT),
        *messages(0, 9),
        policy({"max-length-bytes": 0}),
        pause(CHANGED_S),
        *left(1),
    ),
)

CLEARED = (
    script(
        "policy: cleared, the argument acts again at once",
        policy({"max-length-bytes": 100_000}),
        *stream(SEGMENT | {"max-length-bytes": "8000"}),
        *messages(0, 9),
        ask("A", f.stream_stats("~s"), label="under the policy"),
        cleared(),
        pause(CHANGED_S),
        *left(7),
    ),
    script(
        "policy: cleared, nothing limits a stream without arguments",
        policy({"max-length-bytes": 5000}),
        *stream(SEGMENT),
        *messages(0, 6),
        ask("A", f.stream_stats("~s"), label="under the policy"),
        cleared(),
        pause(CHANGED_S),
        *messages(7, 15),
        *left(13),
    ),
    script(
        "policy: replaced by one without a size, the argument acts again",
        policy({"max-length-bytes": 100_000}),
        *stream(SEGMENT | {"max-length-bytes": "8000"}),
        *messages(0, 9),
        policy({"max-age": "1D"}),
        pause(CHANGED_S),
        *left(7),
    ),
)

AGE = (
    script(
        "policy: a limit of age that comes later acts at once",
        *stream(SEGMENT),
        *messages(0, 6),
        pause(2.0),
        policy({"max-age": "1s"}),
        pause(CHANGED_S),
        *left(1),
    ),
    script(
        "policy: a larger age stands above the argument",
        policy({"max-age": "1h"}),
        *stream(SEGMENT | {"max-age": "1s"}),
        *messages(0, 2),
        pause(2.0),
        *messages(3, 3),
        *left(4),
    ),
    script(
        "policy: a smaller age stands above the argument",
        policy({"max-age": "1s"}),
        *stream(SEGMENT | {"max-age": "1h"}),
        *messages(0, 2),
        pause(2.0),
        *messages(3, 3),
        *left(1),
    ),
    script(
        "policy: an age beside the size of an argument",
        policy({"max-age": "1h"}),
        *stream(SEGMENT | {"max-length-bytes": "8000"}),
        *messages(0, 9),
        *left(7),
    ),
    script(
        "policy: size and age in one",
        policy({"max-age": "1h", "max-length-bytes": 8000}),
        *stream(SEGMENT),
        *messages(0, 9),
        *left(7),
    ),
)

SEGMENTS = (
    script(
        "policy: a size of segments that was there before",
        policy({"stream-max-segment-size-bytes": 3000, "max-length-bytes": 8000}),
        *stream({}),
        *messages(0, 9),
        *left(7),
    ),
    script(
        "policy: a larger size of segments stands above the argument",
        policy({"stream-max-segment-size-bytes": 100_000, "max-length-bytes": 5000}),
        *stream(SEGMENT),
        *messages(0, 9),
        *left(10),
    ),
    script(
        "policy: a smaller size of segments stands above the argument",
        policy({"stream-max-segment-size-bytes": 3000, "max-length-bytes": 8000}),
        *stream({"stream-max-segment-size-bytes": "100000"}),
        *messages(0, 9),
        *left(7),
    ),
    script(
        "policy: a size of segments that comes later",
        *stream({}),
        *messages(0, 0),
        policy({"stream-max-segment-size-bytes": 3000, "max-length-bytes": 8000}),
        pause(CHANGED_S),
        *messages(1, 12),
        *described("described"),
    ),
)

NOT_OF_STREAMS: dict[str, object] = {
    "dead-letter-exchange": "x",
    "dead-letter-routing-key": "x",
    "dead-letter-strategy": "at-least-once",
    "delivery-limit": 3,
    "expires": 60_000,
    "max-in-memory-bytes": 5,
    "max-in-memory-length": 5,
    "max-length": 5,
    "message-ttl": 5,
    "overflow": "drop-head",
    "queue-mode": "lazy",
    "target-group-size": 3,
}
"""A policy with one of these applies to no stream."""
OF_STREAMS: dict[str, object] = {
    "alternate-exchange": "x",
    "consumer-disconnected-timeout": 500,
    "consumer-timeout": 60_000,
    "delayed-retry-max": 5,
    "delayed-retry-min": 5,
    "initial-cluster-size": 1,
    "queue-leader-locator": "balanced",
    "queue-version": 2,
}


def of_two(name: str, first: dict[str, object], second: dict[str, object], records: int) -> Script:
    """Return a script in which two policies fit: a size of 5,000 bytes, and one of 100,000."""
    return script(
        f"policies: {name}",
        policy({"max-length-bytes": 5000}, name="~a", **first),
        policy({"max-length-bytes": 100_000}, name="~b", **second),
        *stream(SEGMENT),
        *messages(0, 6),
        *left(records),
    )


CHOSEN = (
    of_two("the higher priority counts", {"priority": 1}, {"priority": 2}, 7),
    of_two("the higher priority counts, the other way", {"priority": 2}, {"priority": 1}, 4),
    of_two("priorities below 0", {"priority": -1}, {"priority": -2}, 4),
    of_two("one for classic queues is none", {}, {"priority": 1, "apply_to": "classic_queues"}, 4),
    of_two("one for exchanges is none", {}, {"priority": 1, "apply_to": "exchanges"}, 4),
    of_two("one for queues counts", {}, {"priority": 1, "apply_to": "queues"}, 7),
    of_two("one for all counts", {}, {"priority": 1, "apply_to": "all"}, 7),
    of_two("one whose pattern fits not is none", {}, {"priority": 1, "pattern": "^~s.$"}, 4),
    of_two("a pattern is sought anywhere", {}, {"priority": 1, "pattern": "~"}, 7),
    script(
        "policies: only one counts, also for what it does not define",
        policy({"max-length-bytes": 5000}, name="~a", priority=1),
        policy({"max-age": "1h"}, name="~b", priority=2),
        *stream(SEGMENT),
        *messages(0, 6),
        *left(7),
    ),
    *(
        script(
            f"policies: one with {key} is none for a stream",
            policy({"max-length-bytes": 5000}, name="~a", priority=1),
            policy({"max-length-bytes": 100_000, key: value}, name="~b", priority=2),
            *stream(SEGMENT),
            *messages(0, 6),
            *left(4),
        )
        for key, value in NOT_OF_STREAMS.items()
    ),
    *(
        script(
            f"policies: one with {key} counts for a stream",
            policy({"max-length-bytes": 5000}, name="~a", priority=1),
            policy({"max-length-bytes": 100_000, key: value}, name="~b", priority=2),
            *stream(SEGMENT),
            *messages(0, 6),
            *left(7),
        )
        for key, value in OF_STREAMS.items()
    ),
    script(
        "policies: the next one counts when the first is cleared",
        policy({"max-length-bytes": 5000}, name="~a", priority=1),
        policy({"max-length-bytes": 100_000}, name="~b", priority=2),
        *stream(SEGMENT),
        *messages(0, 6),
        cleared("~b"),
        pause(CHANGED_S),
        *left(4),
    ),
    script(
        "policy: two streams, one of them meant",
        policy({"max-length-bytes": 5000}),
        *stream(SEGMENT),
        ask("A", f.create("~t", SEGMENT)),
        ask("A", f.declare(2, "~t")),
        *messages(0, 6),
        *(
            ask("A", f.messages(2, number, bytes(1000)), wait=Wait(confirmed=1))
            for number in range(7)
        ),
        pause(SETTLED_S),
        ask("A", f.stream_stats("~s"), label="meant"),
        ask("A", f.stream_stats("~t"), label="not meant"),
    ),
    script(
        "policy: a stream is still the same to who creates it again",
        policy({"max-length-bytes": 5000}),
        *stream(SEGMENT | {"max-length-bytes": "100000"}),
        ask("A", f.create("~s", SEGMENT | {"max-length-bytes": "100000"}, corr=1), label="same"),
        ask("A", f.create("~s", SEGMENT | {"max-length-bytes": "5000"}, corr=2), label="policy's"),
    ),
)

WRONG = tuple(
    script(
        f"policy: {definition!r} is judged",
        judged("set_policy", name="~p", pattern="^~s$", definition=definition, label="judged"),
    )
    for definition in (
        {"max-length-bytes": 5000},
        {"max-length-bytes": 0},
        {"max-length-bytes": -1},
        {"max-length-bytes": "5000"},
        {"max-length-bytes": "much"},
        {"max-length-bytes": 1.5},
        {"max-length-bytes": 2**70},
        {"max-age": "1D"},
        {"max-age": "1h30m"},
        {"max-age": "soon"},
        {"max-age": ""},
        {"max-age": 5},
        {"stream-max-segment-size-bytes": 3000},
        {"stream-max-segment-size-bytes": 0},
        {"stream-max-segment-size-bytes": -1},
        {"stream-max-segment-size-bytes": 3_000_000_001},
        {"stream-max-segment-size-bytes": "3000"},
        {"stream-filter-size-bytes": 15},
        {"stream-filter-size-bytes": 16},
        {"stream-filter-size-bytes": 255},
        {"stream-filter-size-bytes": 256},
        {"initial-cluster-size": 3},
        {"queue-leader-locator": "client-local"},
        {"alternate-exchange": 5},
        {"consumer-timeout": -1},
        {"dead-letter-strategy": "x"},
        {"delayed-retry-min": 0},
        {"delayed-retry-type": "all"},
        {"delivery-limit": -5},
        {"delivery-limit": "5"},
        {"expires": 0},
        {"expires": 1},
        {"initial-cluster-size": 0},
        {"max-length": "many"},
        {"max-length": True},
        {"message-ttl": "5"},
        {"overflow": "x"},
        {"overflow": "reject-publish-dlx"},
        {"queue-leader-locator": "x"},
        {"queue-leader-locator": "balanced"},
        {"queue-mode": "lazy"},
        {"queue-version": 3},
        {"target-group-size": 0},
        {"something else": 1},
        {},
    )
)

BESIDE = (
    *(
        script(
            f"operator policies: {of_operator} bytes beside {of_user} of a policy",
            policy({"max-length-bytes": of_user}),
            of_operators({"max-length-bytes": of_operator}),
            *stream(SEGMENT),
            *messages(0, 6),
            *left(records),
        )
        for of_operator, of_user, records in ((5000, 100_000, 4), (100_000, 5000, 4))
    ),
    script(
        "operator policies: a larger size stands above the argument",
        of_operators({"max-length-bytes": 100_000}),
        *stream(SEGMENT | {"max-length-bytes": "5000"}),
        *messages(0, 6),
        *left(7),
    ),
    script(
        "operator policies: a size acts at once, and its end too",
        *stream(SEGMENT),
        *messages(0, 6),
        of_operators({"max-length-bytes": 5000}),
        pause(CHANGED_S),
        *described("with it"),
        administer("clear_operator_policy", name="~o"),
        pause(CHANGED_S),
        *messages(7, 12),
        *described("without it"),
    ),
    script(
        "operator policies: one with message-ttl is none for a stream",
        of_operators({"max-length-bytes": 5000, "message-ttl": 5}),
        *stream(SEGMENT),
        *messages(0, 6),
        *left(7),
    ),
    *(
        script(
            f"operator policy: {definition!r} is judged",
            judged(
                "set_operator_policy",
                name="~o",
                pattern="^~s$",
                definition=definition,
                label="judged",
            ),
        )
        for definition in ({"max-length-bytes": 5}, {"max-age": "1h"}, {"overflow": "x"}, {})
    ),
)

OTHERS = (
    script(
        "policy: a pattern that is none",
        judged("set_policy", name="~p", pattern="(", definition={"max-age": "1D"}, label="judged"),
    ),
    script(
        "policy: an empty pattern",
        judged(
            "set_policy",
            name="~p",
            pattern="^never~$",
            definition={"max-age": "1D"},
            priority=-5,
            label="judged",
        ),
    ),
    script(
        "policy: for something that there is not",
        judged(
            "set_policy",
            name="~p",
            pattern="^~s$",
            definition={"max-age": "1D"},
            apply_to="cats",
            label="judged",
        ),
    ),
    script(
        "policy: clearing one that is not there", judged("clear_policy", name="~no", label="judged")
    ),
)

SCRIPTS: tuple[Script, ...] = (*SIZE, *CLEARED, *AGE, *SEGMENTS, *CHOSEN, *WRONG, *BESIDE, *OTHERS)
