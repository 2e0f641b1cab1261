"""Runs the hot objects' own tests on their sources as they stand: `make uncompiled`.

A module's own tests are `test_<module>.py` and `test_<module>_*.py` in the folder of the same name
under tests/unit. One that has none fails the run. The kernels are left out, since their tests run
both builds side by side, and so is what holds for the compiled build alone. Arguments are those of
pytest.
"""

import os
import sys
from pathlib import Path
from typing import Final

import pytest

from gateway.kernels import HOT_OBJECTS

ROOT: Final = Path(__file__).parents[1]


def own_tests(module: str) -> list[str]:
    """Return a module's own test files; ends the program if it has none."""
    *packages, name = module.split(".")
    folder = ROOT.joinpath("tests", "unit", *packages)
    own = folder / f"test_{name}.py"
    if not own.exists():
        sys.exit(f"{module} has no tests of its own: {own.relative_to(ROOT)}")
    return [str(own), *map(str, sorted(folder.glob(f"test_{name}_*.py")))]


if __name__ == "__main__":
    os.environ["HUTCH_UNCOMPILED"] = "1"
    # Once each: `test_a_b.py` is the file of two modules, `a` and `a_b`.
    files = dict.fromkeys(file for module in HOT_OBJECTS for file in own_tests(module))
    sys.exit(pytest.main([*sys.argv[1:], "-m", "not compiled", *files]))
