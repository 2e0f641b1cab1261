"""The state of a session and the pauses of a connection are changed by their owner alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT, name_of

GATEWAY = sorted((ROOT / "gateway").rglob("*.py"))
SESSION = ROOT / "gateway" / "stream" / "session.py"
CONNECTION = ROOT / "gateway" / "server" / "connections" / "connection.py"


def changes(source: str) -> Iterator[tuple[str, str, int]]:
    """Name the attributes that some source sets: of what, which one, in which line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield ast.unparse(node.value), node.attr, node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("setattr"):
            owner, name = (ast.unparse(each) for each in node.args[:2])
            yield owner, name.strip("'"), node.lineno


def offenders(path: Path, source: str) -> list[str]:
    """List what some source changes that is not its own."""
    found: list[str] = []
    if "session" not in source and "_pause" not in source:
        return found  # without taking it apart, which takes long
    for owner, name, line in changes(source):
        of_session = owner.rpartition(".")[2].strip("_") == "session" and path != SESSION
        of_pauses = name == "_pause" and path != CONNECTION
        if of_session or of_pauses:
            found.append(f"{name_of(path)}:{line} {owner}.{name}")
    return found


def test_only_the_session_changes_a_session_and_only_the_connection_its_pauses() -> None:
    found = [line for path in GATEWAY for line in offenders(path, path.read_text(encoding="utf-8"))]

    assert found == []


def test_a_session_changes_its_state_in_one_place() -> None:
    source = SESSION.read_text(encoding="utf-8")

    assert [owner for owner, name, _ in changes(source) if name == "state"] == ["self"]


@pytest.mark.parametrize(
    "line",
    [
        "link.session.state = 1",
        "self._session.user += 'x'",
        "setattr(session, 'state', 1)",
        "connection._pause |= 2",
    ],
)
def test_a_change_from_outside_is_found(line: str) -> None:
    assert len(offenders(ROOT / "gateway" / "stream" / "front.py", line)) == 1
