"""The reference broker: it serves, it is found again, and it leaves nothing behind."""

import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from compat.broker import BrokerUnavailable, RunningBroker, obtain, records, ways
from compat.broker.processes import descendants, usage
from compat.broker.running import is_serving
from compat.broker.tree import cache_folder

# The first start on a machine builds the Debian tree.
pytestmark = pytest.mark.timeout(900)

OWNER_THAT_IS_KILLED = """
import os, signal
from compat.broker import obtain
broker = obtain(found=False)
print(broker.name, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_serves_4_3_with_the_stream_listener(rabbitmq: RunningBroker) -> None:
    overview = rabbitmq.management("overview")
    assert overview["rabbitmq_version"].startswith("4.3.")
    protocols = {listener["protocol"] for listener in overview["listeners"]}
    assert {"stream", "amqp", "mqtt"} <= protocols


def test_it_serves_over_tls_with_certificates_of_its_own(rabbitmq: RunningBroker) -> None:
    if rabbitmq.certificates is None:
        assert rabbitmq.way == "environment"
        return
    context = ssl.create_default_context(cafile=str(rabbitmq.certificates.ca))
    address = (rabbitmq.host, rabbitmq.ports.tls)
    with (
        socket.create_connection(address, timeout=5) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as over_tls,
    ):
        assert over_tls.version() in {"TLSv1.2", "TLSv1.3"}


def test_its_process_is_known_if_it_was_started_here(rabbitmq: RunningBroker) -> None:
    if rabbitmq.pid is None:
        assert rabbitmq.way == "environment"
        return
    used = usage(rabbitmq.pid)
    assert used is not None
    assert used.resident_bytes > 50_000_000


def test_a_second_one_runs_beside_it_and_leaves_nothing(rabbitmq: RunningBroker) -> None:
    second = startable()
    try:
        assert second.ports.stream != rabbitmq.ports.stream
        record = records.load(second.name)
        assert record is not None
    finally:
        second.stop()
    assert_nothing_is_left(record)
    assert rabbitmq.management("overview")


def test_one_whose_owner_was_killed_is_ended_by_the_next_use() -> None:
    startable().stop()
    done = subprocess.run(
        [sys.executable, "-c", OWNER_THAT_IS_KILLED],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    record = records.load(done.stdout.strip())
    assert record is not None
    assert ways.is_running(record)
    ways.stop_abandoned()
    assert_nothing_is_left(record)


def test_one_that_is_killed_comes_back_with_what_it_had() -> None:
    broker = startable()
    try:
        broker.control("add_vhost", "kept")
        broker.crash()
        assert "kept" in {host["name"] for host in broker.management("vhosts")}
        record = records.load(broker.name)
        assert record is not None
    finally:
        broker.stop()
    assert_nothing_is_left(record)


def test_one_that_may_stay_is_left_alone_by_the_next_use() -> None:
    broker = startable(detached=True)
    try:
        ways.stop_abandoned()
        record = records.load(broker.name)
        assert record is not None
        assert ways.is_running(record)
    finally:
        broker.stop()


def assert_nothing_is_left(record: records.Record) -> None:
    """No process, no port, no mount, no file."""
    assert not ways.is_running(record)
    assert not is_serving("127.0.0.1", record.ports)
    assert records.load(record.name) is None
    assert not records.folder_of(record.name).exists()
    assert str(cache_folder()) not in Path("/proc/mounts").read_text()
    if record.runner is not None:
        assert descendants(record.runner.pid) == []


def startable(*, detached: bool = False) -> RunningBroker:
    """Start a broker of our own; skip where only a given address works."""
    try:
        return obtain(found=False, detached=detached)
    except BrokerUnavailable as error:
        pytest.skip(str(error))
