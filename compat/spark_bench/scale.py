"""Amounts of work: the counts for figures, and those for a smoke test."""

from dataclasses import dataclass
from typing import Final

from compat.spark_bench.rows import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Counts of one run.

    Attributes:
        rounds: Measurements of each side of a work, in turn.
        warm_ups: Runs of each side before them.
        rows: Messages of 100 B that are read, or written, in one measurement.
        micro_batches: Batches of a streaming query whose times count.
        commits: Commits in one measurement of confirms.
        commit_bytes: Bytes of each.
        java_options: For Spark's Java, which may do without the compiler that takes half of a short
            run where figures tell nothing.
    """

    rounds: int
    warm_ups: int
    rows: int
    micro_batches: int
    commits: int
    commit_bytes: int
    java_options: str = ""

    def count(self, rows: Rows) -> int:
        """Return how many there are of a kind of rows."""
        return int(self.rows * rows.share)


FULL: Final = Scale(
    rounds=5,
    warm_ups=2,
    rows=4_000_000,
    micro_batches=30,
    commits=5,
    commit_bytes=100_000_000,
)
QUICK: Final = Scale(
    rounds=1,
    warm_ups=0,
    rows=5_000,
    micro_batches=1,
    commits=1,
    commit_bytes=2_000_000,
    java_options="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
)
