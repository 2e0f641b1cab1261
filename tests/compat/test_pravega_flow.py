"""Writers and a group of readers by Pravega's Java client, through kills and scaling.

The program checks that each key's events come once and in order; the night has more of all.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest

from compat import pravega
from compat.broker.ways import REQUIRE_VARIABLE
from compat.clients.programs import Program, Unavailable
from gateway.pravega.controller.rpc import controller_pb2 as pb
from tests.controller_client import ControllerClient
from tests.integration.pravega.conftest import controller_port
from tests.integration.server import StoreProcess
from tests.waiting import wait_until

IS_WHOLE: Final = float(os.environ.get("HUTCH_TEST_FACTOR") or 1) > 1
EVENTS, TRANSACTIONS, KILLS = (50_000, 300, 10) if IS_WHOLE else (15_000, 40, 3)
SCALED_EVENTS: Final = 100_000 if IS_WHOLE else 10_000
MINUTE_MS: Final = 150
END_S: Final = 120.0
SCOPE, STREAM = "mine", "flow"
FLOW: Final = Program(
    "Pravega's Java client",
    "java-flow",
    ("java", "javac", "mvn"),
    parent=Path(pravega.__file__).parent,
)
_COUNT: Final = re.compile(r"(\w+) (\d+)")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Flow:
    """The program, at work on a stream of a server."""

    def __init__(self, command: list[str], port: int, output: Path) -> None:
        self._output = output
        with output.open("wb") as said:
            self._process = subprocess.Popen(
                [*command, f"tcp://127.0.0.1:{port}", SCOPE, STREAM],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def tell(self, command: str) -> None:
        """Send a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n".encode())
        self._process.stdin.flush()

    def counts(self) -> Mapping[str, int]:
        """Return what it has counted; it has to be at work."""
        said = self._output.read_text()
        assert self._process.poll() is None, said[-4_000:]
        return {name: int(count) for name, count in _COUNT.findall(said)}

    def wait_for(self, name: str, count: int) -> None:
        """Wait until it has counted so much of something."""
        wait_until(lambda: self.counts().get(name, 0) >= count, END_S)

    def end(self) -> Mapping[str, int]:
        """Let it end; return its last counts."""
        self.tell("end")
        self._process.wait(END_S)
        said = self._output.read_text()
        assert self._process.returncode == 0, said[-4_000:]
        return {name: int(count) for name, count in _COUNT.findall(said)}


def check(counts: Mapping[str, int]) -> None:
    """Check that nothing is wrong with what was read."""
    wrong = {name: counts[name] for name in ("missing", "again", "disordered", "unwanted")}
    assert not any(wrong.values()), wrong
    assert counts["read"] == counts["written"] + 3 * counts["committed"]


@pytest.fixture(scope="module")
def command() -> list[str]:
    """Return what runs the program; skip with the reason where it cannot be had."""
    try:
        return FLOW.command()
    except Unavailable as error:
        if os.environ.get(REQUIRE_VARIABLE) == "1":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StoreProcess]:
    """A server that keeps its ports, on which a minute of scaling is short."""
    environment = {"HUTCH_WIRE__SCALING_MINUTE_MS": str(MINUTE_MS)}
    data = tmp_path / "data"
    with StoreProcess(data, "--controller-port", "0", environment=environment) as server:
        server.arguments = ("--controller-port", str(controller_port(server)))
        yield server


def create(server: StoreProcess, scaling: pb.ScalingPolicy) -> None:
    """Make the stream."""
    config = pb.StreamConfig(
        streamInfo=pb.StreamInfo(scope=SCOPE, stream=STREAM), scalingPolicy=scaling
    )
    with ControllerClient(controller_port(server)) as client:
        client.ask("createScope", pb.ScopeInfo(scope=SCOPE))
        assert client.ask("createStream", config).status == pb.CreateStreamStatus.SUCCESS


def open_segments(server: StoreProcess) -> int:
    """Return how many segments of the stream are written now."""
    with ControllerClient(controller_port(server)) as client:
        now = client.ask("getCurrentSegments", pb.StreamInfo(scope=SCOPE, stream=STREAM))
    return len(now.segmentRanges)


def test_nothing_is_lost_or_comes_twice_through_kills(
    server: StoreProcess, command: list[str], tmp_path: Path
) -> None:
    create(server, pb.ScalingPolicy(minNumSegments=4))
    with Flow(command, controller_port(server), tmp_path / "flow") as flow:
        flow.tell("rate 2000")
        flow.tell(f"transactions {TRANSACTIONS}")
        for number in range(KILLS):
            flow.wait_for("written", EVENTS * (number + 1) // (KILLS + 1))
            server.kill()
            time.sleep(0.2)
            server.start()
        flow.wait_for("written", EVENTS)
        check(counts := flow.end())
    assert counts["committed"] + counts["aborted"] == TRANSACTIONS
    assert counts["written"] >= EVENTS


def test_events_keep_their_order_while_a_policy_splits_and_merges(
    server: StoreProcess, command: list[str], tmp_path: Path
) -> None:
    by_events = pb.ScalingPolicy.BY_RATE_IN_EVENTS_PER_SEC
    policy = pb.ScalingPolicy(scaleType=by_events, targetRate=200, scaleFactor=3, minNumSegments=2)
    create(server, policy)
    with Flow(command, controller_port(server), tmp_path / "flow") as flow:
        for most in (SCALED_EVENTS // 2, SCALED_EVENTS):
            flow.tell("rate 4000")
            wait_until(lambda: open_segments(server) > 4, END_S)
            flow.wait_for("written", most)
            flow.tell("rate 40")
            wait_until(lambda: open_segments(server) == 2, END_S)
        check(counts := flow.end())
    assert counts["written"] >= SCALED_EVENTS
    lines = [each for each in server.logs.splitlines() if "scaled by the policy" in each]
    assert all(f"stream={SCOPE}/{STREAM} segments=" in each for each in lines)
    assert any(re.search(r"into=[23] .*above \d+ times 200", each) for each in lines)
    assert any("into=1 " in each and "each below 200" in each for each in lines)
