"""Patience: a request that changes something waits for a log that is away, but not for ever."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

from gateway.broker.errors import Overdue
from gateway.pending import Pending, nothing, start

T = TypeVar("T")

AGAIN_MS: Final = 1_000


class Patience:
    """The time limit of requests in a cluster. While the log answers it counts for nothing."""

    def __init__(
        self, limit_ms: int, is_paused: Callable[[], bool], wait: Callable[[int], Pending[None]]
    ) -> None:
        """Begin.

        Args:
            limit_ms: How long a request waits.
            is_paused: Whether the log does not answer now.
            wait: Returns a Pending that is settled after milliseconds.
        """
        self._limit_ms = limit_ms
        self._is_paused = is_paused
        self._wait = wait

    async def result(
        self, work: Coroutine[Pending[Any], None, T], late: Callable[[], object] = nothing
    ) -> T:
        """Do some work and return its result; it goes on to its end in any case.

        Args:
            work: It.
            late: Called at its end, if that comes after Overdue was raised.

        Raises:
            Overdue: The limit is over and the log away: it may still be done.
        """
        outcome = start(work)
        delay_ms = self._limit_ms
        while not outcome.is_settled:
            either: Pending[None] = Pending()
            for each in (outcome, self._wait(delay_ms)):
                each.when_settled(partial(_settle, either))
            await either
            if self._is_paused() and not outcome.is_settled:
                outcome.when_settled(late)
                raise Overdue(
                    f"the cluster's log does not answer: after {self._limit_ms / 1_000:g} s"
                    " (cluster.request_timeout_s) it is not done, and may still be"
                )
            delay_ms = AGAIN_MS
        return outcome.result()


def _settle(either: Pending[None]) -> None:
    if not either.is_settled:
        either.settle(None)
