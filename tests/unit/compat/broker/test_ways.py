"""The ways to a reference broker that need no broker: ports, processes, refusals."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from compat.broker import BrokerUnavailable, Ports, RunningBroker, obtain, settings, ways
from compat.broker import __main__ as command
from compat.broker.processes import start_ticks, usage
from compat.certificates import Certificates


def test_ports_that_are_asked_for_are_kept_and_the_others_differ() -> None:
    chosen = Ports(stream=5552).chosen()
    assert chosen.stream == 5552
    others = {
        chosen.tls,
        chosen.amqp,
        chosen.amqps,
        chosen.mqtt,
        chosen.http,
        chosen.prometheus,
        chosen.epmd,
        chosen.distribution,
    }
    assert len(others) == 8
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


def test_tls_of_a_given_broker_needs_its_port_and_certificates(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(ways.TLS_VARIABLE, "localhost:5551")
    assert ways.tls_from_environment() == (0, None)
    monkeypatch.setenv(ways.CERTIFICATES_VARIABLE, str(tmp_path))
    assert ways.tls_from_environment() == (5551, Certificates(tmp_path))


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


def test_a_broker_that_was_merely_found_is_neither_controlled_nor_killed() -> None:
    broker = RunningBroker("environment", "localhost", Ports(stream=5552))
    with pytest.raises(OSError, match="merely found"):
        broker.control("status")
    with pytest.raises(OSError, match="merely found"):
        broker.crash()


def test_the_settings_open_every_port_and_name_the_plugin_behind_it() -> None:
    ports = Ports().chosen()
    text = settings.configuration(
        ports, advertised_port=ports.stream, address="127.0.0.1", certificates="/srv"
    )
    keys = ("listeners.tcp.1", "listeners.ssl.1", "mqtt.listeners.tcp.1", "stream.listeners.tcp.1")
    for key in keys:
        assert f"\n{key} = 127.0.0.1:" in text
    plugins = settings.enabled_plugins()
    assert all(name in plugins for name in ("rabbitmq_mqtt", "rabbitmq_shovel", "rabbitmq_stream"))


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])
    printed = capsys.readouterr().out
    assert all(verb in printed for verb in ("run", "start", "status", "stop"))


def test_an_option_may_stand_before_the_verb_or_behind_it() -> None:
    for given in (
        ["--name", "mine", "--tls-port", "7000", "start"],
        ["start", "--name", "mine", "--tls-port", "7000"],
        ["--name", "other", "--tls-port", "7000", "start", "--name", "mine"],
    ):
        options = command.parser().parse_args(given)
        assert (options.verb, options.name) == ("start", "mine")
        assert command.wanted_ports(options) == Ports(tls=7000)
    assert command.parser().parse_args(["--name", "mine", "stop"]).name == "mine"
    assert command.parser().parse_args(["stop"]).name == ""
