"""No file and no function grows beyond what a reader can hold."""

import ast
from pathlib import Path

import pytest

from tests.tidy.sources import SOURCES, name_of

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_file_has_at_most_500_lines(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())

    assert lines <= FILE_LINES_MAX, f"{name_of(path)} has {lines} lines: split it"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_function_has_at_most_60_lines(path: Path) -> None:
    long = [
        f"{name_of(path)}:{node.lineno} {node.name} has {length} lines"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]

    assert not long, "\n".join(long)
