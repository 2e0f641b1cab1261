"""A name of ours that a page, a script or a text of the program prints is there."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from gateway.settings.model import sections
from tests.tidy.sources import ROOT, SHIPPED, SOURCES, name_of

PACKAGES: Final = (*SHIPPED, "compat", "tests")
PAGES: Final = [
    *sorted(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"),  # has old names
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "compat").glob("*.md")),
]
SCRIPTS: Final = [
    *(ROOT / name for name in ("Makefile", ".ci/run", "pyproject.toml", "docker-compose.yml")),
    *(ROOT / name for name in ("compat/docker/Dockerfile", "setup.py")),
    *sorted((ROOT / "examples").rglob("*.py")),
]
DOTTED: Final = re.compile(rf"(?<![\w./@-])(?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*)+")
IN_FOLDER: Final = re.compile(
    rf"(?<![\w./@-])(?:{'|'.join(PACKAGES)}|docs|examples)/(?:[\w./*<>-]|\{{[^}}\s]*\}})*\w"
)
MODULE_FILE: Final = re.compile(r"`((?:[\w-]+/)*\w+\.py)`")
ENDINGS: Final = ("service", "toml", "zip", "example")
"""Those of files of users, which are named for the program, and of machines."""
NO_FILES: Final = re.compile(r"<|\.\.\.|_kvtable|\.new$")
"""Segments of the store, and what stands for many names or is there only for a moment."""


@cache
def texts() -> dict[str, frozenset[str]]:
    """Return by a file's name the texts in it, docstrings included."""
    return {
        name_of(path): frozenset(
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
        for path in SOURCES
        if name_of(path).startswith(SHIPPED)
    }


@cache
def words() -> frozenset[str]:
    """Return the settings, and what is a whole text in the sources: a property's name, say."""
    settings = {
        f"{part}.{name}" for part, model in sections().items() for name in model.model_fields
    }
    return frozenset(settings.union(*texts().values()))


@cache
def defined_in(path: Path) -> frozenset[str]:
    """Return the names that a module defines, imports, or finds when it is asked for them."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                found.add(name)
            case ast.AsyncFunctionDef(name=name) | ast.Name(id=name):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add(other or name)
            case ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                found.add(name)
    return frozenset(found)


def is_there(name: str) -> bool:
    """Return whether a dotted name is a module, something in one, a setting or a text."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        place, rest = ROOT.joinpath(*parts[:count]), parts[count:]
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.exists() and set(rest) <= defined_in(path):
                return True
        if place.is_dir() and not rest:
            return True
    return name in words() or parts[1] in ENDINGS


def missing_names(text: str) -> Iterator[str]:
    yield from (name for name in DOTTED.findall(text) if not is_there(name))


def missing_files(text: str) -> Iterator[str]:
    for pattern in IN_FOLDER.findall(text):
        inner = re.search(r"\{(.*)\}", pattern)
        for part in inner[1].split(",") if inner else [""]:
            path = pattern.replace(inner[0], part) if inner else pattern
            if not NO_FILES.search(path) and not any(ROOT.glob(path)):
                yield path
    files = [f"/{name_of(path)}" for path in (*SOURCES, ROOT / "setup.py")]
    printed = set(re.findall(r"^`(\w+\.py)`:$", text, re.MULTILINE))  # whole, below its name
    for name in MODULE_FILE.findall(text):
        if name not in printed and not any(file.endswith(f"/{name}") for file in files):
            yield name


@pytest.mark.parametrize("path", [*PAGES, *SCRIPTS], ids=name_of)
def test_every_name_of_ours_on_a_page_and_in_a_script_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert [*missing_names(text), *missing_files(text)] == []


def test_every_name_of_ours_in_a_text_of_the_program_is_there() -> None:
    missing = [
        f"{file} {name}"
        for file, found in texts().items()
        for text in found
        for name in missing_names(text)
    ]

    assert missing == []


def test_names_that_are_not_there_are_found() -> None:
    text = "`gateway.nosuch`, `hutch.client.Nosuch`, `store/nosuch.py`, `nosuch/port.py`, `tests/x`"

    assert list(missing_names(text)) == ["gateway.nosuch", "hutch.client.Nosuch"]
    assert list(missing_files(text)) == [
        "store/nosuch.py",
        "tests/x",
        "store/nosuch.py",
        "nosuch/port.py",
    ]
