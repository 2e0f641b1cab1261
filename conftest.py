"""What holds for every test: profiles, markers by folder, no skipping where it is forbidden."""

import gc
import os
import resource
import sys
from collections.abc import Generator, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.internal.conjecture import engine

from gateway.kernels import HOT_OBJECTS, KERNELS, uncompiled
from tests.flaky import TRIED_AGAIN
from tests.folders import own_folders


class Uncompiled:
    """Finds the sources of compiled modules, ahead of the ordinary finders."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Give the source of a module that is to run as it stands; None for any other module."""
        if name not in self._names:
            return None
        source = Path(__file__).parent.joinpath(*name.split("."))
        return spec_from_file_location(name, source.with_suffix(".py"))


UNCOMPILED = {
    "1": HOT_OBJECTS,  # without the kernels, whose own tests run both builds side by side
    "all": HOT_OBJECTS + KERNELS,
}
if names := UNCOMPILED.get(os.environ.get("HUTCH_UNCOMPILED", "")):
    sys.meta_path.insert(0, Uncompiled(names))

gc.disable()  # until all tests are loaded: they stay, and there is nothing to collect

# A search draws the same examples each time, so that no change fails for what it has not done; that
# of the night draws others, and keeps what it finds, to try it first the next time.
FOUND = DirectoryBasedExampleDatabase(Path(sys.prefix, "hypothesis"))
hypothesis.settings.register_profile("dev", max_examples=50, deadline=None, derandomize=True)
for name, examples in (("night", 300), ("long", 5_000)):
    hypothesis.settings.register_profile(name, max_examples=examples, deadline=None, database=FOUND)

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")
hypothesis.settings.load_profile(PROFILE)
if PROFILE == "dev":  # what is found is told soon, if not in its shortest form
    engine.MAX_SHRINKING_SECONDS = 20

FILES_MAX = 20_000

REQUIRE_ALL = os.environ.get("HUTCH_REQUIRE_ALL") == "1"
"""Everything must run: a test that would be skipped fails with the reason it gives."""

HAS_SPARK = find_spec("pyspark") is not None
if not HAS_SPARK:  # `make test` does not install it
    collect_ignore = ["tests/spark", "tests/spark_cluster"]

TESTS = Path(__file__).parent / "tests"
FOLDERS_WITH_MARKER = ("compat", "integration", "simulation", "spark")
SEARCHES = ("damage", "fuzz", "property")
LONGEST = (
    *("compat/test_clients.py", "compat/test_differential.py", "compat/test_go_suite.py"),
    *("spark/test_bad_sub_batches.py", "spark/test_chaos.py", "spark/test_documents.py"),
    *("spark/test_fresh_environment.py", "spark/test_jobs_to_lake.py", "spark/test_restarts.py"),
    *("spark/test_scans.py", "spark/test_sink.py"),
)
"""Files whose time is a good part of their run's."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # A login shell allows a thousand files, and a store that a test drops, as a crash does, never
    # closes its own: a worker runs some twelve thousand tests.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < FILES_MAX:
        more = min(hard, FILES_MAX) if hard >= 0 else FILES_MAX
        resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
    own_folders(config)


def pytest_report_header() -> list[str]:
    plain = uncompiled()
    if not plain:
        kernels = "compiled"
    elif len(plain) == len(KERNELS + HOT_OBJECTS):
        kernels = "UNCOMPILED (make kernel)"
    else:
        kernels = f"UNCOMPILED: {', '.join(plain)} (make kernel)"
    skips = "forbidden (HUTCH_REQUIRE_ALL=1)" if REQUIRE_ALL else "allowed, with a reason"
    spark = "installed" if HAS_SPARK else "not installed, so not tested (make test-spark)"
    return [f"kernels: {kernels}", f"skips: {skips}", f"spark: {spark}"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    has_second_tries = config.pluginmanager.hasplugin("rerunfailures")
    # File by file: every worker does this for thousands of tests.
    for path, tests in groupby(items, key=attrgetter("path")):
        folder = path.relative_to(TESTS).parts[0] if TESTS in path.parents else ""
        for item in tests:
            if folder in FOLDERS_WITH_MARKER:
                item.add_marker(folder)
            if folder in SEARCHES:
                item.add_marker("search")
            if has_second_tries and item.get_closest_marker("timing"):
                item.add_marker(pytest.mark.flaky(reruns=1))
    # Long files come first, the many short ones last: after a long one at the end all other workers
    # would wait.
    longest = {TESTS / each for each in LONGEST}
    short = f"{TESTS / 'unit'}{os.sep}"
    items.sort(key=lambda item: (item.path not in longest, str(item.path).startswith(short)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    # Hypothesis asks the collector what holds its random numbers, and of what is frozen it is told
    # nothing: it makes them now, with its first example.
    quiet = hypothesis.settings(database=None)
    hypothesis.find(hypothesis.strategies.just(True), bool, settings=quiet)  # noqa: FBT003
    # The collector need not look at thousands of tests again and again.
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    again = terminalreporter.stats.get("rerun", [])
    for report in again:
        reason = getattr(report, "timing", "asked for by --reruns")
        terminalreporter.write_line(f"SECOND TRY {report.nodeid}: {reason}")
    cache = getattr(terminalreporter.config, "cache", None)  # none with `-p no:cacheprovider`
    if cache is not None:  # `make flaky` reads them
        cache.set(TRIED_AGAIN, sorted({report.nodeid for report in again}))


LIMIT = pytest.StashKey[object]()


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: object) -> None:
    item.stash[LIMIT] = settings


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # pytest-timeout counts all tries as one, and after it has struck it never strikes again.
    if getattr(item, "execution_count", 1) > 1 and LIMIT in item.stash:
        item.config.hook.pytest_timeout_cancel_timer(item=item)
        item.config.hook.pytest_timeout_set_timer(item=item, settings=item.stash[LIMIT])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if marker := item.get_closest_marker("timing"):
        report.timing = marker.args[0]
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


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, object, object]:
    # Another process takes it as UTF-8: one line of a log with half a character would end the run.
    return sendable((yield))


def sendable(value: object) -> object:
    """Return a report's content with every text as UTF-8 can say it."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {sendable(name): sendable(each) for name, each in value.items()}
        case list():
            return [sendable(each) for each in value]
        case tuple():  # a skip's place and reason, which stay one
            return tuple(sendable(each) for each in value)
    return value
