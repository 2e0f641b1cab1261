"""Measures how much of each module the tests of its room reach: `make coverage`.

A room is a folder of sources. Its tests are the folder of the same name under tests/unit, and some
that start a server, for what has a meaning only there; what other tests reach besides does not
count. The process of the tests runs everything uncompiled, since a compiled module has no lines.
Arguments are those of pytest; `--room NAME` measures one room, and may come again.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
PRODUCT: Final = ("gateway", "hutch", "pyspark_hutch", "store")
LINES_MIN: Final = 90.0
"""The least of a module's lines, in percent."""
BELOW_MAX: Final = 10
"""The most modules that may have less."""
TIMEOUT_S: Final = 600
"""Limit of one test: it takes several times as long while its lines are counted."""
LEFT_OUT: Final = "not bench and not soak and not rabbitmq"
"""Tests that measure, or need a real broker."""
WORST_COUNT: Final = 10
"""Files that are named of a room with too little coverage."""


@dataclass(frozen=True, slots=True)
class Room:
    """A folder of sources, with the tests that hold it.

    Attributes:
        folder: The sources, with the folders below it that are no rooms of their own.
        beside: Tests that hold it, beside those under tests/unit.
        percent_min: The least of all its lines and branches together.
    """

    folder: str
    beside: tuple[str, ...] = ()
    percent_min: float = 0.0

    @property
    def sources(self) -> list[Path]:
        """The modules of the room."""
        return [path for path in _modules(ROOT / self.folder) if room_of(path) is self]

    @property
    def tests(self) -> list[str]:
        """The arguments by which pytest runs its tests."""
        inner = [room.folder for room in ROOMS if room.folder.startswith(f"{self.folder}/")]
        return [
            f"tests/unit/{self.folder}",
            *(f"tests/{each}" for each in self.beside),
            *(f"--ignore=tests/unit/{each}" for each in inner),
        ]


ROOMS: Final = (
    Room(
        "gateway",
        beside=(
            "integration/test_lifecycle.py",
            "integration/test_wrong_settings.py",
        ),
    ),
    Room("gateway/bridge"),
    Room(
        "gateway/broker",
        beside=(
            "integration/test_management.py",
            "integration/test_management_changes.py",
            "integration/test_management_operations.py",
            "integration/test_management_publish.py",
            "unit/gateway/stream/test_link_access.py",
        ),
    ),
    Room(
        "gateway/commands",
        beside=(
            "integration/pravega/test_store_check.py",
            "integration/pravega/test_store_serve.py",
            "integration/test_lifecycle.py",
            "integration/test_store_check.py",
        ),
    ),
    Room("gateway/grpc"),
    Room("gateway/log", percent_min=95.0),
    Room(
        "gateway/management",
        beside=(
            "integration/test_admin.py",
            "integration/test_definitions.py",
            "integration/test_management.py",
            "integration/test_management_changes.py",
            "integration/test_management_lists.py",
            "integration/test_management_matrix.py",
            "integration/test_management_operations.py",
            "integration/test_management_publish.py",
            "integration/test_management_refusals.py",
            "integration/test_management_strict.py",
            "integration/test_management_watching.py",
            "integration/test_tls.py",
            "integration/test_users.py",
        ),
    ),
    Room(
        "gateway/mewbase",
        beside=(
            "integration/mewbase/test_binders.py",
            "integration/mewbase/test_connecting.py",
            "integration/mewbase/test_durable.py",
            "integration/mewbase/test_later_clients.py",
            "integration/mewbase/test_publishing.py",
            "integration/mewbase/test_queries.py",
            "integration/mewbase/test_rights.py",
            "integration/mewbase/test_serve.py",
            "integration/mewbase/test_subscribing.py",
            "integration/mewbase/test_transactions.py",
        ),
    ),
    Room("gateway/network"),
    Room(
        "gateway/pravega",
        beside=(
            "integration/pravega/test_administration.py",
            "integration/pravega/test_byte_streams.py",
            "integration/pravega/test_early.py",
            "integration/pravega/test_events.py",
            "integration/pravega/test_key_value_tables.py",
            "integration/pravega/test_reader_groups.py",
            "integration/pravega/test_retention.py",
            "integration/pravega/test_scopes_shown.py",
            "integration/pravega/test_store_check.py",
            "integration/pravega/test_store_serve.py",
            "integration/pravega/test_times.py",
            "integration/pravega/test_groups_shown.py",
            "integration/pravega/test_rights.py",
            "integration/pravega/test_room.py",
            "integration/pravega/test_user_rights.py",
            "integration/pravega/test_users.py",
            "unit/gateway/commands/test_store_check_pravega.py",
        ),
    ),
    Room(
        "gateway/server",
        beside=(
            "integration/test_logins.py",
            "integration/test_tls.py",
        ),
    ),
    Room(
        "gateway/serving",
        beside=(
            "integration/cluster",
            "integration/pravega/test_store_serve.py",
            "integration/pravega/test_users.py",
            "integration/test_lifecycle.py",
            "integration/test_no_space.py",
            "integration/test_ownership.py",
            "integration/test_retention.py",
        ),
    ),
    Room(
        "gateway/settings",
        beside=("integration/test_wrong_settings.py",),
    ),
    Room(
        "gateway/stream",
        beside=("integration/test_lifecycle.py",),
        percent_min=95.0,
    ),
    Room(
        "hutch",
        beside=("integration/mewbase/test_client.py",),
    ),
    Room(
        "hutch/client",
        beside=("integration/test_client.py",),
    ),
    Room("hutch/formats", percent_min=95.0),
    Room("hutch/pravega", percent_min=95.0),
    Room("hutch/stream", percent_min=95.0),
    Room(
        "pyspark_hutch",
        beside=(
            "integration/pyspark_hutch",
            "spark",
        ),
    ),
    Room(
        "store",
        beside=("conformance",),
        percent_min=95.0,
    ),
)


