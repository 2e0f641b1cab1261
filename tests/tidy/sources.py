"""The sources of the repository, for the tests that look at all of them."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SHIPPED: Final = ("gateway", "hutch", "pyspark_hutch", "store")
"""The packages that an installation has."""

SOURCES: Final = sorted(
    path
    for folder in (*SHIPPED, "compat", "examples", "tests")
    for path in (ROOT / folder).rglob("*.py")
    if "node_modules" not in path.parts and not path.stem.endswith("_pb2")  # generated
)


def name_of(path: Path) -> str:
    """Return a path as people write it."""
    return str(path.relative_to(ROOT))
