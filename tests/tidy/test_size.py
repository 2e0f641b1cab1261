"""No file, class or function grows beyond what a reader can hold."""

import ast
from functools import cache
from pathlib import Path

from tests.tidy.sources import SHIPPED, SOURCES, name_of

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
CLASS_MAX = (250, 20)
"""Lines and attributes of a class."""
HOT_CLASS_MAX = (350, 30)
"""Those of a hot object, where each split costs a call for each message."""


def test_files_have_at_most_500_lines() -> None:
    offenders = [
        f"{name_of(path)} has {lines} lines: split it"
        for path in SOURCES
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > FILE_LINES_MAX
    ]

    assert offenders == []


def test_functions_have_at_most_60_lines() -> None:
    functions, _ = too_large()

    assert functions == []


def test_classes_have_at_most_250_lines_and_20_attributes() -> None:
    _, classes = too_large()

    assert classes == []


@cache
def too_large() -> tuple[list[str], list[str]]:
    """Name the functions that are too long, and the classes that are too large.

    Both at once: to parse all the sources takes longer than most files of tests.
    """
    functions: list[str] = []
    classes: list[str] = []
    for path in SOURCES:
        is_shipped = name_of(path).startswith(SHIPPED)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if (lines := lines_of(node)) > FUNCTION_LINES_MAX:
                    functions.append(f"{name_of(path)}:{node.lineno} {node.name} has {lines} lines")
            elif is_shipped and isinstance(node, ast.ClassDef):
                lines, attributes = lines_of(node), len(attributes_of(node))
                lines_max, attributes_max = limits_of(path)
                if lines > lines_max or attributes > attributes_max:
                    classes.append(
                        f"{name_of(path)} {node.name} has {lines} lines and {attributes} attributes"
                    )
    return functions, classes


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    return (node.end_lineno or 0) - node.lineno + 1


def limits_of(path: Path) -> tuple[int, int]:
    return HOT_CLASS_MAX if path.with_suffix(".pxd").exists() else CLASS_MAX


def attributes_of(node: ast.ClassDef) -> set[str]:
    """Return the names that a class sets on itself, or declares."""
    found = {
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    for each in ast.walk(node):
        if (
            isinstance(each, ast.Attribute)
            and isinstance(each.ctx, ast.Store)
            and isinstance(each.value, ast.Name)
            and each.value.id == "self"
        ):
            found.add(each.attr)
    return found
