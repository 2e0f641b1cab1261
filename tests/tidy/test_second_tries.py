"""Only a test that is marked `timing` has a second try, and few are."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT

pytestmark = pytest.mark.slow
MARKED_MAX = 10
TESTS = """
import pathlib
import pytest

def is_first(name):
    with pathlib.Path(__file__).with_name(name).open("a") as file:
        file.write("tried ")
        return file.tell() == len("tried ")

@pytest.mark.timing("the kernel chooses")
def test_marked():
    assert not is_first("marked")

@pytest.mark.timing("the kernel chooses")
def test_wrong():
    is_first("wrong")
    raise ValueError

def test_not_marked():
    assert not is_first("not_marked")
"""


def marks() -> list[ast.AST]:
    """Return each place in the tests that names the marker."""
    return [
        node
        for path in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "timing" and names_mark(node.value)
    ]


def names_mark(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "mark"


def decorators() -> list[ast.Call]:
    """Return each use of the marker on one function, with its reason."""
    return [
        each
        for path in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for each in node.decorator_list
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "timing"
    ]


def test_at_most_ten_tests_may_have_a_second_try_and_each_says_why() -> None:
    uses = decorators()
    assert len(uses) == len(marks()), "the marker stands on a function, and nowhere else"
    assert len(uses) <= MARKED_MAX
    for use in uses:
        [reason] = use.args
        assert isinstance(reason, ast.Constant), ast.unparse(use)
        assert str(reason.value).strip(), ast.unparse(use)


@pytest.mark.parametrize(("workers", "is_allowed"), [(2, True), (0, False)])
def test_a_second_try_is_for_marked_tests_and_is_told_with_its_reason(
    tmp_path: Path, workers: int, *, is_allowed: bool
) -> None:
    file = tmp_path / "test_tries.py"
    file.write_text(TESTS)
    forbidden = [] if is_allowed else ["-p", "no:rerunfailures"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml")),
            *("--rootdir", str(tmp_path), "-p", "conftest", "-p", "no:cacheprovider"),
            *(*forbidden, "-n", str(workers), str(file)),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    tried = {name: (tmp_path / name).read_text().count("tried") for name in NAMES}
    marked = 2 if is_allowed else 1
    assert tried == {"marked": marked, "wrong": marked, "not_marked": 1}, done.stdout
    lines = done.stdout.splitlines()
    told = sorted(line for line in lines if line.startswith("SECOND TRY "))
    assert [line.endswith(": the kernel chooses") for line in told] == [True] * len(told)
    assert len(told) == (2 if is_allowed else 0)
    failed = {line.split("::")[1].split(" ")[0] for line in lines if line.startswith("FAILED")}
    assert failed == {"test_wrong", "test_not_marked"} | (set() if is_allowed else {"test_marked"})


NAMES = ("marked", "wrong", "not_marked")
