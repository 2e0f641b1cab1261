"""Pravega's own integration tests on Hutch: `python -m compat.pravega.java.own`.

They are compiled as they are against the client from Maven Central. What stands for Pravega's
servers in them (`compat/pravega/java-own/stands`) starts `hutch store serve`. Tests that need parts
of those servers themselves cannot be compiled so, and are listed with the reason.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from compat import pravega
from compat.clients.programs import Program, Unavailable
from compat.clients.servers import environment
from compat.suites.sources import SOURCES, how
from compat.suites.sources import folder as checkout_folder

PARTS: Final = Program(
    "Pravega's tests", "java-own", ("java", "javac", "mvn"), parent=Path(pravega.__file__).parent
)
SUITE: Final = "pravega"
TESTS: Final = Path("test/integration/src/test/java")
COMMON: Final = ("test/testcommon/src/main/java", "client/src/test/java")
PACKAGE: Final = "io/pravega/test/integration/"
OURS: Final = ("PravegaResource.java", "TestingServerStarter.java")
"""Files of the checkout that ours stand for."""
COMPILE_S: Final = 300.0
CLASS_S: Final = 400.0
OFTEN: Final = {
    "HUTCH_WIRE__RETENTION_INTERVAL_S": "1",
    "HUTCH_WIRE__WATERMARK_INTERVAL_S": "1",
}
"""Settings of the servers: the tests set Pravega's so that they need not wait."""
USAGE_ERROR: Final = 2
SERVER: Final = "needs parts of Pravega's server in its own process: "
LEFT_OUT: Final = {
    "AppendTest": SERVER + "its writer to storage",
    "AutoCheckpointTest": SERVER + "its data log",
    "BatchClientAuthTest": SERVER + "its users and their file",
    "ClusterWrapperTest": SERVER + "its REST interface",
    "ControllerFailoverTest": SERVER + "its sessions with ZooKeeper",
    "ControllerGrpcListStreamsTest": SERVER + "its plugin for users",
    "ControllerMetricsTest": SERVER + "its metrics",
    "ControllerRestApiTest": SERVER + "its REST interface",
    "ControllerServiceTest": SERVER + "its metadata store",
    "ControllerWatermarkingTest": SERVER + "its metadata store",
    "DebugStreamSegmentsTest": SERVER + "its event processors",
    "DelegationTokenTest": SERVER + "its cluster with users",
    "EndToEndStatsTest": SERVER + "its metrics",
    "EndToEndTransactionOrderTest": SERVER + "its settings",
    "EventProcessorTest": SERVER + "its event processors",
    "LargeEventTest": SERVER + "its store, to seal a segment",
    "MetricsTest": SERVER + "its metrics",
    "MultiReadersEndToEndTest": SERVER + "its set-up of clusters",
    "ReadFromDeletedStreamTest": SERVER + "its settings",
    "ReadTest": SERVER + "its store, to read without a client",
    "ReadWithReadPermissionsTest": SERVER + "its cluster with users",
    "RestoreBackUpDataRecoveryTest": SERVER + "its containers and their recovery",
    "SecureControllerRestApiTest": SERVER + "its REST interface",
    "SingleThreadEndToEndTest": SERVER + "its set-up of clusters",
    "StreamMetadataTest": SERVER + "the statuses of its service",
    "StreamMetricsTest": SERVER + "its metrics",
}
"""Test classes that are not run."""
EXPECTED: Final = {
    "KeyValueTableTest.testCreateDeleteKeyValueTable": SERVER + "its store of tables",
    "KeyValueTableTest.testCreateListKeyValueTable": SERVER + "its store of tables",
    "EndToEndTxnWithTest.testTxnConfig": SERVER + "the exception of a controller there",
}
"""Tests that fail, and why."""
_LINE: Final = re.compile(r"(passed|failed|skipped) (\S+) ?(.*)")


