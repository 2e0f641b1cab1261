"""Patience: what is overdue while the log is away, and what is not."""

from collections.abc import Coroutine
from typing import Any

import pytest

from gateway.broker.errors import Overdue
from gateway.broker.patience import AGAIN_MS, Patience
from gateway.pending import Pending, run


class Rig:
    """Work that ends when the test says so, and waits that do."""

    def __init__(self, *, is_paused: bool = True) -> None:
        self.is_paused = is_paused
        self.work: Pending[str] = Pending()
        self.waits: list[tuple[int, Pending[None]]] = []
        self.outcomes: list[str | BaseException] = []
        self.late = 0
        self.patience = Patience(8_000, lambda: self.is_paused, self._wait)

    def _wait(self, delay_ms: int) -> Pending[None]:
        self.waits.append((delay_ms, Pending()))
        return self.waits[-1][1]

    def begin(self) -> None:
        async def work() -> str:
            return await self.work

        run(self.patience.result(work(), late=self._note_late), self.outcomes.append)

    def _note_late(self) -> None:
        self.late += 1

    def pass_(self) -> None:
        """Let the last wait end."""
        self.waits[-1][1].settle(None)


def test_work_that_waits_for_nothing_has_no_limit() -> None:
    rig = Rig()
    rig.work.settle("done")

    rig.begin()

    assert (rig.outcomes, rig.waits) == (["done"], [])


def test_work_that_ends_in_time_has_its_result() -> None:
    rig = Rig()
    rig.begin()
    rig.work.settle("done")
    rig.pass_()

    assert rig.outcomes == ["done"]
    assert not rig.late


def test_work_is_overdue_while_the_log_is_away_and_goes_on() -> None:
    rig = Rig()
    rig.begin()

    rig.pass_()

    [outcome] = rig.outcomes
    assert isinstance(outcome, Overdue)
    assert str(outcome) == (
        "the cluster's log does not answer: after 8 s (cluster.request_timeout_s) it is not done,"
        " and may still be"
    )
    rig.work.settle("done")
    assert rig.late == 1
    assert len(rig.outcomes) == 1


def test_work_that_takes_long_by_itself_is_not_overdue() -> None:
    rig = Rig(is_paused=False)
    rig.begin()
    for _ in range(3):
        rig.pass_()
    assert rig.outcomes == []
    assert [delay for delay, _ in rig.waits] == [8_000, *(AGAIN_MS,) * 3]

    rig.is_paused = True
    rig.pass_()

    assert isinstance(rig.outcomes[0], Overdue)


def test_errors_of_the_work_are_its_own() -> None:
    rig = Rig()
    rig.begin()
    rig.work.settle(ValueError("wrong"))
    assert isinstance(rig.outcomes[0], ValueError)

    async def fails() -> None:
        raise KeyError

    work: Coroutine[Any, None, None] = fails()
    outcomes: list[object] = []
    run(rig.patience.result(work), outcomes.append)
    with pytest.raises(KeyError):
        raise outcomes[0]  # type: ignore[misc]  # it is one
