"""No module of ours imports one that leads back to it."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.tidy.sources import ROOT

PACKAGES: Final = ("gateway", "hutch", "pyspark_hutch", "store")

Graph = Mapping[str, frozenset[str]]
"""By a module's name the modules that it imports."""


def modules(root: Path) -> dict[str, Path]:
    """Return the files of all modules by their names."""
    found = {}
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str, source: str, *, is_package: bool) -> Iterator[tuple[str, str]]:
    """Yield what a module imports: a module, and a name in it or ''; wherever that stands."""
    package = name.split(".") if is_package else name.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=aliases):
                yield from ((alias.name, "") for alias in aliases)
            case ast.ImportFrom(module=module, names=aliases, level=level):
                above = package[: len(package) - level + 1] if level else []
                base = ".".join([*above, *([module] if module else [])])
                yield from ((base, alias.name) for alias in aliases)


def graph(files: Mapping[str, Path]) -> Graph:
    """Return which of some modules import which."""

    def targets(name: str, path: Path) -> Iterator[str]:
        is_package = path.name == "__init__.py"
        source = path.read_text(encoding="utf-8")
        for base, inner in imported(name, source, is_package=is_package):
            whole = f"{base}.{inner}"
            yield whole if whole in files else base

    return {
        name: frozenset(each for each in targets(name, path) if each in files and each != name)
        for name, path in files.items()
    }


def circle(arrows: Graph) -> list[str]:
    """Return some circle, from a module back to it; nothing if there is none."""
    done: set[str] = set()
    for start in arrows:
        path: list[str] = []
        open_ways = [iter((start,))]
        while open_ways:
            name = next(open_ways[-1], None)
            if name is None:
                open_ways.pop()
                if path:
                    done.add(path.pop())
            elif name in path:
                return [*path[path.index(name) :], name]
            elif name not in done:
                path.append(name)
                open_ways.append(iter(sorted(arrows[name])))
    return []


def test_no_module_imports_one_that_leads_back_to_it() -> None:
    assert circle(graph(modules(ROOT))) == []


def test_a_circle_is_found_that_hides_under_type_checking_or_in_a_function(tmp_path: Path) -> None:
    room = tmp_path / "store" / "room"
    room.mkdir(parents=True)
    (room / "__init__.py").touch()
    (room / "one.py").write_text("if TYPE_CHECKING:\n    from store.room.two import Two\n")
    (room / "two.py").write_text("def f():\n    from . import three\n")
    (room / "three.py").write_text("from .one import One\n")
    (room / "four.py").write_text("import store.room.one\n")

    found = circle(graph(modules(tmp_path)))

    assert found[0] == found[-1]
    assert set(found) == {f"store.room.{name}" for name in ("one", "two", "three")}
