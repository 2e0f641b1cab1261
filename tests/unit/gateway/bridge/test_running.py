"""The process of the bridge: how routes end, what is said of it, and the exit status."""

import asyncio
import logging
import os
import signal
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gateway.bridge import lane as lanes
from gateway.bridge import routes, running
from gateway.bridge.ends import EndUnreachable, Parcel
from gateway.command_line import complain
from tests.unit.gateway.bridge.bridge_rig import (
    MemorySource,
    MemoryTarget,
    ends_of,
    parcel,
    route,
)
from tests.waiting import HANG_S, wait_until


class Rig:
    """Ends in memory for all routes, by the name of the route.

    Attributes:
        sources, targets: The last ones of each route.
        fails: Why the source of a route cannot be opened.
        refuses: Routes whose target refuses everything.
        waits: Routes whose source never is empty.
    """

    def __init__(self) -> None:
        self.sources: dict[str, MemorySource] = {}
        self.targets: dict[str, MemoryTarget] = {}
        self.fails: dict[str, Exception] = {}
        self.refuses: set[str] = set()
        self.waits: set[str] = set()

    def source(self, given: routes.Route, *more: Any) -> MemorySource:  # noqa: ANN401
        made = MemorySource(given, *more)
        made.opening = self.fails.get(given.name)
        made.counted = 1 if given.name in self.waits else 0
        made.put(parcel(0), parcel(1))
        self.sources[given.name] = made
        return made

    def target(self, given: routes.Route, *more: Any) -> MemoryTarget:  # noqa: ANN401
        answer = "too large" if given.name in self.refuses else None
        made = MemoryTarget(given, *more, answers=lambda _: answer)
        self.targets[given.name] = made
        return made

    def is_settled(self, name: str) -> bool:
        return name in self.sources and self.sources[name].settled == [0, 1]


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(lanes, "LOOK_S", 0.001)
    monkeypatch.setattr(running, "LOOK_S", 0.001)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    made = Rig()
    with ends_of(made.source, made.target):
        yield made
    for number, handler in before.items():
        signal.signal(number, handler)


def named(*names: str) -> list[routes.Route]:
    return [route(name=name) for name in names]


