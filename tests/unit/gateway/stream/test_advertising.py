"""What clients on other machines are told, where it may be a host of their own."""

import logging

import pytest

from gateway.settings.model import Settings
from gateway.stream.advertising import Advertising, advertised, advertised_over_tls
from tests.unit.gateway.stream.link_rig import Ports

HERE, ELSEWHERE = Ports(), Ports(peer="198.51.100.1:4000", peer_is_loopback=False)


def advertising(stream: str, tls: str | None, listens_on: str = "0.0.0.0") -> Advertising:
    settings = Settings()
    changes = {
        "stream": settings.stream.model_copy(update={"advertised_host": stream}),
        "tls": settings.tls.model_copy(update={"advertised_host": tls}),
    }
    return Advertising(settings.model_copy(update=changes), listens_on)


def settings_in(caplog: pytest.LogCaptureFixture) -> list[object]:
    """Return the setting that each line names."""
    return [record.args[0] for record in caplog.records if isinstance(record.args, tuple)]


@pytest.mark.parametrize(
    ("stream", "tls", "listens_on", "named"),
    [
        ("localhost", None, "0.0.0.0", ["--advertised-host"]),
        ("localhost", "example.org", "::", ["--advertised-host"]),
        ("example.org", "127.0.0.1", "192.0.2.1", ["tls.advertised_host"]),
        ("localhost", "::1", "0.0.0.0", ["--advertised-host", "tls.advertised_host"]),
        ("localhost", None, "127.0.0.1", []),
        ("localhost", "localhost", "::1", []),
        ("example.org", None, "0.0.0.0", []),
    ],
)
def test_the_settings_that_mislead_are_named_at_the_start(
    caplog: pytest.LogCaptureFixture,
    stream: str,
    tls: str | None,
    listens_on: str,
    named: list[str],
) -> None:
    with caplog.at_level(logging.WARNING):
        advertising(stream, tls, listens_on).warn()
    assert settings_in(caplog) == named


def test_the_first_client_from_elsewhere_that_is_told_is_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    known = advertising("localhost", "example.org")
    with caplog.at_level(logging.WARNING):
        for host, ports in (
            ("localhost", HERE),
            ("example.org", ELSEWHERE),
            ("localhost", ELSEWHERE),
            ("localhost", ELSEWHERE),
        ):
            known.told(host, ports)
    assert settings_in(caplog) == ["--advertised-host"]


def test_clients_are_told_the_port_that_is_listened_on_unless_another_is_set() -> None:
    settings = Settings()
    assert advertised(settings, 1) == (settings.stream.advertised_host, 1)
    assert advertised_over_tls(settings, 2) == (settings.stream.advertised_host, 2)

    stream = settings.stream.model_copy(update={"advertised_port": 3})
    tls = settings.tls.model_copy(update={"advertised_host": "a", "advertised_port": 4})
    changed = settings.model_copy(update={"stream": stream, "tls": tls})
    assert advertised(changed, 1)[1] == 3
    assert advertised_over_tls(changed, 2) == ("a", 4)
