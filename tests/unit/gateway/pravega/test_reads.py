"""The reads of one connection: how many may be open, and what each is answered at its end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from hutch.pravega.layout import WireMessage
from tests.unit.gateway.pravega.connection_rig import ConnectionRig

AT_ONCE = 4
"""Reads that are answered before the client has taken what came before."""


@pytest.fixture
def rig(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ConnectionRig]:
    """A connection with the segment `s`, which is empty; settings may come as a parameter."""
    rig = ConnectionRig(tmp_path, **getattr(request, "param", {}))
    rig.create("s")
    yield rig
    rig.close()


def ask(rig: ConnectionRig, number: int, offset: int = 0, segment: str = "s") -> None:
    """Ask for a read, and hand it to the store."""
    rig.connection.reads.ask(m.ReadSegment(segment, offset, 100, "", number))


def wait_open(rig: ConnectionRig, *numbers: int) -> None:
    """Turn until the store has found that these reads have to wait, or have their turn to come."""
    rig.turn_until(lambda: sorted(rig.connection.reads.open_requests) == sorted(numbers))


def numbers_of(messages: list[WireMessage]) -> list[int]:
    return [each.request_id for each in messages if isinstance(each, m.SegmentRead)]


def no_bytes(number: int, offset: int = 0) -> m.SegmentRead:
    return m.SegmentRead("s", offset, True, False, b"", number)  # noqa: FBT003 - at the tail


# How many


@pytest.mark.parametrize("rig", [{"reads_max": 3}], indirect=True)
def test_a_client_is_not_read_from_the_read_on_that_finds_the_most_open(
    rig: ConnectionRig,
) -> None:
    held: list[bool] = []
    for number in (1, 2, 3, 4):
        ask(rig, number)
        held.append(rig.ports.is_held)
        wait_open(rig, *range(1, number + 1))
    assert held == [False, False, False, True]

    rig.write("s", b"0123456789")

    rig.turn_until(lambda: not rig.ports.is_held)
    found: list[WireMessage] = []

    def all_came() -> bool:
        found.extend(rig.delivered())
        return len(found) == len(held)

    rig.turn_until(all_came)
    assert sorted(numbers_of(found)) == [1, 2, 3, 4]


@pytest.mark.parametrize("rig", [{"reads_max": 3}], indirect=True)
def test_a_client_that_does_not_take_its_answers_is_not_read_either(rig: ConnectionRig) -> None:
    rig.write("s", b"0123456789")
    for number in range(AT_ONCE + 3):
        ask(rig, number)
    assert rig.connection.reads.open_requests == [AT_ONCE, AT_ONCE + 1, AT_ONCE + 2]
    assert rig.ports.is_held
    rig.turn_until(rig.connection.reads.wants_more)
    assert rig.connection.reads.open_requests == [AT_ONCE, AT_ONCE + 1, AT_ONCE + 2]

    found: list[WireMessage] = []

    def all_came() -> bool:
        found.extend(rig.delivered())
        return len(found) == AT_ONCE + 3

    rig.turn_until(all_came)
    assert sorted(numbers_of(found)) == list(range(AT_ONCE + 3))
    assert not rig.ports.is_held


# Answers


def test_a_read_that_waited_is_answered_with_what_came(rig: ConnectionRig) -> None:
    ask(rig, 1)
    wait_open(rig, 1)
    assert rig.delivered() == []

    rig.write("s", b"0123456789")

    rig.turn_until(lambda: rig.ports.sources)
    (answer,) = rig.delivered()
    assert isinstance(answer, m.SegmentRead)
    assert (answer.request_id, answer.data, answer.end_of_segment) == (1, b"0123456789", False)
    assert rig.connection.reads.open_requests == []


def test_an_offset_that_can_never_be_there_is_refused_and_ends_the_connection(
    rig: ConnectionRig,
) -> None:
    rig.store_rig.do(rig.store.seal_segment, "s")
    ask(rig, 1, offset=5)
    rig.turn_until(lambda: rig.ports.is_finished)
    (refused,) = rig.replies()
    assert isinstance(refused, e.ErrorMessage)
    assert refused.request_id == 1
    assert rig.connection.is_over


def test_a_read_of_no_segment_is_refused_alone(rig: ConnectionRig) -> None:
    ask(rig, 1, segment="none")
    ask(rig, 2)
    rig.turn_until(lambda: rig.ports.frames)
    (refused,) = rig.replies()
    assert isinstance(refused, e.NoSuchSegment)
    wait_open(rig, 2)
    assert not rig.ports.is_finished


# The end


def test_reads_that_are_under_way_or_wait_are_answered_to_none_after_the_end(
    rig: ConnectionRig,
) -> None:
    ask(rig, 1)
    wait_open(rig, 1)
    rig.write("s", b"0123456789")
    ask(rig, 2)
    rig.ports.sources.clear()

    rig.connection.over()
    rig.write("s", b"more", number=2)
    rig.store_rig.do(rig.store.info, "s")

    assert rig.connection.reads.open_requests == []
    assert rig.ports.sources == []
    assert rig.replies() == []
    assert not rig.connection.reads.wants_more()


def test_a_farewell_sends_what_is_ready_and_answers_what_waits_without_bytes(
    rig: ConnectionRig,
) -> None:
    rig.write("s", b"0123456789")
    ask(rig, 1, offset=10)
    wait_open(rig, 1)
    ask(rig, 2)
    rig.turn_until(rig.connection.reads.wants_more)

    rig.connection.reads.farewell()

    answers = rig.replies()
    assert numbers_of(answers) == [2, 1]
    assert answers[1] == no_bytes(1, offset=10)
    rig.write("s", b"more", number=2)
    assert rig.replies() == []
    assert rig.connection.reads.open_requests == []
    assert not rig.connection.reads.wants_more()


def test_a_read_that_waits_is_answered_without_bytes_when_the_store_closes(
    rig: ConnectionRig,
) -> None:
    ask(rig, 1)
    wait_open(rig, 1)

    rig.close()

    assert rig.replies() == [no_bytes(1)]
    assert rig.connection.reads.open_requests == []
    assert not rig.ports.is_finished
