"""A tutorial's program passes if it shows what it should and then ends as it should."""

import io
import re
import sys
from pathlib import Path

import pytest

from compat.suites import tutorials
from compat.suites.results import FAILED, PASSED
from compat.suites.tutorials import PROGRAMS, End, Program, run, shown_by

LANGUAGES = ["python", "node", "java", "go", "rust"]


def program(text: str, end: End = End.ITSELF) -> Program:
    return Program("a program", ".", (sys.executable, "-c", text), "shown", end)


@pytest.mark.parametrize(
    ("text", "end", "passes"),
    [
        ("print('it is shown')", End.ITSELF, True),
        ("print('something else')", End.ITSELF, False),
        ("print('it is shown'); raise SystemExit(3)", End.ITSELF, False),
        ("print('shown'); assert input() == ''", End.ENTER, True),
        ("print('shown'); input(); raise SystemExit(3)", End.ENTER, False),
        ("import time; print('shown'); time.sleep(60)", End.INTERRUPT, True),
    ],
)
def test_what_is_shown_and_how_it_ends_decide(
    text: str, end: End, *, passes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tutorials, "PAUSE_SECONDS", 0.05)
    output = io.StringIO()
    assert shown_by(program(text, end), tmp_path, output) is passes
    assert re.match("it is shown|something else|shown", output.getvalue())


def test_a_program_that_neither_shows_nor_ends_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tutorials, "PROGRAM_SECONDS", 0.5)
    assert not shown_by(program("input()"), tmp_path, io.StringIO())
    deaf = "import signal, time; signal.signal(2, signal.SIG_IGN); print('shown'); time.sleep(60)"
    assert not shown_by(program(deaf, End.INTERRUPT), tmp_path, io.StringIO())


def test_a_run_tells_of_each_program_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, wrong = program("print('shown')"), program("print('else')")
    named = [
        Program(name, one.folder, one.command, one.shows)
        for name, one in [("go: hello", right), ("go: offsets", wrong), ("rust: hello", right)]
    ]
    monkeypatch.setattr(tutorials, "PROGRAMS", named)
    log = tmp_path / "log"
    assert run(tmp_path, log, []).outcomes == {
        "go: hello": PASSED,
        "go: offsets": FAILED,
        "rust: hello": PASSED,
    }
    assert list(run(tmp_path, log, ["rust"]).outcomes) == ["rust: hello"]
    assert log.read_text().count("== rust: hello\nshown\n") == 2


def test_every_language_sends_before_it_reads_in_both_tutorials() -> None:
    parts = ["hello: send", "hello: receive", "offsets: send", "offsets: receive"]
    expected = [f"{language}: {part}" for language in LANGUAGES for part in parts]
    assert [one.name for one in PROGRAMS] == expected
