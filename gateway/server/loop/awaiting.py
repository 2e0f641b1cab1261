"""The bridge from an event loop to coroutines that know none (`gateway.pending`)."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from gateway.pending import Pending, run

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
    """Return a Pending, settled when the others had their turn. Only on the event loop."""
    pending: Pending[None] = Pending()
    asyncio.get_running_loop().call_soon(pending.settle, None)
    return pending


def settled_after(loop: asyncio.AbstractEventLoop, delay_ms: int) -> Pending[None]:
    """Return a Pending, settled after a time in milliseconds. Only on the event loop."""
    pending: Pending[None] = Pending()
    loop.call_later(delay_ms / 1_000, pending.settle, None)
    return pending


async def called(begin: Callable[[Callable[[], None]], object]) -> None:
    """Wait until the callback is called that `begin` is given."""
    event = asyncio.Event()
    begin(event.set)
    await event.wait()
