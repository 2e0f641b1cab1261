"""The official stream-perf-test as the generator: the rates that it prints, and the server's CPU.

It is a program of its own that is not part of this repository. HUTCH_PERF_TEST names its jar.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from compat.bench.connection import Address, Connection
from compat.bench.errors import BenchError
from compat.bench.jobs import Figures
from compat.bench.ordinary_rows import PERF_TEST_PACE
from compat.bench.scale import Scale
from compat.bench.servers import Server
from compat.bench.steps import STREAM, Results, Step
from compat.bench.stopwatch import Stopwatch

SETTING: Final = "HUTCH_PERF_TEST"
# From the start of Java to the first message, and from the last one to its end.
LIMIT_BESIDES_S: Final = 60
SUMMARY: Final = re.compile(
    r"^Summary: published (\d+) msg/s, confirmed (\d+) msg/s, consumed (\d+) msg/s", re.MULTILINE
)
PRINTED_MAX: Final = 500
# By row. One producer and one consumer are its default.
OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "perf_test_20000": ("--rate", str(PERF_TEST_PACE), "--batch-size", "1"),
    "perf_test_full": ("--size", "100"),
}


def why_not() -> str:
    """Return the reason that stream-perf-test cannot be run here; empty if it can."""
    jar = os.environ.get(SETTING, "")
    if not jar:
        return f"{SETTING} is not set; it names the jar of the official stream-perf-test"
    if not Path(jar).is_file():
        return f"{SETTING} names {jar}, which is no file"
    if shutil.which("java") is None:
        return "java is not installed"
    return ""


def perf_test(server: Server, options: Sequence[str], seconds: int) -> Figures:
    """Let stream-perf-test publish to a new stream and consume it for so long.

    Returns:
        `rate`, the consumer's as it prints it, over all of the time; `cpu_s`, what the server used
        meanwhile, and `cpu`, the same for a million of stored messages.

    Raises:
        BenchError: It failed, took too long, or printed no rates; or nothing was consumed.
    """
    with Connection(server.address) as admin:
        admin.delete_if_there(STREAM)
    stopwatch = Stopwatch(server.pids)
    with stopwatch:
        printed = _printed(server.address, options, seconds)
    found = SUMMARY.search(printed)
    if found is None:
        raise BenchError(f"stream-perf-test printed no rates: {printed.strip()[-PRINTED_MAX:]}")
    consumed = float(found[3])
    with Connection(server.address) as admin:
        count = admin.stream_stats(STREAM)["committed_offset"] + 1
        admin.delete(STREAM)
    if not consumed or count <= 0:
        raise BenchError(f"stream-perf-test got {consumed:.0f} messages/s of {count} that it sent")
    figures = stopwatch.figures(count) | {"rate": consumed, "stored": float(count)}
    if "cpu" in figures:
        figures["cpu_s"] = figures["cpu"] * count / 1e6
    # It has many threads: their time says nothing of whether they were the limit.
    del figures["generator_share"]
    return figures


def _printed(address: Address, options: Sequence[str], seconds: int) -> str:
    user = f"{address.user}:{address.password}"
    command = [
        *("java", "-jar", str(Path(os.environ[SETTING]).resolve())),
        *("--uris", f"rabbitmq-stream://{user}@{address.host}:{address.port}"),
        *("--streams", STREAM),
        *("--time", str(seconds)),
        *options,
    ]
    with tempfile.TemporaryDirectory(prefix="perf-test-") as folder:
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=seconds + LIMIT_BESIDES_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"stream-perf-test does not end after {seconds} s") from error
    if done.returncode != 0:
        said = done.stdout.strip()[-PRINTED_MAX:]
        raise BenchError(f"stream-perf-test ended with status {done.returncode}: {said}")
    return done.stdout


def measured(server: Server, scale: Scale, wanted: Collection[str]) -> Results:
    """Run stream-perf-test with the options of each row."""
    return {
        row: perf_test(server, options, scale.perf_test_s)
        for row, options in OPTIONS.items()
        if row in wanted
    }


PERF_TEST_STEPS: Final = tuple(Step((row,), measured) for row in OPTIONS)
