"""The loop of these tests: what it takes for idle, and what it does not."""

import threading
import time

from tests.conformance.harness import Loop


def test_a_while_does_not_pass_while_another_thread_computes() -> None:
    loop = Loop()
    seen: list[str] = []

    def work() -> None:
        until = time.thread_time() + 0.3
        while time.thread_time() < until:
            pass
        loop.call_soon_threadsafe(seen.append, "done")

    thread = threading.Thread(target=work)
    thread.start()
    loop.run_for(0.02)

    assert seen == ["done"]
    thread.join()


def test_a_while_passes_while_others_sleep() -> None:
    loop, stop = Loop(), threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    began = time.monotonic()
    loop.run_for(0.05)

    assert time.monotonic() - began >= 0.05
    stop.set()
    thread.join()
