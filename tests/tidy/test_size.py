"""No file, class or function grows beyond what a reader can hold."""

import ast
from collections.abc import Iterator
from functools import cache

from tests.tidy.sources import SHIPPED, SOURCES, name_of

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
CLASS_LINES_MAX = 350
DESCRIBED_LINES = 250
"""A class above it says in a docstring what its one subject is."""
ATTRIBUTES_MAX = 20
HOT_ATTRIBUTES_MAX = 30
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


def test_classes_have_at_most_350_lines_and_20_attributes_and_say_their_subject() -> None:
    _, classes = too_large()

    assert classes == []


def test_a_class_that_is_too_large_is_found() -> None:
    body = "\n".join(f"    def f{n}(self): self.x{n} = {n}" for n in range(CLASS_LINES_MAX))
    (plain,) = ast.parse(f"class Plain:\n{body}").body
    (described,) = ast.parse("class Described:\n    'One subject.'" + "\n    pass" * 252).body
    assert isinstance(plain, ast.ClassDef)
    assert isinstance(described, ast.ClassDef)

    assert len(list(faults_of(plain, is_hot=True))) == 3
    assert list(faults_of(described, is_hot=False)) == []


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
                classes += (
                    f"{name_of(path)} {node.name} {fault}"
                    for fault in faults_of(node, is_hot=path.with_suffix(".pxd").exists())
                )
    return functions, classes


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    return (node.end_lineno or 0) - node.lineno + 1


def faults_of(node: ast.ClassDef, *, is_hot: bool) -> Iterator[str]:
    """Yield what is wrong with the size of a class."""
    lines, attributes = lines_of(node), len(attributes_of(node))
    if lines > CLASS_LINES_MAX:
        yield f"has {lines} lines: split it by its subjects"
    if lines > DESCRIBED_LINES and not ast.get_docstring(node):
        yield f"has {lines} lines, and no docstring that says its one subject"
    if attributes > (HOT_ATTRIBUTES_MAX if is_hot else ATTRIBUTES_MAX):
        yield f"has {attributes} attributes"


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
