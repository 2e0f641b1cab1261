"""The suites: how each is run in its checkout, and where it leaves its results."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from compat.suites import tutorials
from compat.suites.results import FAILED, PASSED, Results, of_cargo, of_ginkgo, of_junit, of_mocha

TOOLS: Final = Path(__file__).parent / "bin"
TEST_SECONDS: Final = 120
"""Time limit of one test of rstream: one that fails can hang its process."""
SUITE_SECONDS: Final = 3 * 3600
CLASS_SECONDS: Final = 15 * 60
"""Time limit of one class of Java's tests: some clients wait for an answer without a limit."""

PASSES: Final = {"go": 246, "rust": 193, "node": 211, "rstream": 102, "java": 770, "tutorials": 20}
"""Tests that pass at least, on a busy machine too; README.md names those that fail, and why."""
GO_LEFT_OUT: Final = {
    "Reliable Super Stream Producer restart Reliable Producer in case of killing connection": (
        "ends a connection as soon as the API lists it, and wants all its messages confirmed; where"
        " it fails it ends its process, and fifteen other tests with it"
    ),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Place in which a suite is run.

    Attributes:
        checkout: Its repository, with its dependencies downloaded.
        reports: An empty folder.
        certificates: Those of the server under test, as `compat.certificates` lays them out.
        only: Which tests, in the suite's own words; none means all.
    """

    checkout: Path
    reports: Path
    certificates: Path
    only: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Suite:
    """A client's own tests.

    Where they come from is in `compat.suites.sources`.

    Attributes:
        run: Runs them and returns what became of them.
        passes: How many pass at least, in a whole run on Hutch.
        left_out: Names of tests that are not run, each with its reason.
    """

    run: Callable[[Place], Results]
    passes: int
    left_out: dict[str, str] = field(default_factory=dict)

    def faults(self, results: Results) -> list[str]:
        """Return what is wrong with a whole run: too few passes, and then what failed."""
        passed = results.counts()[PASSED]
        if passed >= self.passes:
            return []
        return [f"{passed} of {self.passes} passes", *results.named(FAILED)]


def _call(
    command: Sequence[str | Path],
    place: Place,
    *,
    limit_s: float = SUITE_SECONDS,
    **environment: str,
) -> str:
    """Run a command in the checkout; what it prints is kept in a file, and returned.

    Raises:
        subprocess.TimeoutExpired: It was not done in time; it has ended, with all that it started.
    """
    log = place.reports / "output.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=place.checkout,
            env={**os.environ, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(limit_s)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return log.read_text("utf-8", "replace")


def _go(place: Place) -> Results:
    ginkgo = ("go", "run", "-mod=mod", "github.com/onsi/ginkgo/v2/ginkgo")
    options = ("-r", "--keep-going", "--tags", "debug", "--timeout=30m", "--procs=1")
    packages = [words for words in place.only if words.startswith("./")]
    focus = [f"--focus={words}" for words in place.only if words not in packages]
    skip = [f"--skip={re.escape(name)}$" for name in GO_LEFT_OUT]
    report = (f"--output-dir={place.reports}", "--json-report=ginkgo.json")
    _call((*ginkgo, *options, *focus, *skip, *report, *packages), place, GOFLAGS="-mod=mod")
    return of_ginkgo((place.reports / "ginkgo.json").read_text()).without(GO_LEFT_OUT)


def _rust(place: Place) -> Results:
    output = _call(
        (
            *("cargo", "test", "--offline", "--workspace", "--all-features", "--no-fail-fast"),
            *("--", "--test-threads=4", *place.only),
        ),
        place,
        RUST_LOG="off",
    )
    return of_cargo(output)


def _node(place: Place) -> Results:
    report = place.reports / "mocha.json"
    grep = ("--grep", "|".join(place.only)) if place.only else ()
    reporter = ("--reporter", "json", "--reporter-option", f"output={report}", "--exit")
    _call(("npx", "--no-install", "mocha", "test", *reporter, *grep), place)
    return of_mocha(report.read_text())


def _rstream(place: Place) -> Results:
    """Each test in a process of its own: one that fails leaves tasks that keep the next waiting."""
    python = os.environ.get("SUITE_PYTHON", sys.executable)
    pytest = (python, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    environment = {**os.environ, "GITHUB_ACTIONS": "true"}
    collected = subprocess.run(
        [*pytest, "--collect-only", *place.only],
        cwd=place.checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TEST_SECONDS,
        check=False,
    ).stdout
    names = [line for line in collected.splitlines() if "::" in line]
    results = Results()
    for number, name in enumerate(names):
        report = place.reports / f"{number:03}.xml"
        try:
            subprocess.run(
                [*pytest, f"--junitxml={report}", name],
                cwd=place.checkout,
                env=environment,
                capture_output=True,
                timeout=TEST_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            report.unlink(missing_ok=True)
        ended = of_junit([report]).outcomes if report.exists() else {}
        results.add(name, next(iter(ended.values()), "failed"))
    return results


def _java(place: Place) -> Results:
    reports = place.checkout / "target" / "surefire-reports"
    shutil.rmtree(reports, ignore_errors=True)
    late: list[str] = []
    for name in place.only or java_classes(place.checkout):
        try:
            _java_class(name, place)
        except subprocess.TimeoutExpired:
            late.append(name)
    results = of_junit(reports.glob("TEST-*.xml"))
    for name in late:
        results.add(f"{name} in {CLASS_SECONDS} s", FAILED)
    return results


def java_classes(checkout: Path) -> list[str]:
    """Return the classes with tests, by surefire's rule, without those that need several nodes."""
    sources = (checkout / "src" / "test" / "java").rglob("*Test.java")
    return sorted(source.stem for source in sources if not source.stem.endswith("ClusterTest"))


def _java_class(name: str, place: Place) -> None:
    """Run one class in processes of its own. Raises subprocess.TimeoutExpired."""
    names = place.certificates
    _call(
        (
            *("mvn", "-o", "-B", "test", f"-Dtest={name}"),
            f"-Drabbitmqctl.bin={TOOLS / 'rabbitmqctl'}",
            f"-Dca.certificate={names / 'ca.pem'}",
            f"-Dclient.certificate={names / 'client.pem'}",
            f"-Dclient.key={names / 'client-key.pem'}",
            *("-Dspotbugs.skip", "-Dspotless.check.skip", "-Dmaven.test.failure.ignore"),
            *os.environ.get("SUITE_MAVEN_OPTIONS", "").split(),
        ),
        place,
        limit_s=CLASS_SECONDS,
    )


def _tutorials(place: Place) -> Results:
    return tutorials.run(place.checkout, place.reports / "output.log", list(place.only))


SUITES: Final = {
    "go": Suite(_go, PASSES["go"], GO_LEFT_OUT),
    "rust": Suite(_rust, PASSES["rust"]),
    "node": Suite(_node, PASSES["node"]),
    "rstream": Suite(_rstream, PASSES["rstream"]),
    "java": Suite(_java, PASSES["java"]),
    "tutorials": Suite(_tutorials, PASSES["tutorials"]),
}
