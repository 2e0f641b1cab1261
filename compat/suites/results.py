"""Results of a suite's own report, in one form for all of them."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

PASSED: Final = "passed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"

_CARGO_TEST = re.compile(r"test (\S+)(?: - should panic)? \.\.\. (?:.*?)\b(ok|FAILED|ignored)\b")
_CARGO: Final = {"ok": PASSED, "FAILED": FAILED, "ignored": SKIPPED}
_GINKGO: Final = {"passed": PASSED, "skipped": SKIPPED, "pending": SKIPPED}


@dataclass(slots=True)
class Results:
    """Outcome of each test of a suite, by its name.

    Attributes:
        outcomes: PASSED, FAILED or SKIPPED; tests of one name are told apart by a number.
    """

    outcomes: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, outcome: str) -> None:
        """Note how a test ended."""
        count = 1
        unique = name
        while unique in self.outcomes:
            count += 1
            unique = f"{name} #{count}"
        self.outcomes[unique] = outcome

    def named(self, outcome: str) -> list[str]:
        """Return the tests that ended so, sorted."""
        return sorted(name for name, ended in self.outcomes.items() if ended == outcome)

    def counts(self) -> dict[str, int]:
        """Return how many ended in which way."""
        counter = Counter(self.outcomes.values())
        return {outcome: counter[outcome] for outcome in (PASSED, FAILED, SKIPPED)}

    def without(self, names: Container[str]) -> Results:
        """Return these, but for the tests with the names given."""
        return Results({name: how for name, how in self.outcomes.items() if name not in names})

    def merged(self, again: Results) -> Results:
        """Return these, with tests that failed here and not in another run taken from there."""
        outcomes = {
            name: again.outcomes.get(name, outcome) if outcome == FAILED else outcome
            for name, outcome in self.outcomes.items()
        }
        return Results(outcomes)


def of_cargo(output: str) -> Results:
    """Read what `cargo test` prints; other lines may stand between a name and its result."""
    results = Results()
    for match in _CARGO_TEST.finditer(output):
        results.add(match[1], _CARGO[match[2]])
    return results


def of_ginkgo(report: str) -> Results:
    """Read Ginkgo's JSON report."""
    results = Results()
    for suite in json.loads(report):
        for spec in suite.get("SpecReports") or ():
            if spec["LeafNodeType"] != "It":
                if spec["State"] not in _GINKGO:
                    results.add(f"{suite['SuiteDescription']}: {spec['LeafNodeType']}", FAILED)
                continue
            texts = [*(spec.get("ContainerHierarchyTexts") or ()), spec["LeafNodeText"]]
            results.add(" ".join(texts), _GINKGO.get(spec["State"], FAILED))
    return results


def of_mocha(report: str) -> Results:
    """Read mocha's JSON report; what a failed hook kept from running is not in it."""
    content = json.loads(report)
    results = Results()
    failed = {test["fullTitle"] for test in content["failures"]}
    skipped = {test["fullTitle"] for test in content["pending"]}
    for test in content["tests"]:
        name = test["fullTitle"]
        is_skipped = name in skipped and name not in failed
        results.add(name, FAILED if name in failed else SKIPPED if is_skipped else PASSED)
    for name in sorted(failed - {test["fullTitle"] for test in content["tests"]}):
        results.add(name, FAILED)
    return results


def of_junit(reports: Iterable[Path]) -> Results:
    """Read reports in JUnit's XML, as surefire and pytest write them."""
    results = Results()
    for report in sorted(reports):
        for case in _cases(report):
            name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name', '')}"
            kinds = {child.tag for child in case}
            outcome = PASSED
            if kinds & {"failure", "error"}:
                outcome = FAILED
            elif "skipped" in kinds:
                outcome = SKIPPED
            results.add(name, outcome)
    return results


def _cases(report: Path) -> Iterator[ET.Element]:
    try:
        root = ET.parse(report).getroot()  # noqa: S314  # written by a suite on this machine
    except ET.ParseError:  # a process that was killed
        return
    yield from root.iter("testcase")
