"""Pravega's own tests: which are run, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.pravega.java import own
from compat.pravega.java.own import LEFT_OUT, PACKAGE, TESTS, Outcome, classes, main, report


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / TESTS / PACKAGE
    folder.mkdir(parents=True)
    for name in ("ScopeTest", "AbstractEndToEndTest", next(iter(LEFT_OUT)), "ReadWriteUtils"):
        (folder / f"{name}.java").touch()
    return tmp_path


def test_classes_are_run_that_need_no_server_of_their_own(checkout: Path) -> None:
    assert classes(checkout) == ["io.pravega.test.integration.ScopeTest"]


def test_a_test_that_fails_fails_all_unless_it_is_expected_to(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [Outcome("A.one", "passed"), Outcome("A.two", "failed", "a reason")]
    assert report(found) == 1
    assert "FAILED    A.two: a reason" in capsys.readouterr().out
    monkeypatch.setitem(own.EXPECTED, "A.two", "it is meant")

    assert report(found) == 0
    assert "2 tests, 1 passed, 1 failed, 0 skipped" in capsys.readouterr().out


def test_nothing_is_no_success() -> None:
    assert report([]) == 1


def test_a_folder_without_the_tests_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--checkout", str(tmp_path)]) == 2
    assert (
        "not run: Maven Central has the sources without the tests: put a checkout of"
        in capsys.readouterr().err
    )