class Outcome(NamedTuple):
    """End of a test, and why it failed."""

    name: str
    how: str
    why: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests and print how they ended; return 1 if one failed that is not expected to."""
    options = parser().parse_args(arguments)
    if not (options.checkout / TESTS).is_dir():
        print(f"{options.checkout} has no {TESTS}: not run: {how(SUITE)}", file=sys.stderr)
        return USAGE_ERROR
    with tempfile.TemporaryDirectory(prefix="hutch-pravega-own-") as folder:
        try:
            path = compiled(options.checkout, Path(folder))
        except Unavailable as error:
            print(error, file=sys.stderr)
            return 1
        found = [
            each
            for name in classes(options.checkout)
            if re.search(options.only, name)
            for each in ran(name, path, Path(folder))
        ]
    return report(found)


def parser() -> argparse.ArgumentParser:
    """Return the command line's grammar."""
    top = argparse.ArgumentParser(
        prog="python -m compat.pravega.java.own", description=(__doc__ or "").partition("\n\n")[2]
    )
    top.add_argument(
        "--checkout",
        type=Path,
        default=checkout_folder(SUITE),
        help=f"Pravega's sources, {SOURCES[SUITE].version} (default: %(default)s)",
    )
    top.add_argument("--only", default="", metavar="REGEX", help="classes with such a name")
    return top


def classes(checkout: Path) -> list[str]:
    """Return the names of the test classes that are run."""
    return sorted(
        str(path.relative_to(checkout / TESTS)).removesuffix(".java").replace("/", ".")
        for path in (checkout / TESTS).rglob("*Test.java")
        if path.stem not in LEFT_OUT and not path.stem.startswith("Abstract")
    )


def compiled(checkout: Path, folder: Path) -> str:
    """Compile the tests; return the class path. Raises Unavailable."""
    parts = Path(PARTS.command()[0]).parent
    libraries = f"{parts}/lib/*"
    common = [path for each in COMMON for path in sources(checkout / each)]
    _javac([*sources(parts / "stands"), *common], folder / "common", libraries)
    tests = [path for path in sources(checkout / TESTS) if path.stem not in LEFT_OUT]
    path = f"{folder}/common:{libraries}"
    _javac(tests, folder / "tests", path)
    return f"{folder}/tests:{path}"


def sources(folder: Path) -> list[Path]:
    """Return Java's sources in a folder, without those that ours stand for."""
    is_ours = folder.name == "stands"
    skipped = re.compile("Jwt|SecurityConfigDefaults")
    return [
        path
        for path in sorted(folder.rglob("*.java"))
        if is_ours or not (path.name in OURS or skipped.search(path.name))
    ]


def _javac(files: Sequence[Path], out: Path, path: str) -> None:
    done = subprocess.run(
        ["javac", "-nowarn", "-Xlint:none", "-cp", path, "-d", str(out), *map(str, files)],
        capture_output=True,
        text=True,
        timeout=COMPILE_S,
        check=False,
    )
    if done.returncode:
        raise Unavailable(f"Pravega's tests cannot be compiled: {done.stderr[-3_000:]}")


def ran(name: str, path: str, folder: Path) -> Iterator[Outcome]:
    """Run a class of tests in a process of its own; yield how each ended, and print it."""
    hutch = f"{sys.executable} -m gateway"
    log = folder / f"{name}.log"
    command = ["java", "-Xmx1g", "-cp", path, f"-Dhutch={hutch}", f"-Dfolder={folder}"]
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*command, "hutch.Main", name],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env=environment() | OFTEN,
        )
        try:
            process.wait(CLASS_S)
        except subprocess.TimeoutExpired:
            yield Outcome(name.rpartition(".")[2], "failed", f"not ended in {CLASS_S:.0f} s")
        finally:
            process.terminate()
            process.wait()
    for line in log.read_text(errors="replace").splitlines():
        if found := _LINE.fullmatch(line):
            outcome = Outcome(found[2], found[1], found[3])
            print(outcome.how, outcome.name, outcome.why[:300], flush=True)
            yield outcome


def report(found: Sequence[Outcome]) -> int:
    """Print what failed and the numbers; return the exit status."""
    for name, why in sorted(LEFT_OUT.items()):
        print(f"left out  {name}: {why}")
    failed = [each for each in found if each.how == "failed"]
    for each in failed:
        reason = EXPECTED.get(each.name)
        print(f"{'expected' if reason else 'FAILED  '}  {each.name}: {reason or each.why[:500]}")
    counts = {
        how: sum(each.how == how for each in found) for how in ("passed", "failed", "skipped")
    }
    numbers = ", ".join(f"{count} {how}" for how, count in counts.items())
    print(f"{len(found)} tests, {numbers}; {len(LEFT_OUT)} classes left out")
    return 1 if any(each.name not in EXPECTED for each in failed) or not found else 0


if __name__ == "__main__":
    sys.exit(main())
