"""The official tool, played by a script that is called java."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.bench import perf_test as module
from compat.bench.__main__ import main
from compat.bench.errors import BenchError
from compat.bench.machine import REPOSITORY
from compat.bench.perf_test import OPTIONS, measured, perf_test, split_rows
from compat.bench.rabbitmq import Rabbitmq
from compat.bench.scale import QUICK
from tests.unit.compat.bench.stand_in import StandIn

JAVA = f"""#!{sys.executable}
import os, sys
sys.path.insert(0, {str(REPOSITORY)!r})
from compat.bench.connection import Address, Connection
from compat.bench.latency import PingPong

def option(name):
    return sys.argv[sys.argv.index(name) + 1]

assert sys.argv[1] == "-jar" and os.path.isfile(sys.argv[2])
host, port = option("--uris").removeprefix("rabbitmq-stream://guest:guest@").split(":")
with Connection(Address(host, int(port))) as connection:
    connection.create(option("--streams"))
    ping = PingPong(connection, option("--streams"), 10)
    for _ in range(5):
        ping.publish()
        ping.await_confirm()
print("Starting producer")
"""
SUMMARY = (
    "Summary: published 20050 msg/s, confirmed 20049 msg/s, consumed 20048 msg/s, latency 95th 1 ms"
)
FULL = OPTIONS["perf_test_full"]


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the script, to be ended as a test needs it, and set the jar."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv(module.SETTING, __file__)
    script = tmp_path / "java"
    script.write_text(JAVA + f"print({SUMMARY!r})\n")
    script.chmod(0o755)
    return script


@pytest.fixture
def server() -> Iterator[tuple[StandIn, Rabbitmq]]:
    with StandIn() as stand_in:
        rabbitmq = Rabbitmq((stand_in.address.host, stand_in.address.port))
        rabbitmq.start()
        yield stand_in, rabbitmq


Servers = tuple[StandIn, Rabbitmq]


@pytest.mark.usefixtures("java")
def test_the_rate_is_the_consumers_and_the_stream_is_deleted(server: Servers) -> None:
    stand_in, rabbitmq = server
    results = measured(rabbitmq, QUICK, ["perf_test_20000"])
    figures = results.pop("perf_test_20000")
    assert results == {}
    assert (figures["rate"], figures["stored"]) == (20_048, 5)
    # The processes of the stand-in are those of this test.
    assert figures["cpu_s"] == pytest.approx(figures["cpu"] * 5 / 1e6)
    assert stand_in.streams == {}


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("raise SystemExit(3)", "ended with status 3: Starting producer"),
        ("print('Summary: none')", "printed no rates"),
        (f"print({SUMMARY.replace('20048', '0')!r})", "got 0 messages/s of 5"),
        ("import time; time.sleep(60)", "does not end after 0 s"),
    ],
)
def test_a_tool_that_fails_is_an_error(
    java: Path, server: Servers, monkeypatch: pytest.MonkeyPatch, end: str, reason: str
) -> None:
    java.write_text(f"{JAVA}{end}\n")
    if "time" in end:
        monkeypatch.setattr(module, "LIMIT_BESIDES_S", 1)
    with pytest.raises(BenchError, match=reason):
        perf_test(server[1], FULL, 0)


def test_rows_are_skipped_with_a_reason_where_the_tool_is_missing(
    java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ("drain_large", "perf_test_20000")
    assert split_rows(rows) == (rows, [])

    monkeypatch.setenv("PATH", str(java.parent / "none"))
    assert split_rows(rows) == (("drain_large",), ["perf_test_20000: java is not installed"])
    monkeypatch.setenv(module.SETTING, "/nowhere.jar")
    assert split_rows(rows)[1] == [
        "perf_test_20000: HUTCH_PERF_TEST names /nowhere.jar, which is no file"
    ]
    monkeypatch.delenv(module.SETTING)
    (line,) = split_rows(("perf_test_20000", "perf_test_full"))[1]
    assert line.startswith("perf_test_20000, perf_test_full: HUTCH_PERF_TEST is not set")
    assert split_rows(("drain_large",)) == (("drain_large",), [])


def test_a_run_of_nothing_else_ends_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(module.SETTING, raising=False)
    assert main(["--only", "perf_test_full"]) == 0
    assert capsys.readouterr().out.startswith("skipped perf_test_full: HUTCH_PERF_TEST")
