"""A Python for workers that has pyarrow and numpy, and nothing else that is not Python's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.spark_cluster.standalone import environment

NEEDED: Final = ("numpy", "pyarrow")
_OTHERS: Final = ("pyspark_hutch", "hutch", "gateway", "store", "cramjam", "Cython", "pandas")


def lean_environment(folder: Path) -> Path:
    """Make an environment with pyarrow and numpy, links to those that are installed here."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60
    )
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    own = folder / "lib" / version / "site-packages"
    for place in map(Path, sys.path):
        if place.name == "site-packages":
            for found in [path for name in NEEDED for path in place.glob(f"{name}*")]:
                if not (own / found.name).exists():
                    (own / found.name).symlink_to(found)
    python = folder / "bin" / "python"
    assert _modules_of(python, folder) == [*NEEDED]
    return python


def _modules_of(python: Path, folder: Path) -> list[str]:
    """Return which of the packages that others have this Python finds."""
    names = (*_OTHERS, *NEEDED)
    asked = f"import importlib.util as u; print(*(n for n in {names} if u.find_spec(n)))"
    done = subprocess.run(
        [str(python), "-c", asked],
        cwd=folder,
        env=without_paths(environment()),
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stdout.split()


def without_paths(variables: dict[str, str]) -> dict[str, str]:
    """Return the variables without places for Python to look for modules."""
    return {key: value for key, value in variables.items() if key != "PYTHONPATH"}
