"""No file and no function grows beyond what a reader can hold."""

import ast

from tests.tidy.sources import SOURCES, name_of

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60


def test_files_have_at_most_500_lines() -> None:
    offenders = [
        f"{name_of(path)} has {lines} lines: split it"
        for path in SOURCES
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > FILE_LINES_MAX
    ]

    assert offenders == []


def test_functions_have_at_most_60_lines() -> None:
    offenders = [
        f"{name_of(path)}:{node.lineno} {node.name} has {length} lines"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]

    assert offenders == []
