"""The values that a real Pravega 0.13.0 gave, written down for each version of the client."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from compat.pravega.java.program import Values, parsed

FOLDER: Final = Path(__file__).parent / "values"


def path(version: str) -> Path:
    """Return the file with the values of a version of the client."""
    return FOLDER / f"readers-{version}.txt"


def read(version: str) -> Values:
    """Return what is written down."""
    with path(version).open(encoding="utf-8") as lines:
        return parsed(lines)


def write(version: str, values: Values) -> None:
    """Write down the values of scenarios; those of others stay."""
    known = read(version) if path(version).exists() else {}
    lines = [
        f"{name} {key}={value}\n"
        for name, given in sorted({**known, **values}.items())
        for key, value in given.items()
    ]
    path(version).write_text("".join(lines), encoding="utf-8")
