import os
from pathlib import Path

import pytest

from compat.roots.__main__ import SUITES, how_far, main, outcome

LOG = """
make: compiling the kernels, which takes a minute or two
....... [  1%]
..F.... [ 17%]
=========== FAILURES ===========
SKIPPED [1] tests/x.py:3: node is not installed
FAILED tests/x.py::test_y - AssertionError
======== 1 failed, 2 passed, 1 skipped in 12.20s (0:01:02) ========
make: *** [Makefile:82: test] Error 1
left in /dev/shm: pytest-of-tester
"""


def test_it_tells_how_far_the_tests_are() -> None:
    assert how_far(LOG) == "17 %"
    assert how_far("make: creating .venv\nWARNING: x\n") == "make: creating .venv"
    assert how_far("") == "nothing yet"


def test_it_tells_what_failed_was_skipped_and_was_left() -> None:
    assert outcome(LOG, is_passed=False) == [
        "SKIPPED [1] tests/x.py:3: node is not installed",
        "FAILED tests/x.py::test_y - AssertionError",
        "======== 1 failed, 2 passed, 1 skipped in 12.20s (0:01:02) ========",
        "left in /dev/shm: pytest-of-tester",
    ]


def test_it_tells_the_last_lines_of_a_run_that_reached_no_test() -> None:
    assert outcome("a\nmake: no C compiler\n", is_passed=False) == ["a", "make: no C compiler"]


def test_an_unknown_release_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["buzz"])

    assert ended.value.code == 2
    assert "unknown: buzz; there are bookworm, trixie, testing" in capsys.readouterr().err


def test_it_says_in_a_line_that_it_needs_root_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert main([]) == 1
    assert capsys.readouterr().err == "the roots were not tried: a chroot needs root\n"


def test_the_classifiers_name_what_is_tried() -> None:
    text = Path(__file__).parents[4].joinpath("pyproject.toml").read_text(encoding="utf-8")

    for version in SUITES.values():
        assert f'"Programming Language :: Python :: {version}"' in text
