"""Hosts that clients are told, and a warning of one by which they would connect to themselves."""

import logging

from gateway.network.addresses import is_loopback, names_loopback
from gateway.server.front import Ports
from gateway.settings.model import Settings

log = logging.getLogger(__name__)


def advertised(settings: Settings, port: int) -> tuple[str, int]:
    """Return the host and port that clients are told; `port` is listened on."""
    stream = settings.stream
    return stream.advertised_host, stream.advertised_port or port


def advertised_over_tls(settings: Settings, port: int) -> tuple[str, int]:
    """Return the host and port that clients over TLS are told; `port` is listened on."""
    tls = settings.tls
    return tls.advertised_host or settings.stream.advertised_host, tls.advertised_port or port


class Advertising:
    """Knows whether the host that clients are told leads those on other machines here."""

    def __init__(self, settings: Settings, listens_on: str) -> None:
        """`listens_on` is the address of the stream ports."""
        told = {settings.stream.advertised_host: "--advertised-host"}
        if settings.tls.advertised_host is not None:
            told[settings.tls.advertised_host] = "tls.advertised_host"
        self._listens_on = listens_on
        self._settings: dict[str, str] = {}
        """The settings that mislead, by the host that they name."""
        if not is_loopback(listens_on):
            self._settings = {host: name for host, name in told.items() if names_loopback(host)}
        self._is_said = False

    def warn(self) -> None:
        """Warn at the start, once for each setting that misleads."""
        for host, setting in self._settings.items():
            log.warning(
                "clients on other machines are told to connect to themselves, %s has to name an "
                "address that leads here listens_on=%s advertised=%s",
                setting,
                self._listens_on,
                host,
            )

    def told(self, host: str, ports: Ports) -> None:
        """Warn of the first client that has come from another machine and is told such a host."""
        setting = self._settings.get(host)
        if setting is None or self._is_said or ports.peer_is_loopback:
            return
        self._is_said = True
        log.warning(
            "a client on another machine is told to connect to itself, %s has to name an address "
            "that leads here peer=%s advertised=%s",
            setting,
            ports.peer,
            host,
        )
