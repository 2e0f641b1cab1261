import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from compat.bench.stopwatch import Stopwatch
from compat.bench.usage import (
    cpu_seconds,
    listeners_on,
    machine_busy_seconds,
    memory_of,
    tree_of,
)

SPIN = "import time\nwhile time.process_time() < 0.2: pass\nprint('spun', flush=True)\ninput()"
HELD_BYTES = 64 << 20
# Pages of their own, not what somebody gave back before.
HOLD = f"""
import mmap
held = mmap.mmap(-1, {HELD_BYTES})
input("begun\\n")
held.write(b"x" * len(held))
input("held\\n")
"""
SPIN_IN_CHILD = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {SPIN!r}])"


@pytest.mark.parametrize("program", [SPIN, SPIN_IN_CHILD])
def test_a_stopwatch_counts_the_cpu_time_of_a_server_and_its_children(program: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        pids = tree_of([process.pid])
        assert 0.2 <= cpu_seconds(pids) < 2
        process.communicate(b"\n")
    assert len(pids) == (1 if program is SPIN else 2)


def test_the_cpu_clock_agrees_with_the_stat_file() -> None:
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    ticks = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    assert cpu_seconds([os.getpid()]) == pytest.approx(ticks, abs=0.05)


def test_processes_that_have_ended_use_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert cpu_seconds([process.pid]) == 0
    assert memory_of([process.pid]) == (0, 0)


def test_memory_grows_with_what_a_process_holds() -> None:
    # A process of its own: what this one shares with those it forked becomes its alone as they end.
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        before = memory_of([process.pid])
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        grown = memory_of([process.pid]).pss - before.pss
        process.communicate(b"\n")
    assert grown == pytest.approx(HELD_BYTES, rel=0.2)
    assert 0 < before.pss <= before.rss


def test_the_process_that_listens_on_a_port_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert listeners_on(port) == [os.getpid()]
    assert listeners_on(port) == []


def test_a_stopwatch_tells_server_generator_and_others_apart() -> None:
    watch = Stopwatch([os.getpid()])
    busy = machine_busy_seconds()
    with watch:
        sum(range(3_000_000))
    figures = watch.figures(1_000_000)
    assert figures["rate"] == pytest.approx(1e6 / figures["seconds"])
    # This process is server and generator at once here.
    assert figures["cpu"] == pytest.approx(
        figures["generator_share"] * figures["seconds"], rel=0.2, abs=0.01
    )
    assert figures["others_share"] >= 0
    assert machine_busy_seconds() >= busy


def test_a_stopwatch_without_processes_says_nothing_of_the_server() -> None:
    watch = Stopwatch([])
    with watch:
        pass
    assert set(watch.figures(1)) == {"rate", "seconds", "generator_share"}
