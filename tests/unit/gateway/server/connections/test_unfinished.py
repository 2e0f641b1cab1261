"""Strangers hold little together, and nothing that is begun is waited for without an end."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.server.connections.unfinished import (
    CLIENT_S,
    NOTHING,
    STRANGER_BYTES_MAX,
    STRANGER_S,
    Marks,
    PreLoginInput,
    UnfinishedRequests,
)
from tests.unit.gateway.server.connection_rig import TimedLoop


class Connection:
    """A connection with a mark that a test sets."""

    def __init__(self, *, is_stranger: bool = True, peer: str = "127.0.0.1:1") -> None:
        self.is_stranger = is_stranger
        self.peer = peer
        self.marks: Marks = NOTHING
        self.steps: list[str] = []
        self.held = 0
        self.is_aborted = False

    def begun_marks(self) -> Marks:
        return self.marks

    def time_is_up(self, step: str) -> None:
        self.steps.append(step)

    def abort(self) -> None:
        self.is_aborted = True


@pytest.mark.parametrize(("is_stranger", "limit_s"), [(True, STRANGER_S), (False, CLIENT_S)])
@pytest.mark.parametrize("marks", [(1, 0), (0, 1)])
def test_what_is_begun_ends_in_time_though_the_other_thing_goes_on(
    marks: Marks, limit_s: float, *, is_stranger: bool
) -> None:
    loop: Any = TimedLoop()
    unfinished = UnfinishedRequests(loop)
    connection = Connection(is_stranger=is_stranger)
    connection.marks = marks
    unfinished.watch(connection)
    for number in range(int(limit_s) - 2):
        connection.marks = (marks[0] or number + 2, marks[1] or number + 2)
        loop.pass_time(1)
    assert connection.steps == []

    loop.pass_time(4)

    assert connection.steps == ["unfinished request"]
    assert loop.timer_count == 0


def test_what_ends_and_begins_again_is_not_late_and_what_is_over_is_not_looked_at() -> None:
    loop: Any = TimedLoop()
    unfinished = UnfinishedRequests(loop)
    connection = Connection()
    for number in range(1, 100):
        connection.marks = (number, 0)
        unfinished.watch(connection)
        loop.pass_time(2)
    connection.marks = NOTHING
    loop.pass_time(2)

    assert connection.steps == []
    assert loop.timer_count == 0


def test_a_connection_that_is_forgotten_leaves_no_timer() -> None:
    loop: Any = TimedLoop()
    unfinished = UnfinishedRequests(loop)
    connection = Connection()
    connection.marks = (1, 0)
    unfinished.watch(connection)
    unfinished.forget(connection)

    assert loop.timer_count == 0


def test_one_stranger_that_holds_too_much_is_ended() -> None:
    held = PreLoginInput(lambda *_: None)
    connection = Connection()
    connection.held = STRANGER_BYTES_MAX
    held.bound(connection, connection.held)
    assert not connection.is_aborted

    connection.held += 1
    held.bound(connection, connection.held)
    assert connection.is_aborted


def test_strangers_that_hold_too_much_together_are_ended_until_it_is_less() -> None:
    held = PreLoginInput(lambda *_: None, bytes_max=1_000)
    connections = [Connection() for _ in range(30)]

    for connection in connections:
        held.bound(connection, 100)
        held.bound(connection, 100)
        assert held.total <= 1_000
    assert [one for one in connections if not one.is_aborted] == connections[20:]

    for connection in connections:
        held.forget(connection)
    assert held.total == 0


def test_the_largest_of_the_address_that_holds_most_is_ended() -> None:
    held = PreLoginInput(lambda *_: None, bytes_max=1_000)
    honest = Connection(peer="192.0.2.1:1")
    held.bound(honest, 300)
    many = [Connection(peer=f"2001:db8::{place}:1") for place in range(12)]
    for size, connection in enumerate(many, start=60):
        held.bound(connection, size)

    assert not honest.is_aborted
    assert [one.is_aborted for one in many] == [False] * 10 + [True, True]
