"""The reference broker: it serves, it is found again, and it leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compat.broker import BrokerUnavailable, Ports, RunningBroker, obtain, records, ways
from compat.broker import __main__ as command
from compat.broker.processes import descendants, start_ticks, usage
from compat.broker.tree import cache_folder, mirror_of

ONE_LINE_SOURCES = """
# deb http://old.example.org/debian forky main
deb [signed-by=/x.gpg] http://packages.example.org/apt cloud main
deb [arch=amd64] https://mirror.example.org/debian/ bookworm main
deb http://security.debian.org/debian-security bookworm-security main
"""
STANZA_SOURCES = """
Types: deb
# http://snapshot.example.org/archive/debian/2025
URIs: http://deb.example.org/debian
Suites: bookworm
Components: main
"""
OWNER_THAT_IS_KILLED = """
import os, signal
from compat.broker import obtain
broker = obtain(found=False)
print(broker.name, broker.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_mirror_is_read_from_one_line_sources() -> None:
    assert mirror_of(ONE_LINE_SOURCES) == "https://mirror.example.org/debian"


def test_a_mirror_is_read_from_stanza_sources() -> None:
    assert mirror_of(STANZA_SOURCES) == "http://deb.example.org/debian"


def test_other_peoples_repositories_are_no_mirror() -> None:
    assert mirror_of("deb http://packages.example.org/apt cloud main\n") is None


def test_ports_that_are_asked_for_are_kept_and_the_others_differ() -> None:
    chosen = Ports(stream=5552).chosen()
    assert chosen.stream == 5552
    others = {chosen.amqp, chosen.http, chosen.prometheus, chosen.epmd, chosen.distribution}
    assert len(others) == 5
    assert 0 not in others


def test_the_usage_of_a_process_grows_with_its_work() -> None:
    before = usage(os.getpid())
    deadline = time.monotonic() + 0.1
    while time.monotonic() < deadline:
        pass
    after = usage(os.getpid())
    assert before is not None
    assert after is not None
    assert after.cpu_s > before.cpu_s
    assert after.resident_bytes > 1_000_000


def test_a_process_that_has_ended_has_no_usage() -> None:
    with subprocess.Popen(["true"]) as process:
        pass
    assert usage(process.pid) is None
    assert start_ticks(process.pid) is None


def test_an_address_without_a_port_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ways.ADDRESS_VARIABLE, "localhost")
    with pytest.raises(BrokerUnavailable, match="HUTCH_RABBITMQ must be host:port"):
        obtain()


def test_an_address_where_nothing_answers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ways.ADDRESS_VARIABLE, f"127.0.0.1:{Ports().chosen().stream}")
    monkeypatch.setattr(ways, "FOUND_TIMEOUT_S", 0.2)
    with pytest.raises(BrokerUnavailable, match="names a broker, but nothing served"):
        obtain()


def test_without_any_way_every_reason_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(ways.ADDRESS_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrokerUnavailable) as caught:
        obtain()
    assert "environment: HUTCH_RABBITMQ is not set" in str(caught.value)
    assert "container: there is no docker command" in str(caught.value)
    assert "chroot: " in str(caught.value)


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])
    printed = capsys.readouterr().out
    assert all(verb in printed for verb in ("run", "start", "status", "stop"))


@pytest.mark.compat
@pytest.mark.timeout(900)
class TestRunningBroker:
    def test_it_serves_4_3_with_the_stream_listener(self, rabbitmq: RunningBroker) -> None:
        overview = rabbitmq.management("overview")
        assert overview["rabbitmq_version"].startswith("4.3.")
        protocols = {listener["protocol"] for listener in overview["listeners"]}
        assert "stream" in protocols

    def test_its_process_is_known(self, rabbitmq: RunningBroker) -> None:
        if rabbitmq.pid is None:
            pytest.skip("the broker's process is not of this machine")
        used = usage(rabbitmq.pid)
        assert used is not None
        assert used.resident_bytes > 50_000_000

    def test_a_second_one_runs_beside_it_and_leaves_nothing(self, rabbitmq: RunningBroker) -> None:
        second = startable()
        try:
            assert second.ports.stream != rabbitmq.ports.stream
            record = records.load(second.name)
            assert record is not None
        finally:
            second.stop()
        assert record.runner is not None
        assert not record.runner.is_running()
        assert descendants(record.runner.pid) == []
        assert not records.folder_of(second.name).exists()
        assert str(cache_folder()) not in Path("/proc/mounts").read_text()
        assert second.pid is not None
        assert usage(second.pid) is None

    def test_one_whose_owner_was_killed_is_ended_by_the_next_use(self) -> None:
        startable().stop()
        done = subprocess.run(
            [sys.executable, "-c", OWNER_THAT_IS_KILLED],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=Path(__file__).parents[2],
            check=False,
        )
        assert done.returncode == -signal.SIGKILL
        name, pid = done.stdout.split()
        assert usage(int(pid)) is not None
        ways.stop_abandoned()
        assert usage(int(pid)) is None
        assert records.load(name) is None


def startable() -> RunningBroker:
    """Start a broker of our own, in whichever way; skip where only a given address works."""
    try:
        broker = obtain(found=False)
    except BrokerUnavailable as error:
        pytest.skip(str(error))
    if broker.way != "chroot":
        broker.stop()
        pytest.skip("what it leaves is looked for in /proc, which a container hides")
    return broker
