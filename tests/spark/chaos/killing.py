"""Kills that come at their moments: when a frame is on its way through a proxy."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from tests.spark.chaos.cases import MOMENTS, Case, Moment, Size
from tests.spark.proxy import Proxy

DELAY_S: Final = 0.05
"""A kill beside a frame that goes on comes at a moment of this time, by chance."""


@dataclass(frozen=True, slots=True)
class Kill:
    """A kill to come.

    Attributes:
        when: The name of its moment.
        batch: How many batches were committed before.
    """

    when: str
    batch: int

    @property
    def moment(self) -> Moment:
        """The frame that it waits for."""
        return MOMENTS[self.when]


def kills_of(case: Case, size: Size) -> list[Kill]:
    """Return the kills of a case, in their order."""
    batches: Iterable[int] = [0] if case.in_one_batch else size.batches_hit()
    if len(case.moments) > 1:
        batches = list(batches)[:1]
    return [Kill(name, batch) for batch in batches for name in case.moments]


class Killing:
    """Watches the frames between Spark and the server, and kills when the time has come.

    While it kills, no frame goes on.

    Args:
        kills: To come, in their order.
        kill: Kills.
        proxies: By the names that moments have for them.
        say: Takes a line for each kill and each commit.

    Attributes:
        done: Kills so far.
    """

    def __init__(
        self,
        kills: Iterable[Kill],
        kill: Callable[[], object],
        proxies: Mapping[str, Proxy],
        say: Callable[[str], object],
    ) -> None:
        self.done = 0
        self._to_come = list(kills)
        self._work = kill
        self._failures: list[Exception] = []
        self._say = say
        self._committed = 0
        self._seen = 0
        self._chance = random.Random(len(self._to_come))
        self._lock = threading.Lock()
        self._one_kill = threading.Lock()
        self._beside: list[threading.Thread] = []
        for name, proxy in proxies.items():
            proxy.on_request = partial(self._look, name, "request")
            proxy.on_answer = partial(self._pass, name)

    def left(self) -> int:
        """Return how many kills are still to come, when those under way are done.

        Raises:
            Exception: A kill failed.
        """
        for thread in self._beside:
            thread.join()
        if self._failures:
            raise self._failures[0]
        return len(self._to_come)

    def _kill(self) -> None:
        try:
            with self._one_kill:  # the next one may come before one beside a frame is done
                self._work()
        except Exception as failure:  # noqa: BLE001  # it belongs to the thread that runs the case
            self._failures.append(failure)

    def _pass(self, proxy: str, name: str, frame: bytearray) -> bytearray:
        self._look(proxy, "answer", name)
        if name == "commit_stages":
            self._committed += 1
            self._say(f"commit {self._committed} is answered")
        return frame

    def _look(self, proxy: str, way: str, name: str) -> None:
        """Kill if the time has come; raises ConnectionError where the frame goes no further."""
        with self._lock:
            if not self._is_time(proxy, way, name):
                return
            kill = self._to_come.pop(0)
            moment = kill.moment
            self._seen = 0
            self.done += 1
            self._say(f"kill {self.done}, {kill.when}, in batch {self._committed}")
            if moment.is_lost:
                self._kill()
                raise ConnectionAbortedError
            beside = threading.Timer(self._chance.uniform(0, DELAY_S), self._kill)
            beside.start()
            self._beside.append(beside)

    def _is_time(self, proxy: str, way: str, name: str) -> bool:
        if not self._to_come or self._committed < self._to_come[0].batch:
            return False
        moment = self._to_come[0].moment
        is_it = (proxy, way) == (moment.proxy, moment.way) and name in moment.commands
        self._seen += is_it
        return is_it and self._seen == moment.nth
