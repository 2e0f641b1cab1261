"""The file of projections, as TOML, and the functions that it names."""

import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from gateway.mewbase.binders.projection import Change, Projection, leads_somewhere, names_fields

GROUP: Final = "hutch.projections"
"""The group of entry points of functions that make documents."""
_NAME_LENGTH_MAX: Final = 255
_MANDATORY: Final = ("name", "channel", "binder", "id")
_OF_MODES: Final[Mapping[str, tuple[str, ...]]] = {
    "replace": (),
    "merge": (),
    "add": ("path", "quantity"),
    "python": ("function",),
}
"""The modes, and what each needs. What one needs no other takes."""
_STARTS: Final = ("first", "now")
_NOT_FOR_ALL: Final = tuple(key for keys in _OF_MODES.values() for key in keys)
_KEYS: Final = (*_MANDATORY, "mode", *_NOT_FOR_ALL, "from")
_NAMES: Final = "the name of a field, or names with dots between them"
_PATHS: Final[Mapping[str, tuple[Callable[[str], bool], str]]] = {
    "id": (names_fields, _NAMES),
    "quantity": (names_fields, _NAMES),
    "path": (leads_somewhere, "names with dots between them; {field} stands for a field's value"),
}


class BadProjections(ValueError):
    """Projections that cannot be used.

    Attributes:
        problems: Everything that is wrong, a line each.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def read_projections(path: Path) -> list[Projection]:
    """Read a file with a table `[[projections]]` for each. Raises BadProjections."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadProjections(f"cannot be read: {error.strerror}") from error
    except ValueError as error:  # of TOML or of UTF-8
        raise BadProjections(f"is not TOML: {error}") from error
    unknown = sorted(content.keys() - {"projections"})
    tables = content.get("projections", [])
    if unknown or not isinstance(tables, list):
        raise BadProjections("there may be tables [[projections]], and nothing else")
    problems = [
        f"projection {number}: {problem}"
        for number, table in enumerate(tables, 1)
        for problem in problems_of(table)
    ]
    names = Counter(
        table["name"]
        for table in tables
        if isinstance(table, dict) and isinstance(table.get("name"), str)
    )
    problems += [
        f"{count} projections have the name {name!r}"
        for name, count in names.items()
        if name and count > 1
    ]
    if problems:
        raise BadProjections(*problems)
    return [projection_of(table) for table in tables]


def projection_of(table: Mapping[str, str]) -> Projection:
    """Return the projection that a table without problems describes."""
    return Projection(**{"start" if key == "from" else key: table[key] for key in table})


def problems_of(table: object) -> Iterator[str]:
    """Yield everything that is wrong with the description of one projection."""
    if not isinstance(table, dict):
        yield f"it is {table!r:.100}, and has to be a table"
        return
    for key in sorted(table.keys() - set(_KEYS)):
        near = get_close_matches(key, _KEYS, n=1)
        yield f"`{key[:100]}` is unknown" + (f"; did you mean `{near[0]}`?" if near else "")
    texts: dict[str, str] = {}
    for key in _KEYS:
        value = table.get(key, "")
        if not isinstance(value, str):
            yield f"`{key}` is {value!r:.100}, and has to be a text"
        elif value:
            texts[key] = value
        elif key in table or key in _MANDATORY:
            yield f"`{key}` is {'empty' if key in table else 'missing'}"
    yield from _problems_of_texts(texts, table)


def _problems_of_texts(texts: Mapping[str, str], table: Mapping[str, Any]) -> Iterator[str]:
    if len(texts.get("name", "")) > _NAME_LENGTH_MAX:
        yield f"`name` has more than {_NAME_LENGTH_MAX} characters"
    mode = texts.get("mode", "replace")
    for key, given, choices in (("mode", mode, _OF_MODES), ("from", texts.get("from"), _STARTS)):
        if given is not None and given not in choices:
            yield f"`{key}` is {given!r:.100}, and not one of {', '.join(choices)}"
    for key in _NOT_FOR_ALL if mode in _OF_MODES else ():
        if (key in table) != (key in _OF_MODES[mode]):
            yield f"mode {mode} {'takes no' if key in table else 'needs'} `{key}`"
    for key, (is_good, meaning) in _PATHS.items():
        if key in texts and not is_good(texts[key]):
            yield f"`{key}` is {texts[key]!r:.100}, and has to be {meaning}"


def functions_of(projections: Sequence[Projection]) -> dict[str, Change]:
    """Load the functions that projections name, by their names. Raises BadProjections."""
    found: dict[str, Change] = {}
    problems: list[str] = []
    for projection in projections:
        name, whose = projection.function, f"projection {projection.name!r}"
        if not name or name in found:
            continue
        points = entry_points(group=GROUP, name=name)
        if not points:
            problems.append(
                f"{whose}: no installed package has an entry point {name!r} in the group {GROUP}"
            )
            continue
        try:
            found[name] = next(iter(points)).load()
        except Exception as error:  # noqa: BLE001  # whatever a package does when it is imported
            problems.append(f"{whose}: the function {name!r} cannot be loaded: {error!r:.200}")
    if problems:
        raise BadProjections(*problems)
    return found
