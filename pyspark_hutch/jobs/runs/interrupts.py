"""Ctrl-C in a job: the first lets it end after the batch that it is in, the second ends it."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def interrupts(say: Callable[[str], None]) -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C sets; the second raises KeyboardInterrupt.

    Signals reach only the main thread: in another one the event is never set.

    Args:
        say: Prints that Ctrl-C was heard.
    """
    asked = threading.Event()

    def hear(_number: int, _frame: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        say("ending after this batch; Ctrl-C again ends at once")

    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = signal.signal(signal.SIGINT, hear)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
