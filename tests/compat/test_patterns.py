"""Ten thousand patterns by chance: what RabbitMQ finds is found, and what it refuses refused."""

from __future__ import annotations

from typing import Final

import pytest

from compat.broker import RunningBroker
from compat.differential.patterns import Case, answers, drawn
from gateway.broker import patterns
from gateway.broker.patterns import Pattern, UnusablePattern

pytestmark = pytest.mark.timeout(300)

COUNT: Final = 10_000
GIVEN_UP_MAX: Final = 0.001
"""Of RabbitMQ's matches: RabbitMQ takes far more steps, and counts them anew at each place."""


def text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def judged(case: Case) -> str:
    """Return Hutch's answer in the form of RabbitMQ's."""
    try:
        pattern = Pattern(text(case.pattern))
    except UnusablePattern:
        return "x"
    return "".join("01"[pattern.matches(text(name))] for name in case.names)


def test_generated_patterns_get_the_answers_of_the_broker(
    rabbitmq: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = list(drawn(COUNT, seed=23))
    theirs = answers(rabbitmq.control, cases)
    ours = [judged(case) for case in cases]
    differing = [index for index in range(COUNT) if ours[index] != theirs[index]]
    assert sum(answer != "x" for answer in theirs) > COUNT / 2
    match_count = sum(answer.count("1") for answer in theirs)
    assert match_count > COUNT

    # What is given up is no match here, never the other way, and a match with more steps.
    pairs = [pair for index in differing for pair in zip(ours[index], theirs[index], strict=True)]
    given_up = sum(mine != other for mine, other in pairs)
    assert given_up <= GIVEN_UP_MAX * match_count
    assert ("1", "0") not in pairs
    monkeypatch.setattr(patterns, "STEPS_MAX", 100_000_000)
    monkeypatch.setattr(patterns, "_HEAP_KIB_MAX", 100_000)
    for index in differing:
        again = zip(ours[index], judged(cases[index]), theirs[index], strict=True)
        # RabbitMQ itself gives up at some of the others.
        assert all(other in (mine, more) for mine, more, other in again), cases[index]


@pytest.mark.parametrize("size", [1_023, 1_024, 1_025])
def test_a_new_pattern_has_as_many_bytes_as_in_rabbitmq(rabbitmq: RunningBroker, size: int) -> None:
    (answer,) = answers(rabbitmq.control, [Case(b"a" * size, (b"b",))])

    assert (answer == "x") is bool(patterns.length_fault("a" * size))
