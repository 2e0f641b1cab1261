"""The order of the parts: those that mostly wait run beside those that compute, the bench alone.

A lane that has come to its end takes the last parts of the other one, so that both end together.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.night.part import Lane, Part
from tests.night.results import Results
from tests.night.running import run


@dataclass(slots=True)
class Lanes:
    """Some parts, run to the last one.

    Attributes:
        results: What is known of them, and where their output goes.
        night: All parts of the night, for the table.
        long: All parts that take hours, for the table.
        is_anew: Whether what has passed on the same commit runs again.
        say: Is handed a line at a time.
    """

    results: Results
    night: Sequence[Part]
    long: Sequence[Part]
    is_anew: bool
    say: Callable[[str], object]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_over: threading.Event = field(default_factory=threading.Event)

    def run(self, parts: Sequence[Part]) -> None:
        """Run parts. What is under way ends with the call, also where that is interrupted."""
        computing, waiting, alone = (deque(p for p in parts if p.lane is lane) for lane in Lane)
        with ThreadPoolExecutor(1) as beside:
            try:
                ended = beside.submit(self._each, waiting, computing)
                self._each(computing, waiting)
                ended.result()
            except BaseException:
                self._is_over.set()
                raise
        self._each(alone, deque())

    def _each(self, own: deque[Part], others: deque[Part]) -> None:
        """Run parts to the last one, and then those that another lane has not come to."""
        while (part := self._next(own, others)) is not None:
            self._one(part)

    def _next(self, own: deque[Part], others: deque[Part]) -> Part | None:
        with self._lock:
            if own:
                return own.popleft()
            return others.pop() if others else None

    def _one(self, part: Part) -> None:
        before = self.results.of(part)
        if before is not None and before.is_passed and not self.is_anew:
            self.say(f"== {part.name}: passed before on {self.results.commit}")
            return
        self.say(f"== {part.name}: {part.amount}, at most {part.limit_s} s")
        log = self.results.folder / "night" / f"{part.name}.log"
        result = run(part, self.results.commit, log, self.say, self._is_over)
        with self._lock:
            self.results.add(part, result, self.night, self.long)
        self.say(f"   {part.name}: {result.said}, {result.seconds:.0f} s {result.figure}")
