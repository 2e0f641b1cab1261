import asyncio
import threading
import time

import pytest

from gateway.pending import Pending
from gateway.server.loop.threads import Threads
from tests.waiting import HANG_S


async def settled(pending: Pending[object]) -> object:
    event = asyncio.Event()
    pending.when_settled(event.set)
    await asyncio.wait_for(event.wait(), HANG_S)
    return pending.result()


async def test_results_and_errors_come_on_the_loop() -> None:
    threads = Threads(asyncio.get_running_loop())
    seen: list[threading.Thread] = []
    pending = threads.run(threading.current_thread)
    pending.when_settled(lambda: seen.append(threading.current_thread()))

    assert await settled(pending) is not threading.current_thread()  # type: ignore[arg-type]
    assert seen == [threading.current_thread()]

    def fail() -> object:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await settled(threads.run(fail))


async def test_two_run_at_once_and_no_more() -> None:
    threads = Threads(asyncio.get_running_loop())
    lock = threading.Lock()
    running, most = 0, 0

    def work() -> object:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.05)
        with lock:
            running -= 1
        return None

    for pending in [threads.run(work) for _ in range(6)]:
        await settled(pending)

    assert most == 2
