"""The port of the management API: asked for, picked, or the usual one if it is free."""

import logging
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gateway.broker.access.authentication import Authentication
from gateway.management.administration import Administration
from gateway.management.http.application import Backing
from gateway.management.http.call import Awaits, Facts
from gateway.management.http.http_server import HttpServer
from gateway.management.http.protocol import PROTOCOL, NotStrict, check_strictness
from gateway.network.listening import Address, Place, address_of, listen_at
from gateway.server.shared import Shared
from gateway.settings.errors import ConfigError, Problem
from gateway.settings.model import ManagementSettings, Settings

log = logging.getLogger(__name__)

DEFAULT_PORT: Final = 15_672
_HOST: Final = "localhost"
_BACKLOG: Final = 128


class Management:
    """The API of one server, if it has one."""

    def __init__(self, settings: ManagementSettings) -> None:
        """Describe its port. Raises ConfigError: requests would not be read strictly."""
        if settings.enabled:
            try:
                check_strictness()
            except NotStrict as error:
                raise ConfigError(Problem("management.enabled", str(error))) from error
        self._settings = settings
        self._sockets: list[socket.socket] = []
        self._server: HttpServer | None = None

    def bind(self) -> None:
        """Take the port, if one is wanted. Raises ConfigError: it cannot be had."""
        self._sockets = _bind(self._settings)

    @property
    def addresses(self) -> list[Address]:
        """Hosts and ports, none where there is no API."""
        return [address_of(each) for each in self._sockets]

    async def start(
        self,
        administration: Administration,
        authentication: Authentication,
        awaits: Awaits,
        node: str,
        peer_properties: Mapping[str, str],
        settings: Settings,
        shared: Shared,
    ) -> None:
        """Answer from now on."""
        if not self._sockets:
            return
        shared.open_ports[PROTOCOL] = self.addresses[0]

        def listeners() -> list[tuple[str, str, int]]:
            doors = administration.service.doors
            named = [(door.protocol, door.addresses) for door in doors if not door.is_shut]
            named.append((PROTOCOL, self.addresses))
            return [(protocol, *each) for protocol, addresses in named for each in addresses]

        facts = Facts(
            node,
            peer_properties,
            listeners,
            administration.service.about.started_ms,
            administration.service.about.data,
            settings.stream.connections_max,
            _certificates(settings),
        )
        backing = Backing(administration, authentication, facts, awaits, shared)
        self._server = HttpServer(self._sockets, backing)
        await self._server.start()

    async def stop(self) -> None:
        """Stop answering."""
        if self._server is not None:
            await self._server.stop()
        self.close()

    def close(self) -> None:
        """Release the port."""
        for each in self._sockets:
            each.close()


def _certificates(settings: Settings) -> dict[str, Path]:
    given = {"certfile": settings.tls.certificate, "cacertfile": settings.tls.ca}
    return {name: path for name, path in given.items() if path is not None}


def _bind(settings: ManagementSettings) -> list[socket.socket]:
    """Take the port of the API, and listen, so that no other process can.

    Returns:
        The sockets; none if the API is not wanted, or if its port is the default and taken.

    Raises:
        ConfigError: An address that was asked for cannot be had.
    """
    if not settings.enabled:
        return []
    port = DEFAULT_PORT if settings.port is None else settings.port
    place = Place(settings.host or _HOST, port, "management.host", "management.port")
    try:
        sockets = place.bind()
        try:
            with place.blamed():
                listen_at(sockets, _BACKLOG)
        except ConfigError:
            for each in sockets:
                each.close()
            raise
    except ConfigError as refusal:
        if settings.port is None and settings.host is None:
            reason = refusal.problems[0].reason
            log.warning("no management api, its usual port is not free reason=%s", reason)
            return []
        raise
    return sockets
