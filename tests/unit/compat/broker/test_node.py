"""The end of a node, shown with processes that stand in for one."""

import ctypes
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat.broker import Ports, node
from compat.broker.processes import descendants, described, start_ticks
from compat.broker.records import Process, Record
from compat.broker.running import NotEnded
from compat.debian import SHUT_IN
from tests.waiting import HANG_S

SET_SUBREAPER, GET_SUBREAPER = 36, 37  # of prctl(2)
LONG = ("sleep", "1000")


@pytest.fixture
def adopting() -> Iterator[None]:
    """Orphans below this process become its children, as in a process of the tests."""
    prctl = ctypes.CDLL(None).prctl
    was = ctypes.c_int()
    prctl(GET_SUBREAPER, ctypes.byref(was), 0, 0, 0)
    prctl(SET_SUBREAPER, 1, 0, 0, 0)
    yield
    prctl(SET_SUBREAPER, was.value, 0, 0, 0)


def started(*command: str) -> Record:
    process = subprocess.Popen(command, start_new_session=True)
    node.children[process.pid] = process
    ticks = start_ticks(process.pid)
    assert ticks is not None
    runner = Process(pid=process.pid, start_ticks=ticks)
    return Record(name="stand-in", way="chroot", ports=Ports(), runner=runner)


def child_of(pid: int) -> int:
    """Wait until a process has a child."""
    return awaited(lambda: next(iter(descendants(pid)), 0))


def awaited(look: Callable[[], int]) -> int:
    deadline = time.monotonic() + HANG_S
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def test_a_node_that_runs_is_ended_and_reaped() -> None:
    record = started(*LONG)

    node.end_by_force(record)

    assert record.runner is not None
    assert not Path(f"/proc/{record.runner.pid}").exists()
    assert record.runner.pid not in node.children


def test_a_process_that_does_not_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    record = started(*LONG)
    assert record.runner is not None
    with monkeypatch.context() as patch:
        patch.setattr(node, "send", lambda *_: None)
        patch.setattr(node, "END_TIMEOUT_S", 0.1)

        with pytest.raises(NotEnded, match=rf"process {record.runner.pid} \(sleep, state S, child"):
            node.end_by_force(record)

    node.end_by_force(record)


def test_a_process_that_is_gone_is_told_by_its_number() -> None:
    with subprocess.Popen(["true"]) as process:
        pass
    assert described(process.pid) == f"process {process.pid}"


@pytest.mark.usefixtures("adopting")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make process namespaces")
def test_a_command_beside_a_node_that_was_given_up_is_reaped_with_it() -> None:
    record = started(*SHUT_IN, *LONG)
    assert record.runner is not None
    inside = child_of(record.runner.pid)
    with subprocess.Popen(["nsenter", f"--target={inside}", "--mount", "--pid", *LONG]) as command:
        orphan = child_of(command.pid)
        command.kill()

    node.end_by_force(record)

    for pid in (orphan, inside, record.runner.pid):
        assert not Path(f"/proc/{pid}").exists(), described(pid)
