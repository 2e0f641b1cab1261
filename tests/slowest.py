"""Tells at the end of a run which files of tests take the most CPU time: `make slowest`.

A plugin of pytest (`-p tests.slowest`), for one process or several of xdist. The time of a file is
that of the process that runs it, and of every process below it: those that ended and those that
still run, such as a server that a fixture keeps. A process that has lost its parent is not among
them, unless the process of the tests became its parent (`tests/integration/preloaded.py`).
"""

from __future__ import annotations

import os
import resource
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

_LOADING: Final = "(loading all tests)"
_SHOWN_S_MIN: Final = 1.0
"""Files that take less, by the clock and of the CPU, are added up in one line."""
_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")


def used_s() -> float:
    """Return the CPU time, in seconds, of this process and of all below it, ended or running."""
    ended = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    running = sum(map(_ticks_of, _below(os.getpid())))
    return sum(each.ru_utime + each.ru_stime for each in ended) + running / _TICKS_A_SECOND


def _below(pid: int) -> Iterator[int]:
    """Yield the processes below one that run, or that nothing has waited for yet."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:  # it has ended
        return
    for thread in threads:
        try:
            found = (thread / "children").read_text().split()
        except OSError:
            continue
        for child in map(int, found):
            yield child
            yield from _below(child)


def _ticks_of(pid: int) -> int:
    """Return what a process has used, with those below it that have ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    # utime, stime, cutime and cstime; the name before them may have any character in it.
    return sum(map(int, stat.rpartition(")")[2].split()[11:15]))


class Slowest:
    """What each file of tests took, in this process and in the workers that told theirs."""

    def __init__(self) -> None:
        # CPU seconds, seconds by the clock, and how many tests.
        self._took: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0])
        self._used_s = 0.0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Count what it takes to load the tests, which every worker does."""
        began = time.monotonic()
        result = yield
        self._add(_LOADING, time.monotonic() - began, 0)
        self._add_used(_LOADING)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Count a test, with the fixtures that are made for it and end after it."""
        began = time.monotonic()
        result = yield
        name = item.nodeid.partition("::")[0]
        self._add(name, time.monotonic() - began, 1)
        if nextitem is None or nextitem.path != item.path:
            self._add_used(name)
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell what this worker took."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["slowest"] = dict(self._took)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:  # noqa: ANN401  # xdist has no types
        """Take what a worker took; one that has crashed told nothing."""
        for name, took in getattr(node, "workeroutput", {}).get("slowest", {}).items():
            self._took[name] = _sum([self._took[name], took])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table."""
        terminalreporter.section(
            "CPU time and time by file of tests, with the processes it started"
        )
        for line in self._table():
            terminalreporter.write_line(line)

    def _add(self, name: str, seconds: float, tests: int) -> None:
        self._took[name][1] += seconds
        self._took[name][2] += tests

    def _add_used(self, name: str) -> None:
        """Count the CPU time since the last call."""
        used_before, self._used_s = self._used_s, used_s()
        self._took[name][0] += self._used_s - used_before

    def _table(self) -> Iterator[str]:
        rows = sorted(self._took.items(), key=lambda row: row[1], reverse=True)
        short = [took for _, took in rows if max(took[:2]) < _SHOWN_S_MIN]
        shown = [(name, took) for name, took in rows if max(took[:2]) >= _SHOWN_S_MIN]
        if short:
            shown.append((f"({len(short)} more)", _sum(short)))
        shown.append(("(all)", _sum(self._took.values())))
        yield "  CPU s  seconds  tests  file"
        for name, (cpu_s, seconds, tests) in shown:
            yield f"{cpu_s:7.1f}  {seconds:7.1f}  {tests:5.0f}  {name}"


def _sum(rows: Iterable[list[float]]) -> list[float]:
    return [sum(column) for column in zip([0.0, 0.0, 0.0], *rows, strict=True)]


def pytest_configure(config: pytest.Config) -> None:
    """Count from here on."""
    config.pluginmanager.register(Slowest())
