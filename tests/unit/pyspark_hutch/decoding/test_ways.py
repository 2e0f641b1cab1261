"""The compiled kernel is taken where it is, and nothing is run in its place but numpy."""

import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_hutch.decoding import vectors, ways

ROOT = Path(__file__).parents[4]


def test_a_kernel_that_is_not_compiled_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "KERNEL", "pyspark_hutch.decoding.bodies")

    assert ways.fastest_way() is vectors


def test_a_kernel_that_is_not_there_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "KERNEL", "pyspark_hutch.kernel.nothing")

    assert ways.fastest_way() is vectors


def test_a_worker_needs_only_numpy_and_arrow() -> None:
    program = """
import sys
blocked = (
    "cython", "cramjam", "isal", "pandas", "typing_extensions", "pyspark", "gateway", "store"
)
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in blocked:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocker())
from pyspark_hutch.decoding.decoder import Decoder
from pyspark_hutch.columns import WantedColumns
from pyspark_hutch.decoding import vectors, ways
ways.KERNEL = "pyspark_hutch.kernel.nothing"
decoder = Decoder(WantedColumns())
assert decoder._way is vectors
loaded = {name.split(".")[0] for name in sys.modules}
assert not loaded & {"asyncio", *blocked}, loaded
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.stderr == ""
    assert done.returncode == 0
