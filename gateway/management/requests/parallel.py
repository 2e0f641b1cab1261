"""Steps of an import, many of them at a time."""

from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, TypeAlias

from gateway.broker.access.errors import AccessError
from gateway.broker.errors import BrokerError
from gateway.management.kinds.kind import AT_ONCE
from gateway.pending import Pending, start
from store.errors import StoreError

Step: TypeAlias = Coroutine[Pending[Any], None, Any]
Give: TypeAlias = Callable[[], Coroutine[Pending[Any], None, None]]
"""Lets others have their turn if it is time."""


class Stopped(Exception):
    """The server stops; what was done stays, since its next start finishes it."""


class StepFailed(Exception):
    """One object could not be written; the message names it."""


FAILURES: Final = (StepFailed, AccessError, BrokerError, StoreError)
"""Errors that a step may raise."""


async def _keep() -> None:
    """Let others have no turn, where there are few steps."""


async def in_parallel(
    steps: Iterable[Step],
    *,
    give: Give = _keep,
    is_over: Callable[[], bool] = lambda: False,
    at_once: int = AT_ONCE,
) -> None:
    """Do steps, some of them at a time.

    Args:
        steps: What to do.
        give: Awaited before each: a store that is quick ends those before at once.
        is_over: Tells whether to begin no more of them.
        at_once: How many may be under way.

    Raises:
        Stopped: Not all were begun.
        StepFailed, AccessError, BrokerError, StoreError: What a step raised first. In each case
            all that were begun have ended.
    """
    running: deque[Pending[Any]] = deque()
    failure: Exception | None = None
    for step in steps:
        await give()
        if failure is not None or is_over():
            step.close()
            failure = failure or Stopped("the server is stopping")
            break
        running.append(start(step))
        if len(running) >= at_once:
            failure = await _outcome(running.popleft())
    while running:
        outcome = await _outcome(running.popleft())
        failure = failure or outcome
    if failure is not None:
        raise failure


async def _outcome(pending: Pending[Any]) -> Exception | None:
    try:
        await pending
    except FAILURES as error:
        return error
    return None
