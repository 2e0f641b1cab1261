"""What the page of commands and codes says is so: each pair has a script, each script is there."""

import ast
from pathlib import Path

import pytest

from compat.differential.__main__ import COVERAGE
from compat.differential.coverage import ELSEWHERE, GIVEN, Elsewhere, given, pairs_of, rows_of
from compat.differential.scripts import SCRIPTS
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import BY_NAME

ROOT = Path(__file__).parents[4]
ROWS = rows_of(COVERAGE.read_text())
SHOWN = {(row[0], int(row[1])): row for row in ROWS[: len(given())]}


def test_every_pair_that_a_node_can_be_made_to_give_has_a_script() -> None:
    assert sorted(SHOWN) == sorted(given())
    assert [row for row in SHOWN.values() if int(row[2]) < 1] == []


def test_every_script_that_the_page_names_is_there() -> None:
    names = {script.name.replace("<", "&lt;").replace("|", "\\|") for script in SCRIPTS}
    assert [row[3] for row in SHOWN.values() if row[3] not in names] == []


def test_there_are_at_least_250_exchanges() -> None:
    assert sum(script.exchange_count for script in SCRIPTS) >= 250


def test_every_command_and_every_code_is_spoken_of() -> None:
    assert set(GIVEN) == set(BY_NAME)
    spoken_of = {code for _, code in given()} | {one.code for one in ELSEWHERE}
    assert spoken_of == set(ResponseCode)


def test_no_pair_is_both_given_and_not() -> None:
    assert {(one.command, one.code) for one in ELSEWHERE} & given() == set()


@pytest.mark.parametrize("one", ELSEWHERE, ids=lambda one: f"{one.command} {one.code}")
def test_what_a_node_cannot_be_made_to_give_has_its_test(one: Elsewhere) -> None:
    path, _, name = one.test.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert one.test.rpartition("::")[2] in COVERAGE.read_text()


@pytest.mark.parametrize(
    ("line", "sent", "pairs"),
    [
        ("create_stream answer corr 7 code 17", "create_stream", [("create_stream", 17)]),
        ("confirmed by publisher 1: [1, 2]", "publish", [("publish", 1)]),
        ("publish_error publisher 1 ['5: 18', '6: 17']", "publish",
         [("publish", 18), ("publish", 17)]),
        ("credit answer code 4 subscription 1", "credit", [("credit", 4)]),
        ("metadata_update code 6 stream 's'", "", [("metadata_update", 6)]),
        ("metadata answer corr 1 brokers [] streams [\"'code 9' code 2 leader 0xffff\"]",
         "metadata", [("metadata", 2)]),
        ("close corr 1 code 13 'unknown frame'", "route", [("close", 13), ("route", 13)]),
        ("close corr 1 code 13 'unknown frame'", "bytes", [("close", 13)]),
        ("close corr 1 code 14 'frame too large'", "route", [("close", 14)]),
        ("delivered to 1: 0=code 4", "publish", []),
        ("FIN", "route", []),
    ],
)  # fmt: skip
def test_a_line_of_an_answer_shows_its_pairs(
    line: str, sent: str, pairs: list[tuple[str, int]]
) -> None:
    assert list(pairs_of(line, sent)) == pairs
