"""A job and its terminal: progress as a bar, or as a line every ten seconds, and Ctrl-C."""

import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TextIO

LINE_EVERY_S: Final = 10.0
DRAW_EVERY_S: Final = 0.5
RATE_OVER_S: Final = 30.0
"""Long enough to smooth out batches of a few seconds, short enough to follow a slower server."""

_BAR_CELLS: Final = 20
_SAMPLES_MAX: Final = 256  # at most two samples in a second are kept for the rate


@dataclass(frozen=True, slots=True)
class Standing:
    """Work that a job has done, and that it has before it.

    Attributes:
        rows: Done.
        size: Bytes of the bodies done.
        left: Work before it, in `unit`; None while that is not known.
        done: Work behind it, in `unit`; of rows it is `rows` itself.
        unit: Of `left` and `done`.
        reading: Rows that the batch under way has read so far.
    """

    rows: int = 0
    size: int = 0
    left: int | None = None
    done: int = 0
    unit: str = "rows"
    reading: int = 0


class JobProgress:
    """Shows a job's standing from time to time."""

    def __init__(
        self,
        out: TextIO | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin to count the time.

        Args:
            out: Where to show it; None shows nothing.
            clock: Gives seconds.
        """
        self._out = out
        self._clock = clock
        self._is_terminal = out is not None and out.isatty()
        self._started = clock()
        self._shown = self._started
        self._samples: deque[tuple[float, int, int]] = deque([(self._started, 0, 0)], _SAMPLES_MAX)
        self._has_bar = False

    def show(self, standing: Standing) -> None:
        """Show the standing if it is time to."""
        now = self._clock()
        due_s = DRAW_EVERY_S if self._is_terminal else LINE_EVERY_S
        if now - self._samples[-1][0] >= DRAW_EVERY_S:
            self._sample(now, standing)
        if now - self._shown >= due_s:
            self._shown = now
            self._draw(self._text(standing, now))

    def say(self, line: str) -> None:
        """Print a line of its own."""
        if self._out is None:
            return
        self._clear()
        self._out.write(f"{line}\n")
        self._out.flush()

    def end(self, standing: Standing, word: str) -> None:
        """Print the last line: the work that was done, and its time."""
        seconds = self._clock() - self._started
        per_second = standing.rows / seconds if seconds > 0 else 0.0
        self.say(
            f"{word}: {standing.rows:,} rows, {megabytes(standing.size)}, "
            f"{duration(seconds)}, {per_second:,.0f} rows/s"
        )

    def _sample(self, now: float, standing: Standing) -> None:
        self._samples.append((now, standing.rows + standing.reading, standing.done))
        while len(self._samples) > 2 and now - self._samples[1][0] > RATE_OVER_S:  # noqa: PLR2004
            self._samples.popleft()

    def _text(self, standing: Standing, now: float) -> str:
        before, rows, done = self._samples[0]
        seconds = max(now - before, 1e-9)
        parts = [
            f"{standing.rows:,} rows",
            megabytes(standing.size),
            f"{max(0, standing.rows + standing.reading - rows) / seconds:,.0f} rows/s",
        ]
        if standing.reading:
            parts.append(f"{standing.reading:,} in this batch")
        if standing.left is not None:
            parts.append(f"lag {standing.left:,} {standing.unit}")
            speed = (standing.done - done) / seconds
            if standing.left and speed > 0:
                parts.append(f"{duration(standing.left / speed)} left")
        text = "  ".join(parts)
        return f"{_bar(standing)}{text}" if self._is_terminal else text

    def _draw(self, text: str) -> None:
        if self._out is None:
            return
        if self._is_terminal:
            self._out.write(f"\r{text}\x1b[K")  # the rest of an older, longer line goes
            self._has_bar = True
        else:
            self._out.write(f"{text}\n")
        self._out.flush()

    def _clear(self) -> None:
        if self._has_bar and self._out is not None:
            self._out.write("\r\x1b[K")
            self._has_bar = False


def _bar(standing: Standing) -> str:
    if standing.left is None:
        return ""
    whole = standing.done + standing.left
    share = standing.done / whole if whole else 1.0
    cells = int(share * _BAR_CELLS)
    return f"[{'#' * cells}{'.' * (_BAR_CELLS - cells)}] {int(share * 100):3} %  "


def megabytes(size: int) -> str:
    """Return bytes as text, in MB of a million."""
    return f"{size / 1_000_000:,.1f} MB"


def duration(seconds: float) -> str:
    """Return a time as hours, minutes and seconds: `0:02:31`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


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
