from collections.abc import Collection
from pathlib import Path

import pytest

from compat.bench import campaign
from compat.bench.campaign import measure, median_figures
from compat.bench.connection import Address
from compat.bench.errors import BenchError
from compat.bench.scale import QUICK, Scale
from compat.bench.servers import HUTCH_OS, RABBITMQ, Server, ServerName
from compat.bench.steps import Results, Step


class Pretended:
    """A server that is nothing but a name."""

    can_restart = True
    address = Address("127.0.0.1", 1)
    tls_address: Address | None = None
    pids: tuple[int, ...] = ()
    data_folder: Path | None = None
    management_port = 0

    def __init__(self, name: ServerName) -> None:
        self.name = name
        self.starts = 0

    def start(self) -> None:
        self.starts += 1

    def restart(self, *, evict: bool) -> None:
        raise AssertionError(evict)

    def stop(self) -> None:
        raise AssertionError


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the steps by some that only note that they ran."""
    noted: list[str] = []

    def note(server: Server, _scale: Scale, wanted: Collection[str]) -> Results:
        noted.append(f"{server.name} {' '.join(sorted(wanted))}")
        if server.name == RABBITMQ and "bad" in wanted:
            raise BenchError("it went away")
        return {row: {"rate": float(len(noted))} for row in wanted}

    steps = (Step(("fresh",), note, once=True), Step(("a", "b"), note), Step(("bad",), note))
    monkeypatch.setattr(campaign, "STEPS", steps)
    monkeypatch.setattr(campaign, "QUIET_LOOK_S", 0.0)
    monkeypatch.setattr(campaign, "QUIET_LIMIT_S", 0.0)
    return noted


def run(rows: Collection[str], rounds: int) -> campaign.Outcome:
    scale = Scale(
        **{**{f: getattr(QUICK, f) for f in QUICK.__slots__}, "rounds": rounds, "settle_s": 0}
    )
    return measure([Pretended(HUTCH_OS), Pretended(RABBITMQ)], scale, rows, lambda _: None)


def test_the_servers_take_turns(done: list[str]) -> None:
    run(["b"], 3)
    assert done == ["hutch_os b", "rabbitmq b"] * 3


def test_what_needs_fresh_servers_is_done_once_and_first(done: list[str]) -> None:
    run(["a", "b", "fresh"], 2)
    assert done[:2] == ["hutch_os fresh", "rabbitmq fresh"]
    assert done[2:] == ["hutch_os a b", "rabbitmq a b"] * 2


def test_a_measurement_that_fails_does_not_end_the_others(done: list[str]) -> None:
    outcome = run(["bad"], 2)
    assert done == ["hutch_os bad", "rabbitmq bad"] * 2
    assert outcome.failures == ["rabbitmq, bad: it went away"] * 2
    assert list(outcome.medians()["bad"]) == [HUTCH_OS]


def test_medians_are_taken_figure_by_figure() -> None:
    rounds = [{"a": 1.0, "b": 5.0}, {"a": 9.0}, {"a": 2.0, "b": 7.0}]
    assert median_figures(rounds) == {"a": 2.0, "b": 6.0}
