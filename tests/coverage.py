"""Measures how much of a part its own tests reach: `make coverage`.

A part is a folder of sources, and its own tests are the folder of the same name under tests/unit;
what other tests reach besides does not count. Everything runs uncompiled, since a compiled module
has no lines. Arguments are those of pytest.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
PERCENT_MIN: Final = 95.0
TIMEOUT_S: Final = 180
"""Limit of one test: it takes several times as long while its lines are counted."""
WORST_COUNT: Final = 10
"""Files that are named of a part with too little coverage."""


@dataclass(frozen=True, slots=True)
class Part:
    """A folder of sources that is measured by itself."""

    name: str
    folder: str
    without: tuple[str, ...] = ()
    """Folders in it that are parts of their own."""

    @property
    def tests(self) -> list[str]:
        """The arguments by which pytest runs the part's own tests."""
        own = f"tests/unit/{self.folder}"
        return [own, *(f"--ignore={own}/{each}" for each in self.without)]


PARTS: Final = (
    Part("wire", "hutch/stream"),
    Part("stream", "gateway/stream"),
    Part("formats", "hutch/formats"),
    Part("log", "gateway/log"),
    Part("store", "store", without=("wire",)),
    Part("pravega", "hutch/pravega"),
)


def measured(part: Part, arguments: Sequence[str], folder: Path) -> dict[str, Any]:
    """Run a part's own tests.

    Returns:
        coverage.py's report: `totals`, and `files` by their names.

    Raises:
        subprocess.CalledProcessError: A test failed; pytest has told which.
    """
    coverage = (sys.executable, "-m", "coverage")
    pytest = ("-m", "pytest", "-qrfE", f"--timeout={TIMEOUT_S}", *part.tests, *arguments)
    report = folder / f"{part.name}.json"
    omitted = ",".join(f"{part.folder}/{each}/*" for each in part.without)
    environment = {
        **os.environ,
        "COVERAGE_FILE": str(folder / f"{part.name}.data"),
        "HUTCH_REQUIRE_ALL": "0",  # tests of compiled modules are skipped
        "HUTCH_UNCOMPILED": "all",
    }
    for command in (
        ("run", f"--source={part.folder}", f"--omit={omitted}", *pytest),
        ("combine", "--quiet"),
        ("json", "--quiet", f"--omit={omitted}", "-o", str(report)),
    ):
        subprocess.run([*coverage, *command], cwd=ROOT, env=environment, check=True)
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def worst(report: dict[str, Any]) -> list[str]:
    """Return a line for each of the files that miss most, with what they miss."""
    files = sorted(report["files"].items(), key=lambda item: -_missed(item[1]["summary"]))
    return [
        f"  {file['summary']['percent_covered']:5.1f} %  {name}"
        f"  lines {file['missing_lines']} branches {file['missing_branches']}"
        for name, file in files[:WORST_COUNT]
        if _missed(file["summary"])
    ]


def _missed(summary: dict[str, int]) -> int:
    return summary["missing_lines"] + summary["missing_branches"]


def main(arguments: Sequence[str]) -> int:
    """Measure each part and return the exit status: not 0 where too little was reached."""
    rows: list[str] = []
    enough = True
    with tempfile.TemporaryDirectory() as folder:
        for part in PARTS:
            try:
                report = measured(part, arguments, Path(folder))
            except subprocess.CalledProcessError as error:
                return error.returncode
            percent = report["totals"]["percent_covered"]
            rows.append(f"{percent:6.2f} %  {part.name:8}  {part.folder}")
            if percent < PERCENT_MIN:
                enough = False
                rows += worst(report)
    sys.stdout.write(
        "\n".join(["", f"at least {PERCENT_MIN:.0f} %, lines and branches", *rows, ""])
    )
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
