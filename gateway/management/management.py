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
from gateway.management.http.protocol import NotStrict, check_strictness
from gateway.network.listening import bind, cannot_listen
from gateway.settings.errors import ConfigError, Problem
from gateway.settings.model import ManagementSettings, Settings

log = logging.getLogger(__name__)

DEFAULT_PORT: Final = 15_672
_HOST: Final = "127.0.0.1"


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
        self._socket: socket.socket | None = None
        self._server: HttpServer | None = None

    def bind(self) -> None:
        """Take the port, if one is wanted. Raises ConfigError: it cannot be had."""
        self._socket = _bind(self._settings)

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port, None where there is none."""
        if self._socket is None:
            return None
        name = self._socket.getsockname()
        return name[0], name[1]

    async def start(
        self,
        administration: Administration,
        authentication: Authentication,
        awaits: Awaits,
        node: str,
        peer_properties: Mapping[str, str],
        settings: Settings,
    ) -> None:
        """Answer from now on."""
        if self._socket is None:
            return

        def listeners() -> list[tuple[str, str, int]]:
            doors = administration.service.doors
            http = [] if self.address is None else [("http", *self.address)]
            return [*((door.protocol, *door.address) for door in doors if not door.is_shut), *http]

        facts = Facts(
            node,
            peer_properties,
            listeners,
            administration.service.about.started_ms,
            administration.service.about.data,
            settings.stream.connections_max,
            _certificates(settings),
        )
        backing = Backing(administration, authentication, facts, awaits)
        self._server = HttpServer(self._socket, backing)
        await self._server.start()

    async def stop(self) -> None:
        """Stop answering."""
        if self._server is not None:
            await self._server.stop()
        self.close()

    def close(self) -> None:
        """Give the port back."""
        if self._socket is not None:
            self._socket.close()


def _certificates(settings: Settings) -> dict[str, Path]:
    given = {"certfile": settings.tls.certificate, "cacertfile": settings.tls.ca}
    return {name: path for name, path in given.items() if path is not None}


def _bind(settings: ManagementSettings) -> socket.socket | None:
    """Take the port of the API, and listen, so that no other process can.

    Returns:
        The socket; None if the API is not wanted, or if its port is the default and taken.

    Raises:
        ConfigError: The address that was asked for cannot be had.
    """
    if not settings.enabled:
        return None
    host = settings.host or _HOST
    port = DEFAULT_PORT if settings.port is None else settings.port
    try:
        listening = bind(host, port)
        try:
            listening.listen()
        except OSError:
            listening.close()
            raise
    except OSError as error:
        refusal = cannot_listen("management.host", "management.port", host, port, error)
        if settings.port is None and settings.host is None:
            reason = refusal.problems[0].reason
            log.warning("no management api, its usual port is not free reason=%s", reason)
            return None
        raise refusal from error
    return listening
