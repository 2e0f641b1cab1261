"""Sources of the suites: only what is pinned is taken, and what is missing is told in one line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from compat.pravega.java import own
from compat.suites import sources
from compat.suites.__main__ import EXIT_USAGE, main
from compat.suites.catalogue import SUITES
from compat.suites.results import PASSED, Results
from compat.suites.sources import SOURCES, SourceError, get

NPM = """#!/bin/sh
if [ "$1" = pack ]; then
    mkdir -p package/test && echo 'it()' > package/test/a.test.ts
    tar -czf client.tgz package
    echo '[{"filename": "client.tgz", "integrity": "'"$SAID"'"}]'
fi
"""


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A virtual environment in which nothing lies, and an npm that packs one test."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "npm").write_text(NPM)
    (tmp_path / "bin" / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    for name in SOURCES:
        monkeypatch.delenv(sources.variable(name), raising=False)
    return tmp_path


def test_each_suite_has_a_source_and_what_a_registry_gives_has_a_sum() -> None:
    assert SOURCES.keys() == SUITES.keys() | {own.SUITE}
    for source in SOURCES.values():
        assert bool(source.registry) == bool(source.sum) == bool(source.package)
        assert bool(source.registry) != bool(source.lacks)


def test_a_package_with_its_sum_is_unpacked_where_a_run_finds_it(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAID", SOURCES["node"].sum)

    assert get("node") == sources.folder("node") == environment / "suites" / "node"
    assert (environment / "suites" / "node" / "test" / "a.test.ts").read_text() == "it()\n"

    monkeypatch.setenv("SAID", "asked again")
    assert get("node") == environment / "suites" / "node"


def test_a_package_with_another_sum_is_refused_and_not_unpacked(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAID", "sha512-other")

    with pytest.raises(SourceError, match="has the sum sha512-other"):
        get("node")
    assert not list((environment / "suites" / "node").iterdir())


@pytest.mark.parametrize("name", [name for name in SOURCES if not SOURCES[name].registry])
def test_what_no_registry_carries_says_in_a_line_where_a_checkout_is_looked_for(
    name: str, environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SourceError) as caught:
        get(name)
    said = str(caught.value)
    assert "\n" not in said
    assert str(environment / "suites" / name) in said
    assert sources.variable(name) in said

    monkeypatch.setenv(sources.variable(name), str(environment))
    assert get(name) == environment


@pytest.mark.usefixtures("environment")
def test_a_run_without_the_sources_says_that_it_was_none_and_how_to_get_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["go"]) == EXIT_USAGE
    assert capsys.readouterr().err == "go: not run: python -m compat.suites get go\n"
    assert main(["java"]) == EXIT_USAGE
    assert f"java: not run: {SOURCES['java'].lacks}" in capsys.readouterr().err


def test_at_most_five_tests_of_a_suite_are_left_out_each_with_its_reason() -> None:
    for suite in SUITES.values():
        assert len(suite.left_out) <= 5
        assert all(suite.left_out.values())
    assert Results(dict.fromkeys([*SUITES["go"].left_out, "a"], PASSED)).without(
        SUITES["go"].left_out
    ).outcomes == {"a": PASSED}
