"""The suites' runner: a class of Java's tests that hangs does not hold up the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compat.suites import catalogue
from compat.suites.catalogue import SUITES, Place, Suite, java_classes
from compat.suites.results import FAILED, PASSED, Results

MAVEN = """#!/bin/sh
for word; do case "$word" in -Dtest=*) name="${word#-Dtest=}" ;; esac; done
if [ "$name" = HangsTest ]; then
    sleep 600 &
    echo $! > child
    wait
fi
mkdir -p target/surefire-reports
echo "<testsuite><testcase classname='com.$name' name='works'/></testsuite>" \\
    > "target/surefire-reports/TEST-com.$name.xml"
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with three classes, and a Maven that hangs in one of them."""
    tools, folder = tmp_path / "bin", tmp_path / "checkout"
    tools.mkdir()
    (tools / "mvn").write_text(MAVEN)
    (tools / "mvn").chmod(0o755)
    tests = folder / "src" / "test" / "java" / "com"
    tests.mkdir(parents=True)
    for name in ("HangsTest", "WorksTest", "AlsoWorksTest", "SomeClusterTest", "Helper"):
        (tests / f"{name}.java").write_text("")
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(catalogue, "CLASS_SECONDS", 2)
    return folder


def test_a_class_that_hangs_is_ended_with_what_it_started_and_the_others_run(
    checkout: Path, tmp_path: Path
) -> None:
    results = SUITES["java"].run(Place(checkout, tmp_path, tmp_path))

    assert results.named(FAILED) == ["HangsTest in 2 s"]
    assert results.named(PASSED) == ["AlsoWorksTest.works", "WorksTest.works"]
    child = Path("/proc", (checkout / "child").read_text().strip(), "stat")
    assert not child.exists() or child.read_text().split()[2] == "Z"


def test_classes_are_those_of_surefire_without_what_needs_several_nodes(checkout: Path) -> None:
    assert java_classes(checkout) == ["AlsoWorksTest", "HangsTest", "WorksTest"]


def test_a_suite_fails_with_fewer_passes_than_are_written_down() -> None:
    suite = Suite(lambda _: Results(), passes=2)
    enough = Results({"one": PASSED, "two": PASSED, "three": FAILED})

    assert suite.faults(enough) == []
    assert suite.faults(enough.without(["two"])) == ["1 of 2 passes", "three"]
