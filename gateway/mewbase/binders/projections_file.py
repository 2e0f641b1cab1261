"""The file of projections, as TOML, and the functions that it names."""

import tomllib
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from gateway.mewbase.binders.projection import Change, Projection

GROUP: Final = "hutch.projections"
"""The group of entry points of functions that make documents."""


class BadProjections(ValueError):
    """A file of projections that cannot be used; the message says where and why."""


def read_projections(path: Path) -> list[Projection]:
    """Read a file with a table `[[projections]]` for each. Raises BadProjections."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadProjections(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # of TOML or of UTF-8
        raise BadProjections(f"{path} is not TOML: {error}") from error
    unknown = sorted(content.keys() - {"projections"})
    tables = content.get("projections", [])
    if unknown or not isinstance(tables, list):
        raise BadProjections(f"{path}: there may be tables [[projections]], and nothing else")
    found = [_projection(path, number, table) for number, table in enumerate(tables, 1)]
    names = [projection.name for projection in found]
    for name in names:
        if names.count(name) > 1:
            raise BadProjections(f"{path}: two projections have the name {name!r}")
    return found


def _projection(path: Path, number: int, table: object) -> Projection:
    try:
        return Projection.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        reason = first["msg"].removeprefix("Value error, ")
        shown = f"{where}: {reason}" if where else reason
        raise BadProjections(f"{path}: projection {number}: {shown}") from error


def functions_of(projections: Sequence[Projection]) -> dict[str, Change]:
    """Load the functions that projections name, by their names. Raises BadProjections."""
    found: dict[str, Change] = {}
    for projection in projections:
        name = projection.function
        if not name or name in found:
            continue
        points = entry_points(group=GROUP, name=name)
        if not points:
            raise BadProjections(
                f"projection {projection.name!r}: no installed package has an entry point {name!r} "
                f"in the group {GROUP}"
            )
        try:
            found[name] = next(iter(points)).load()
        except Exception as error:
            raise BadProjections(
                f"projection {projection.name!r}: the function {name!r} cannot be loaded: {error!r}"
            ) from error
    return found
