"""Runs one client scenario in an event loop that is certain to end.

Some clients leave tasks behind that swallow cancellation; a runner that waits for
every task would then hang the whole test session. This one waits a little and goes on.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from tests.waiting import HANG_S

Result = TypeVar("Result")

LEFTOVER_SECONDS: Final = 2.0


def run(scenario: Coroutine[Any, Any, Result], seconds: float = HANG_S) -> Result:
    """Run the scenario to its end, for at most that long, and return its result.

    Raises:
        TimeoutError: It took longer.
    """
    with _client_litter_ignored():
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(_ignore)
        try:
            return loop.run_until_complete(asyncio.wait_for(scenario, seconds))
        finally:
            loop.run_until_complete(_end_leftovers())
            loop.close()


async def eventually(
    condition: Callable[[], bool], seconds: float = HANG_S, *, every_s: float = 0.01
) -> None:
    """Wait until the condition holds.

    Raises:
        AssertionError: It did not within that time.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not condition():
        assert loop.time() < deadline, f"not within {seconds} s"
        await asyncio.sleep(every_s)


async def retry(
    action: Callable[[], Awaitable[Result]],
    seconds: float = 20.0,
    *,
    errors: tuple[type[BaseException], ...] = (Exception,),
) -> Result:
    """Do it again and again, as an application would while its server is away."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        try:
            return await action()
        except errors:
            if loop.time() > deadline:
                raise
            await asyncio.sleep(0.2)


@contextmanager
def _client_litter_ignored() -> Iterator[None]:
    """Let a client leave sockets unclosed, which is its own affair, but not for the next test."""
    hook = sys.unraisablehook
    sys.unraisablehook = lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            yield
            gc.collect()
    finally:
        sys.unraisablehook = hook


async def _end_leftovers() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=LEFTOVER_SECONDS)
    await asyncio.get_running_loop().shutdown_asyncgens()


def _ignore(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Errors in a client's background tasks are the client's; tests judge by outcome."""
