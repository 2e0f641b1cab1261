"""Reports of five test runners, read into one form."""

import json
from pathlib import Path

from compat.suites.results import (
    FAILED,
    PASSED,
    SKIPPED,
    Results,
    of_cargo,
    of_ginkgo,
    of_junit,
    of_mocha,
)


def test_cargo_says_it_line_by_line_with_other_lines_between() -> None:
    output = """\
running 4 tests
test client::works ... ok
test client::breaks ... FAILED
test client::later ... ignored
test client::panics - should panic ... ok
test result: FAILED. 2 passed; 1 failed; 1 ignored
test client::works ... ok
"""
    results = of_cargo(output)

    assert results.outcomes == {
        "client::works": PASSED,
        "client::breaks": FAILED,
        "client::later": SKIPPED,
        "client::panics": PASSED,
        "client::works #2": PASSED,
    }


def test_ginkgo_names_a_spec_by_its_containers_and_a_set_up_that_failed() -> None:
    specs = [
        {
            "ContainerHierarchyTexts": ["Producers", "closed"],
            "LeafNodeType": "It",
            "LeafNodeText": "says so",
            "State": state,
        }
        for state in ("passed", "timedout", "pending")
    ]
    before = {"LeafNodeType": "BeforeSuite", "LeafNodeText": "", "State": "failed"}
    report = [{"SuiteDescription": "Stream", "SpecReports": [before, *specs]}, {}]

    results = of_ginkgo(json.dumps(report))

    assert results.named(FAILED) == ["Producers closed says so #2", "Stream: BeforeSuite"]
    assert results.counts() == {PASSED: 1, FAILED: 2, SKIPPED: 1}


def test_mocha_counts_a_failed_hook_as_a_failure() -> None:
    def tests(*names: str) -> list[dict[str, str]]:
        return [{"fullTitle": name} for name in names]

    report = {
        "tests": tests("a", "b", "c"),
        "failures": tests("b", "hook of d"),
        "pending": tests("c"),
    }
    results = of_mocha(json.dumps(report))

    assert results.outcomes == {"a": PASSED, "b": FAILED, "c": SKIPPED, "hook of d": FAILED}


def test_junit_reports_are_read_one_after_the_other_and_broken_ones_left_out(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.xml").write_text(
        '<testsuite><testcase classname="com.x.ClientTest" name="one"/>'
        '<testcase classname="com.x.ClientTest" name="two"><error/></testcase>'
        '<testcase classname="com.x.ClientTest" name="three"><skipped/></testcase></testsuite>'
    )
    (tmp_path / "b.xml").write_text("<testsuite><testcase")

    results = of_junit(tmp_path.glob("*.xml"))

    assert results.outcomes == {
        "ClientTest.one": PASSED,
        "ClientTest.two": FAILED,
        "ClientTest.three": SKIPPED,
    }


def test_a_second_run_may_only_mend_what_failed() -> None:
    first = Results({"a": PASSED, "b": FAILED, "c": FAILED})
    second = Results({"a": FAILED, "b": PASSED})

    assert first.merged(second).outcomes == {"a": PASSED, "b": PASSED, "c": FAILED}
