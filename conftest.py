"""What holds for every test: profiles, markers by folder, no skipping where it is forbidden."""

import os
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest

from gateway.kernels import KERNELS, uncompiled

hypothesis.settings.register_profile("dev", max_examples=50, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=300, deadline=None, derandomize=True)
hypothesis.settings.register_profile("night", max_examples=5_000, deadline=None)

hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

REQUIRE_ALL = os.environ.get("HUTCH_REQUIRE_ALL") == "1"
"""Everything must run: a test that would be skipped fails with the reason it gives."""

TESTS = Path(__file__).parent / "tests"
FOLDERS_WITH_MARKER = ("compat", "integration", "simulation")


def pytest_report_header() -> list[str]:
    plain = uncompiled()
    if not plain:
        kernels = "compiled"
    elif len(plain) == len(KERNELS):
        kernels = "UNCOMPILED (make kernel)"
    else:
        kernels = f"UNCOMPILED: {', '.join(plain)} (make kernel)"
    skips = "forbidden (HUTCH_REQUIRE_ALL=1)" if REQUIRE_ALL else "allowed, with a reason"
    return [f"kernels: {kernels}", f"skips: {skips}"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if TESTS not in item.path.parents:
            continue
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in FOLDERS_WITH_MARKER:
            item.add_marker(folder)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    # An expected failure is "skipped" to pytest too; it did run.
    if REQUIRE_ALL and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, where nothing may be: {report.longreprtext}"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if REQUIRE_ALL and report.skipped:  # a whole module
        report.outcome = "failed"
        report.longrepr = f"skipped, where nothing may be: {report.longreprtext}"
    return report
