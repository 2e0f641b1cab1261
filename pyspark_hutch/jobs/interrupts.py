"""Ctrl-C in a job: the first lets it end after the batch that it is in, the second ends it."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupts:
    """Takes Ctrl-C while it is entered; elsewhere than in the main thread it takes nothing.

    Attributes:
        is_asked: Whether the job shall end.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        """Keep what says to a person that Ctrl-C was heard."""
        self.is_asked = False
        self._say = say
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True
        self._say("ending after this batch; Ctrl-C again ends at once")
