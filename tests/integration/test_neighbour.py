"""A server that computes for long in one turn is found out; one that has to wait is not blamed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.conftest import StartServer
from tests.integration.neighbour import Neighbour
from tests.integration.server import HutchServer
from tests.integration.turns import TICK_S, Turns
from tests.waiting import wait_until

HELD_UP_S = 1.5
SERVE_AND_COMPUTE = """
import sys, time
from pathlib import Path

from gateway.__main__ import main
from gateway.serving.process import Process
from tests.integration.turns import Ticks

ticks, asked = Ticks(Path(sys.argv.pop(1))), Path(sys.argv.pop(1))
start = Process.start

async def start_and_compute(server):
    await start(server)
    compute_if_asked(server._loop)

def compute_if_asked(loop):
    if asked.exists():
        end_s = time.thread_time() + float(asked.read_text())
        while time.thread_time() < end_s:
            pass
        asked.unlink()
    loop.call_later(0.01, compute_if_asked, loop)

Process.start = start_and_compute
sys.exit(main())
"""


class Computing(HutchServer):
    """A server whose loop computes for as long as it is asked to."""

    @property
    def asked_path(self) -> Path:
        return self.data_dir.with_suffix(".asked")

    def _command(self) -> list[str]:
        python, _, _, *arguments = super()._command()
        paths = str(self.turns_path), str(self.asked_path)
        return [python, "-c", SERVE_AND_COMPUTE, *paths, *arguments]

    def compute(self, seconds: float) -> None:
        new = self.asked_path.with_suffix(".new")
        new.write_text(str(seconds))
        new.rename(self.asked_path)
        wait_until(lambda: not self.asked_path.exists())


@pytest.fixture
def computing(tmp_path: Path) -> Iterator[Computing]:
    with Computing(tmp_path / "data", is_typed=True) as server:
        yield server


@contextmanager
def busy_machine() -> Iterator[None]:
    """Keep every core busy."""
    command = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def test_a_server_that_computes_in_its_loop_is_found_out(computing: Computing) -> None:
    with pytest.raises(AssertionError, match=r"computed for 1\.5\d\d s in one turn"):  # noqa: SIM117
        with Neighbour(computing):
            computing.compute(HELD_UP_S)


def test_the_longest_turn_is_told_to_the_tick_also_on_a_busy_machine(computing: Computing) -> None:
    with busy_machine():
        for seconds in (0.2, 0.05):  # the second is not hidden, or raised, by the first
            with Turns(computing) as turns:
                computing.compute(seconds)
                assert seconds <= turns.longest_s < seconds + 4 * TICK_S


def test_a_server_that_is_stopped_is_not_blamed(start_server: StartServer) -> None:
    server = start_server()
    with Neighbour(server):
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(HELD_UP_S)
        server.process.send_signal(signal.SIGCONT)


def test_a_server_that_waits_for_a_processor_is_not_blamed(start_server: StartServer) -> None:
    server = start_server()
    with Neighbour(server) as neighbour, busy_machine():
        time.sleep(HELD_UP_S)
        assert neighbour.longest_turn_s < 4 * TICK_S
