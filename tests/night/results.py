"""Results of the parts, kept in a file so that an interrupted night goes on, and their table."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from tests.night.part import ROOT, Part

PASSED: Final = "passed"
HEAD: Final = ("part", "result", "seconds", "figure", "load at its start")


@dataclass(frozen=True, slots=True)
class Result:
    """How a part ended.

    Attributes:
        said: `passed`, or in words what is wrong.
        seconds: How long it took.
        figure: What it measured or counted, as it printed it.
        load: Processes that wanted a core when it began, the average of a minute.
        day: When it ended, as in 2026-01-31.
        commit: What was tried.
    """

    said: str
    seconds: float
    figure: str
    load: float
    day: str
    commit: str

    @property
    def is_passed(self) -> bool:
        """True if nothing is wrong."""
        return self.said == PASSED


@dataclass(slots=True)
class Results:
    """All that is known of the parts, in a folder.

    Attributes:
        folder: Where `night.json` and `night.md` are, and the parts' output.
        commit: What is tried now; with a `+` if files differ from it.
        found: The latest result of each part.
    """

    folder: Path
    commit: str
    found: dict[str, Result] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Results:
        """Read what was found before; nothing if there is nothing."""
        results = cls(folder, tried_commit())
        if results._kept.exists():
            kept = json.loads(results._kept.read_text())
            results.found = {name: Result(**fields) for name, fields in kept.items()}
        return results

    @property
    def table(self) -> Path:
        """The file that has the table."""
        return self.folder / "night.md"

    @property
    def _kept(self) -> Path:
        return self.folder / "night.json"

    def of(self, part: Part) -> Result | None:
        """Return the part's result on what is tried now; None if it has to run."""
        result = self.found.get(part.name)
        is_same = result is not None and result.commit == self.commit
        return result if is_same and not self.commit.endswith("+") else None

    def add(self, part: Part, result: Result, parts: Sequence[Part], long: Sequence[Part]) -> None:
        """Keep a result, and write the table anew."""
        self.found[part.name] = result
        self.folder.mkdir(parents=True, exist_ok=True)
        new = self._kept.with_suffix(".new")
        new.write_text(
            json.dumps({name: asdict(each) for name, each in self.found.items()}, indent=1)
        )
        new.replace(self._kept)
        self.table.write_text(self.shown(parts, long))

    def shown(self, parts: Sequence[Part], long: Sequence[Part]) -> str:
        """Return the table in Markdown: the night's parts, then the last run of the long ones."""
        rows = [(part.name, *_cells(self.found.get(part.name), self.commit)) for part in parts]
        rows += [(f"{part.name} (long)", *_cells(self.found.get(part.name), None)) for part in long]
        lines = [HEAD, tuple("---" for _ in HEAD), *rows]
        body = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
        return f"The night of {self.commit}\n\n{body}"


def _cells(result: Result | None, commit: str | None) -> tuple[str, str, str, str]:
    """Return a part's cells; of a part of the night (`commit`) only what is of that commit."""
    if result is None or (commit is not None and result.commit != commit):
        return ("not yet", "", "", "")
    when = "" if commit is not None else f", {result.day} at {result.commit}"
    figure = result.figure.replace("|", "/")
    return (f"{result.said}{when}", f"{result.seconds:.0f}", figure, f"{result.load:.1f}")


def tried_commit() -> str:
    """Return the commit that is checked out, in short, with a `+` if files differ from it."""
    return _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--porcelain") else "")


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
