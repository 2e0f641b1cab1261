"""The cases: which process is killed, when, and how the rows reach their tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final


@dataclass(frozen=True, slots=True)
class Moment:
    """A frame between Spark and the server; what is killed is killed while it is under way.

    Attributes:
        proxy: The way that it takes: of the `source` or of the `target`.
        way: Whether it is a `request` or an `answer`.
        commands: Names of the frames, any of which is meant.
        nth: Which of them, counted from when a batch begins.
        is_lost: Whether the frame goes no further.
    """

    proxy: str
    way: str
    commands: tuple[str, ...]
    nth: int = 1
    is_lost: bool = True


MOMENTS: Final = {
    # The driver looks for the targets before it hands out tasks; a task does not look again.
    "before-tasks": Moment("target", "request", ("metadata", "partitions")),
    "in-reads": Moment("source", "answer", ("deliver",), 3),
    "in-stages": Moment("target", "request", ("stage",), 3),
    "in-closes": Moment("target", "request", ("close_stage",), 2),
    "before-commit": Moment("target", "request", ("commit_stages",)),
    "in-commit": Moment("target", "request", ("commit_stages",), is_lost=False),
    "behind-commit": Moment("target", "answer", ("commit_stages",)),
}
OF_DRIVER: Final = ("before-tasks", "in-reads", "in-stages", "before-commit", "behind-commit")
OF_EXECUTOR: Final = ("in-reads", "in-stages")
OF_SERVER: Final = (
    *("in-reads", "in-stages", "in-closes"),
    *("before-commit", "in-commit", "behind-commit"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A query that copies a super stream, and the kills that it meets.

    When it has ended, the last file of `commits/` is removed, as if the driver had been killed
    between our commit and Spark's, and it is run again. Each run has another `minPartitions`.

    Attributes:
        victim: `driver`, `executor` or `server`; empty: nothing is killed.
        moments: When; more than one follow each other in the same batch.
        plan: As `copying.start_copy` has it.
        durability: Of the server.
        to_super_stream: Whether the target is a super stream.
        in_one_batch: Whether all rows are one batch; else there are several.
    """

    victim: str = ""
    moments: tuple[str, ...] = ()
    plan: str = "plain"
    durability: str = "os"
    to_super_stream: bool = False
    in_one_batch: bool = False

    @property
    def name(self) -> str:
        """One word that tells it from the others."""
        when = "in-a-row" if len(self.moments) > 1 else "".join(self.moments)
        target = "to-super-stream" if self.to_super_stream else ""
        size = "one-batch" if self.in_one_batch else ""
        words = (self.victim or "commit-removed", when, self.plan, target, size, self.durability)
        return "-".join(filter(None, words))


def _cases() -> Iterator[Case]:
    plans, durabilities = ("plain", "shuffled"), ("os", "disk")
    for plan in (*plans, "saved"):
        yield Case(plan=plan)
    for victim, moments in (("driver", OF_DRIVER), ("server", OF_SERVER)):
        yield Case(victim, moments)
        yield Case(victim, moments, "shuffled", "disk", to_super_stream=True)
        yield Case(victim, ("behind-commit",), "saved")
    for moment, plan in product(OF_DRIVER, plans):
        yield Case("driver", (moment,), plan)
    for moment, durability, plan in product(OF_SERVER, durabilities, plans):
        yield Case("server", (moment,), plan, durability)
    # Tasks of more than a task keeps of its frames.
    yield Case("server", ("in-stages",), in_one_batch=True)
    for moment, plan in product(OF_EXECUTOR, plans):
        yield Case("executor", (moment,), plan)


CASES: Final = tuple(_cases())
TESTED: Final = Case("server", OF_SERVER, "shuffled", "disk", to_super_stream=True)
"""The one that is also a test of `make test-spark`."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much a case copies.

    Attributes:
        rows: Of all partitions of the source.
        row_bytes: Bytes of a body.
        batches: Of the query.
        frame_rows: Rows that are published to the source at once, which become a chunk.
        within_s: The longest that one run of the query may take.
    """

    rows: int
    row_bytes: int
    batches: int
    frame_rows: int
    within_s: float

    def batches_hit(self) -> range:
        """Return the batches that kills hit: every second one, neither the first nor the last."""
        return range(1, self.batches - 1, 2)


SHORT: Final = Size(900, 20, 3, 20, 180.0)
PARTITIONS: Final = 4


def long(rows: int) -> Size:
    """Return the size of a case of so many rows."""
    return Size(rows, 150, 6, 2_000, 1_800.0)
