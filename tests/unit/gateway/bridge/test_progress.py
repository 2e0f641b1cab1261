"""Progress of the routes: lines in a pipe, a table on a terminal, and the counts."""

import io
import logging
import time

import pytest
from rich.console import Console

from gateway.bridge import progress as shown
from gateway.bridge.lane import Lane
from gateway.bridge.progress import RouteProgress, summary
from tests.unit.gateway.bridge.bridge_rig import route


@pytest.fixture
def lanes() -> list[Lane]:
    return [Lane(route(name=name), waits=False, until_empty=False) for name in ("one", "two")]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Return what a terminal is sent."""
    written = io.StringIO()

    def console(*, stderr: bool) -> Console:
        assert stderr, "standard output is for what was asked for"
        return Console(file=written, force_terminal=True, width=100)

    monkeypatch.setattr(shown, "Console", console)
    return written


def test_in_a_pipe_there_is_a_line_for_each_route_each_ten_seconds(
    lanes: list[Lane], caplog: pytest.LogCaptureFixture
) -> None:
    assert shown.LINE_S == 10
    caplog.set_level(logging.INFO)
    progress = RouteProgress(lanes)
    lanes[0].counts.delivered, lanes[0].counts.refused = 1_000, 3
    lanes[0].counts.repeated, lanes[0].counts.under_way = 2, 7
    lanes[1].counts.waiting = 5
    progress._before = dict.fromkeys(lanes, (0, time.monotonic() - 1_000_000))

    progress.show()
    assert caplog.messages == []
    progress._line_at -= shown.LINE_S
    progress.show()
    progress.show()
    progress.close()

    assert caplog.messages == [
        ("progress route=one rate=0 delivered=1000 refused=3 repeated=2 under_way=7 waiting=None"),
        "progress route=two rate=0 delivered=0 refused=0 repeated=0 under_way=0 waiting=5",
    ]


def test_the_rate_is_that_since_the_line_before(
    lanes: list[Lane], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    moment = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: moment)
    progress = RouteProgress(lanes[:1])
    for delivered in (1_000, 1_500):
        lanes[0].counts.delivered = delivered
        moment += 10
        progress.show()

    rates = [line.split()[2] for line in caplog.messages]
    assert rates == ["rate=100", "rate=50"]


def test_a_terminal_shows_a_table_with_a_row_for_each_route(
    lanes: list[Lane], terminal: io.StringIO, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    progress = RouteProgress(lanes)
    lanes[0].counts.delivered, lanes[0].counts.under_way = 12_345, 7
    lanes[1].counts.waiting = 5
    progress._before = dict.fromkeys(lanes, (0, time.monotonic() - 1_000_000))

    progress.show()
    progress.close()

    rows = [line.split() for line in terminal.getvalue().splitlines()]
    assert ["one", "0", "12,345", "0", "0", "7", "-"] in rows
    assert ["two", "0", "0", "0", "0", "0", "5"] in rows
    assert "a second" in terminal.getvalue()
    assert "waiting" in terminal.getvalue()
    assert caplog.messages == []


def test_the_counts_at_the_end_name_what_is_not_zero(lanes: list[Lane]) -> None:
    lanes[0].counts.delivered = 2_000
    assert summary(lanes[0]) == "one: 2000 delivered"

    lanes[0].counts.refused, lanes[0].counts.repeated = 3, 1
    assert summary(lanes[0]) == "one: 2000 delivered, 3 refused, 1 repeated"
