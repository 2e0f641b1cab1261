"""Jobs of a store's threads, done on the caller's thread in an order that a seed draws."""

import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import Any, Final

import pytest

from store.local import threads
from store.local.commit import round as commit_round
from store.local.disposal import Disposal
from store.local.recovery import checkpoint
from store.local.recovery.checkpoint import Capture, CheckpointWriter
from store.local.recovery.checkpoint_file import SegmentImage
from store.local.state.data_file import DataFile
from store.local.threads import Job
from tests.conformance.harness import Loop
from tests.waiting import HANG_S

TURNS: Final = 0.5
"""Part of the choices between the loop and a job in which the loop is taken."""


class SeededWorker:
    """A worker without threads; `store.local.threads.Worker`."""

    def __init__(self, thread_count: int) -> None:
        self.thread_count = thread_count
        self.queue: deque[Job] = deque()
        self._is_stopped = False

    def submit(self, job: Job) -> None:
        """Queue a job; after `stop_threads` it is done at once."""
        if self._is_stopped:
            job()
        else:
            self.queue.append(job)

    def stop_threads(self) -> None:
        """Do all jobs that are queued."""
        self._is_stopped = True
        while self.queue:
            self.queue.popleft()()


class Jobs:
    """The workers of one process."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._workers: list[SeededWorker] = []

    def worker(self, _name: str, thread_count: int = 1) -> SeededWorker:
        """Return another worker."""
        worker = SeededWorker(thread_count)
        self._workers.append(worker)
        return worker

    def do_one(self) -> bool:
        """Do a job; return whether there was one. Those of one thread keep their order."""
        busy = [worker for worker in self._workers if worker.queue]
        if not busy:
            return False
        worker = self._chance.choice(busy)
        index = self._chance.randrange(min(worker.thread_count, len(worker.queue)))
        job = worker.queue[index]
        del worker.queue[index]
        job()
        return True


class SeededLoop(Loop):
    """A loop that does jobs while it waits."""

    def __init__(self, jobs: Jobs, chance: random.Random) -> None:
        super().__init__()
        self._jobs = jobs
        self._chance = chance
        self._calls: deque[Callable[[], object]] = deque()

    def call_soon_threadsafe(self, callback: Callable[..., object], *arguments: object) -> None:
        self._calls.append(partial(callback, *arguments))

    def turn(self) -> None:
        for _ in range(len(self._calls)):
            if self._calls:
                self._calls.popleft()()

    def work(self) -> bool:
        """Turn, or do a job; return whether there was something to do."""
        if self._calls and self._chance.random() < TURNS:
            self.turn()
            return True
        if self._jobs.do_one():
            return True
        self.turn()
        return False

    def run_until(self, is_done: Callable[[], bool], timeout_s: float = HANG_S) -> None:
        idle = 0
        while not is_done():
            idle = 0 if self.work() else idle + 1
            assert idle < timeout_s, "nothing is left to do, and there is no result"


class Seat:
    """The process that makes a store now.

    Attributes:
        jobs: Its jobs.
    """

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs

    @contextmanager
    def taken(self, jobs: Jobs) -> Iterator[None]:
        """Have stores made by a process."""
        before, self.jobs = self.jobs, jobs
        try:
            yield
        finally:
            self.jobs = before


@contextmanager
def seeded_workers(chance: random.Random) -> Iterator[Seat]:
    """Have stores work on the caller's thread; their jobs are those of the process in the seat."""
    seat = Seat(Jobs(chance))

    def made(name: str, thread_count: int = 1) -> SeededWorker:
        return seat.jobs.worker(name, thread_count)

    def run_all(jobs: Sequence[Job], _helpers: object, _helper_count: int) -> None:
        for job in chance.sample(jobs, len(jobs)):
            job()

    users = [
        module
        for name, module in sys.modules.items()
        if name.startswith("store.local.")
        and module is not threads
        and getattr(module, "Worker", None) is threads.Worker
    ]
    with pytest.MonkeyPatch.context() as patch:
        for module in users:
            patch.setattr(module, "Worker", made)
        patch.setattr(commit_round, "run_all", run_all)
        yield seat


def in_one_order(patch: pytest.MonkeyPatch) -> None:
    """Have stores take what is in sets in the order of its numbers, not of its addresses."""
    note, remove = CheckpointWriter.note, Disposal.remove

    class Ordered(Capture):
        def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  # as they are
            super().__init__(*arguments, **options)
            self.files.sort(key=lambda file: file[0].number)

    def note_in_order(
        writer: CheckpointWriter,
        changed: Iterable[SegmentImage],
        removed: Iterable[int],
        pause_s: float,
    ) -> None:
        note(writer, sorted(changed, key=attrgetter("number")), removed, pause_s)

    def remove_in_order(disposal: Disposal, files: list[DataFile]) -> None:
        remove(disposal, sorted(files, key=attrgetter("number")))

    patch.setattr(checkpoint, "Capture", Ordered)
    patch.setattr(Disposal, "remove", remove_in_order)
    patch.setattr(CheckpointWriter, "note", note_in_order)