def room_of(module: Path) -> Room:
    """Return the room of a module: that of the innermost folder. Raises KeyError: it has none."""
    rooms = {room.folder: room for room in ROOMS}
    for folder in module.relative_to(ROOT).parents:
        if found := rooms.get(str(folder)):
            return found
    raise KeyError(str(module))


def modules() -> Iterator[Path]:
    """Yield the modules of the product that have lines to reach."""
    for folder in PRODUCT:
        yield from _modules(ROOT / folder)


def _modules(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.py")):
        if path.name != "__init__.py" and not path.stem.endswith(("_pb2", "_pb2_grpc")):
            yield path


def measured(room: Room, arguments: Sequence[str], folder: Path) -> dict[str, Any]:
    """Run the tests of a room.

    Returns:
        coverage.py's report: `totals`, and `files` by their names.

    Raises:
        subprocess.CalledProcessError: A test failed; pytest has told which.
    """
    coverage = (sys.executable, "-m", "coverage")
    limit = f"--timeout={TIMEOUT_S}"
    pytest = ("-m", "pytest", "-qrfE", limit, "-m", LEFT_OUT, *room.tests, *arguments)
    name = room.folder.replace("/", "-")
    report = folder / f"{name}.json"
    included = ",".join(str(path.relative_to(ROOT)) for path in room.sources)
    environment = {
        **os.environ,
        "COVERAGE_FILE": str(folder / f"{name}.data"),
        "HUTCH_REQUIRE_ALL": "0",  # tests of compiled modules are skipped
        "HUTCH_UNCOMPILED": "all",
        "PYTHONPATH": str(ROOT),  # where Spark looks for data sources, and its workers for modules
    }
    for command in (
        ("run", f"--source={room.folder}", *pytest),
        ("combine", "--quiet"),
        ("json", "--quiet", f"--include={included}", "-o", str(report)),
    ):
        subprocess.run([*coverage, *command], cwd=ROOT, env=environment, check=True)
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def below(report: dict[str, Any]) -> list[str]:
    """Return a line for each module of which too few lines were reached."""
    rows = []
    for name, file in report["files"].items():
        count, covered = (file["summary"][key] for key in ("num_statements", "covered_lines"))
        percent = 100 * covered / count if count else 100.0
        if percent < LINES_MIN:
            rows.append(f"  {percent:5.1f} %  {name}  lines {file['missing_lines']}")
    return rows


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


def main(words: Sequence[str]) -> int:
    """Measure each room and return the exit status: not 0 where too little was reached."""
    names = [room.folder for room in ROOMS]
    parser = argparse.ArgumentParser(prog="make coverage", description=__doc__)
    parser.add_argument("--room", action="append", choices=names, metavar="NAME")
    options, arguments = parser.parse_known_args(words)
    rows = ["", "lines and branches"]
    lacking: list[str] = []
    enough = True
    with tempfile.TemporaryDirectory() as folder:
        for room in ROOMS:
            if room.folder not in (options.room or names):
                continue
            try:
                report = measured(room, arguments, Path(folder))
            except subprocess.CalledProcessError as error:
                return error.returncode
            percent = report["totals"]["percent_covered"]
            bound = f"of {room.percent_min:.0f}" if room.percent_min else ""
            rows.append(f"{percent:6.2f} % {bound:5}  {room.folder}")
            lacking += below(report)
            if percent < room.percent_min:
                enough = False
                rows += worst(report)
    title = f"modules below {LINES_MIN:.0f} % of their lines: {len(lacking)}"
    rows += [f"{title}, at most {BELOW_MAX}", *lacking, ""]
    sys.stdout.write("\n".join(rows))
    return 0 if enough and len(lacking) <= BELOW_MAX else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
