"""The bridge from an event loop to coroutines that know none (`gateway.pending`)."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from gateway.pending import Pending, run
from store.errors import StoreError

log = logging.getLogger(__name__)

T = TypeVar("T")


async def awaited(coroutine: Coroutine[Pending[Any], None, T]) -> T:
    """Run one of the broker's coroutines on the event loop."""
    pending: Pending[T] = Pending()
    run(coroutine, pending.settle)
    return await settled(pending)


async def settled(pending: Pending[T]) -> T:
    """Wait for a result that comes by a callback."""
    await called(pending.when_settled)
    return pending.result()


def next_turn() -> Pending[None]:
    """Return what is settled when the others had their turn. Only on the event loop."""
    pending: Pending[None] = Pending()
    asyncio.get_running_loop().call_soon(pending.settle, None)
    return pending


async def called(begin: Callable[[Callable[[], None]], object]) -> None:
    """Wait until the callback is called that `begin` is given."""
    event = asyncio.Event()
    begin(event.set)
    await event.wait()


async def done_before(end_s: float, step: Coroutine[Any, Any, None]) -> bool:
    """Do a step of a stop; False if it fails or is not through at `end_s` of the loop's time."""
    try:
        async with asyncio.timeout_at(end_s):
            await step
    except (TimeoutError, StoreError) as error:
        # One line for the operator: what is missing is done by the next opening.
        log.error("stop is not clean, the next start recovers error=%r", error)  # noqa: TRY400
        return False
    except Exception:  # the edge of a step: the next ones must be done all the same
        log.exception("stop is not clean, the next start recovers")
        return False
    return True
