"""One part, run: its output in a file, its end, and how far it came."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Final

from tests.night.part import ROOT, Part
from tests.night.results import PASSED, Result

VARIABLES: Final = {"HUTCH_REQUIRE_ALL": "1", "HYPOTHESIS_PROFILE": "night"}
"""Nothing skips, and searches are by chance."""
LOOK_S: Final = 0.5
TELL_S: Final = 60.0
"""Time between two lines that say how far a part is."""
END_S: Final = 20.0
"""Time for a part that is cut off to end by itself, before it is killed."""
NOT_RUN: Final = r"\bnot run: (.+)$"
"""Words of a part that finds something missing by itself."""
TAIL_BYTES: Final = 200_000
"""How much of the output's end is looked at."""


class Stopped(Exception):
    """The night is over before the part is."""


def run(
    part: Part, commit: str, log: Path, tell: Callable[[str], object], is_over: Event
) -> Result:
    """Run a part to its end, or to its limit.

    Args:
        part: What to run.
        commit: What it is tried on.
        log: The file for its output.
        tell: Is handed a line each minute.
        is_over: Once it is set, the part is stopped.

    Returns:
        Its result; `not run: …` if something that it needs is missing.

    Raises:
        Stopped: The part was stopped.
    """
    load, started = os.getloadavg()[0], time.monotonic()

    def ended(said: str, figure: str = "") -> Result:
        seconds = time.monotonic() - started
        return Result(
            said, seconds, figure, load, f"{datetime.now().astimezone():%Y-%m-%d}", commit
        )

    missing = [word for need in part.needs if (word := need())]
    if missing:
        return ended(f"not run: {'; '.join(missing)}")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            part.command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | VARIABLES | part.environment,
            start_new_session=True,
        )
    try:
        status = _wait(process, part, log, tell, is_over)
    finally:
        _end(process)
    said = _tail(log)
    if status is None:
        far = _last(part.progress, said) or f"{part.limit_s} s"
        return ended(f"cut off at {far} of {part.amount}")
    figure = _last(part.figure, said)
    if status and (missing_too := _last(NOT_RUN, said)):
        return ended(f"not run: {missing_too}")
    if status:
        return ended(f"failed with status {status}, see {log}", figure)
    return ended(PASSED, figure)


def _wait(
    process: subprocess.Popen[bytes],
    part: Part,
    log: Path,
    tell: Callable[[str], object],
    is_over: Event,
) -> int | None:
    """Wait for the end; return the status, or None at the limit."""
    started = time.monotonic()
    told = started
    while True:
        try:
            return process.wait(LOOK_S)
        except subprocess.TimeoutExpired:
            now = time.monotonic()
        if is_over.is_set():
            raise Stopped(part.name)
        if now - started > part.limit_s:
            return None
        if now - told > TELL_S:
            told = now
            far = _last(part.progress, _tail(log)) or "no count yet"
            tell(f"   {part.name}: {now - started:.0f} s of at most {part.limit_s}, {far}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a part with all that it started."""
    for number, seconds in ((signal.SIGINT, END_S), (signal.SIGKILL, END_S)):
        if process.poll() is None or number == signal.SIGKILL:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)


def _tail(log: Path) -> str:
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        return file.read().decode(errors="replace")


def _last(pattern: str, said: str) -> str:
    """Return the last group of the last match; an empty text if there is none."""
    found = ""
    for match in re.finditer(pattern, said, re.MULTILINE):
        found = match[match.lastindex or 0].strip()
    return found
