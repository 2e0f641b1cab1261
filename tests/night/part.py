"""The long proofs: each part's command, how much of it is tried, and how long it may take."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PYTEST: Final = (sys.executable, "-m", "pytest", "-q")

PROGRESS: Final = r"\[ *(\d+%)\]|^(\d[\d,]*)(?: of [\d,]+)? [a-z]"
"""pytest's share of its tests, or a line that begins with a count."""
FIGURE: Final = r"^=* ?(\d[\d,]* [a-z].*?)(?: in [\d.]+s.*)?=*$"
"""pytest's last line, or any other line that begins with a count."""

Need = Callable[[], str]
"""Returns what is missing and how to get it; an empty text if nothing is."""


def program(name: str, how: str) -> Need:
    """Return the need of a program on the PATH, with the words that say how to get it."""
    return lambda: "" if shutil.which(name) else f"{name} is missing: {how}"


JAVA: Final = program("java", "install Java 17 or later (Debian: apt install default-jdk-headless)")
"""For Spark."""


class Lane(Enum):
    """Which parts run at the same time."""

    COMPUTES = auto()
    """One after the other: each can use all cores."""
    WAITS = auto()
    """Beside those that compute, one after the other."""
    ALONE = auto()
    """When all others have ended: it measures."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the night, which runs in processes of its own.

    Attributes:
        name: What `make night PARTS=` calls it.
        proves: What holds if it passes.
        command: Its program and arguments.
        amount: How much is tried, for the table.
        limit_s: Seconds after which it is cut off, which is a failure.
        environment: Variables to set for it.
        lane: Beside which others it runs.
        needs: What it cannot run without.
        progress: Pattern whose last match in the output is how far it came: its last group.
        figure: Pattern whose last match in the output is its figure: its last group.
    """

    name: str
    proves: str
    command: tuple[str, ...]
    amount: str
    limit_s: int
    environment: dict[str, str] = field(default_factory=dict)
    lane: Lane = Lane.COMPUTES
    needs: tuple[Need, ...] = ()
    progress: str = PROGRESS
    figure: str = FIGURE


def make(target: str, arguments: str = "ARGS=") -> tuple[str, ...]:
    """Return the command line of a target of the Makefile.

    Without arguments of its own it would get those of the `make night` that started it.
    """
    return ("make", "--no-print-directory", target, arguments)


def module(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the command line of a module in this environment."""
    return (sys.executable, "-m", name, *arguments)
