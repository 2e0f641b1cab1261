"""Processes that Spark keeps: collections there pass over what is loaded, and nowhere else."""

import subprocess
import sys

import pytest

from tests.waiting import HANG_S

# A process whose main module has the name of Spark's daemon, as in Spark's workers, or another.
LOOK = """
import gc, sys
from importlib.machinery import ModuleSpec
sys.modules["__main__"].__spec__ = ModuleSpec(sys.argv[1], None)
from pyspark_hutch.workers import spare_collections
spare_collections()
first = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
spare_collections()
print(first > 0, gc.get_freeze_count() == first)
"""


@pytest.mark.parametrize(("main", "spares"), [("pyspark.daemon", True), ("a.program", False)])
def test_what_is_loaded_is_spared_once_and_only_where_spark_keeps_the_process(
    main: str,
    spares: bool,  # noqa: FBT001 - a parameter of a test
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK, main],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )

    assert done.stdout.split() == [str(spares), "True"]