def when(holds: Callable[[], object], do: Callable[[], object]) -> threading.Thread:
    """Do something when it is time, beside the process of the bridge."""

    def work() -> None:
        wait_until(holds)
        do()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_routes_until_empty_end_with_their_counts(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    assert running.run(named("one", "two"), until_empty=True) == 0

    assert capsys.readouterr().out == "one: 2 delivered\ntwo: 2 delivered\n"
    assert rig.is_settled("one")
    assert rig.is_settled("two")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_routes_well(
    rig: Rig, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    thread = when(
        lambda: rig.is_settled("one") and rig.is_settled("two"),
        lambda: os.kill(os.getpid(), number),
    )

    assert running.run(named("one", "two")) == 0

    thread.join(HANG_S)
    assert all(source.is_paused and source.saved[-1] == 2 for source in rig.sources.values())
    assert all(source.link.is_closed for source in rig.sources.values())
    assert capsys.readouterr() == ("", "")


def test_a_route_that_cannot_begin_is_a_line_and_ends_the_others(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    rig.fails["two"] = EndUnreachable("queue 'q' at h: no such\nqueue")

    assert running.run(named("one", "two")) == 2

    assert capsys.readouterr() == ("", "hutch: route 'two': queue 'q' at h: no such\\x0aqueue\n")
    assert all(source.link.is_closed for source in rig.sources.values())


def test_a_route_that_waits_does_not_end_the_others(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    rig.fails["two"] = EndUnreachable("not yet")
    thread = when(lambda: rig.is_settled("one"), terminate)

    assert running.run(named("one", "two"), waits=True) == 0

    thread.join(HANG_S)
    assert capsys.readouterr().err == ""


def test_a_route_that_stops_says_so_at_once_and_the_others_go_on(
    rig: Rig, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.refuses.add("one")
    said = threading.Event()

    def told(lines: str, status: int) -> int:
        said.set()
        return complain(lines, status)

    monkeypatch.setattr(running, "complain", told)
    thread = when(lambda: said.is_set() and rig.is_settled("two"), terminate)

    assert running.run(named("one", "two")) == 1

    thread.join(HANG_S)
    assert capsys.readouterr().err == (
        "hutch: route 'one': a message was refused: too large, stream s, offset 0;"
        " `refused` of the route says what to do with such messages\n"
    )
    assert rig.sources["two"].saved[-1] == 2


def test_a_mistake_of_ours_is_logged_whole_and_the_others_go_on(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.fails["one"] = KeyError("a mistake")

    assert running.run(named("one", "two"), until_empty=True) == 1

    (line,) = [each for each in caplog.records if each.name == running.log.name]
    assert line.getMessage() == "a route failed route=one"
    assert line.exc_info is not None
    assert rig.is_settled("two")


def test_of_several_exit_statuses_the_highest_counts(rig: Rig) -> None:
    rig.refuses.add("one")
    rig.fails["two"] = EndUnreachable("no such queue")

    assert running.run(named("one", "two")) == 2


def test_a_route_that_does_not_end_is_left_behind(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lanes.FINISH_S + running.SPARE_S == 15
    monkeypatch.setattr(running, "FINISH_S", 0.0)
    monkeypatch.setattr(running, "SPARE_S", 0.05)
    goes_on = threading.Event()
    held = threading.Event()

    def hold(_parcel: Parcel) -> None:
        held.set()
        goes_on.wait(HANG_S)

    target = rig.target

    def holding(*given: Any) -> MemoryTarget:  # noqa: ANN401  # as the class has it
        made = target(*given)
        made.answers = hold
        return made

    with ends_of(rig.source, holding):
        thread = when(held.is_set, terminate)
        assert running.run(named("one")) == 0
        thread.join(HANG_S)

    assert "the route does not end in time route=one" in caplog.messages
    goes_on.set()
    for each in threading.enumerate():
        if isinstance(each, running.RouteWorker):
            each.join(HANG_S)


def test_a_route_that_has_ended_may_be_told_to(rig: Rig) -> None:
    worker = running.RouteWorker(lanes.Lane(route(), waits=False, until_empty=True))
    worker.start()
    worker.join(HANG_S)

    worker.finish()

    assert (worker.status, rig.is_settled("r")) == (0, True)


def test_metrics_are_served_while_routes_work(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rig.waits.add("one")
    pages: list[str] = []

    def address() -> list[str]:
        return [line for line in caplog.messages if line.startswith("metrics address=")]

    def look() -> None:
        port = address()[0].rpartition(":")[2]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=HANG_S) as page:
            pages.append(page.read().decode())
        terminate()

    thread = when(lambda: rig.is_settled("one") and address(), look)

    assert running.run(named("one"), metrics=("127.0.0.1", 0)) == 0

    thread.join(HANG_S)
    assert 'hutch_bridge_delivered_messages_total{route="one"} 2.0' in pages[0]


def test_a_port_that_is_taken_is_a_line(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        assert running.run(named("one"), metrics=("127.0.0.1", port)) == 2

    assert capsys.readouterr().err == f"hutch: --metrics {port}: Address already in use\n"
    assert rig.sources == {}


def test_removing_says_what_it_has_done(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    assert running.remove(route(name="one")) == 0

    assert rig.sources["one"].settled == ["removed"]
    assert rig.sources["one"].link.is_closed
    assert capsys.readouterr() == ("route 'one': removed\n", "")


def test_removing_where_that_is_not_possible_is_a_line(
    rig: Rig, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(_source: object) -> None:
        raise EndUnreachable("queue 'q' at h: no rights")

    monkeypatch.setattr(MemorySource, "remove", refused)

    assert running.remove(route(name="one")) == 2

    assert rig.sources["one"].link.is_closed
    assert capsys.readouterr() == ("", "hutch: route 'one': queue 'q' at h: no rights\n")


def test_each_route_has_a_loop_of_its_own(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    loops: list[asyncio.AbstractEventLoop] = []
    opened = MemorySource.open

    async def noted(source: MemorySource) -> None:
        loops.append(asyncio.get_running_loop())
        await opened(source)

    monkeypatch.setattr(MemorySource, "open", noted)

    assert running.run(named("one", "two"), until_empty=True) == 0

    assert len(set(loops)) == 2
    assert all(loop.is_closed() for loop in loops)
    assert rig.is_settled("two")
