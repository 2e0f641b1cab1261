"""Rows that cannot be measured on this machine, and the reason."""

from collections.abc import Callable, Sequence
from typing import Final

from compat.bench import cluster, perf_test
from compat.bench.cluster_rows import CLUSTER_ROWS
from compat.bench.ordinary_rows import PERF_TEST_ROWS
from compat.bench.row import Row

# Rows, and what returns the reason that there is no way to them; empty if there is one.
NEEDING: Final[Sequence[tuple[Sequence[Row], Callable[[], str]]]] = (
    (PERF_TEST_ROWS, perf_test.why_not),
    (CLUSTER_ROWS, cluster.why_not),
)


def split_rows(
    rows: Sequence[str], needing: Sequence[tuple[Sequence[Row], Callable[[], str]]] = NEEDING
) -> tuple[tuple[str, ...], list[str]]:
    """Leave out the rows that need what is missing here.

    Returns:
        The rows that can be measured, and a line about each group of those that cannot.
    """
    skipped = []
    for group, why_not in needing:
        without = [row.name for row in group if row.name in rows]
        if without and (reason := why_not()):
            rows = [row for row in rows if row not in without]
            skipped.append(f"{', '.join(without)}: {reason}")
    return tuple(rows), skipped
