"""The ports of administrators: the API over HTTP, and the socket in the data directory."""

import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, Self

from starlette.types import ASGIApp

from gateway.broker.hosts.broker import BrokerBackend
from gateway.broker.service import ServiceState
from gateway.management.admin_socket import AdminSocket, Answer
from gateway.management.administration import OWNER, Administration
from gateway.management.http.application import ApiBacking, Application
from gateway.management.http.call import ServerFacts
from gateway.management.http.copying import Copying
from gateway.management.http.http_server import HttpServer
from gateway.management.http.protocol import PROTOCOL, NotStrict, check_strictness
from gateway.management.http.routes import RESOURCES
from gateway.management.requests.table import answer
from gateway.management.standby import Standby
from gateway.network.addresses import shown
from gateway.network.listening import ListenPlace, listen_at
from gateway.server.endpoint import PortEndpoint
from gateway.server.loop.awaiting import awaited
from gateway.server.port import Port
from gateway.settings.errors import ConfigError, Problem
from gateway.settings.model import Settings

log = logging.getLogger(__name__)

DEFAULT_PORT: Final = 15_672
_HOST: Final = "localhost"
_BACKLOG: Final = 128


class AdministeredBackend(BrokerBackend, Protocol):
    """A backend with a broker that administrators may change."""

    @property
    def service(self) -> ServiceState:
        """The state of service, which is there before the store is open."""
        ...

    @property
    def administration(self) -> Administration:
        """Everything that administrators see and change."""
        ...


class ManagementPort(Port[AdministeredBackend]):
    """The port of the API: asked for, picked, or the usual one if it is free."""

    def __init__(self, settings: Settings) -> None:
        """As of `configured`."""
        asked = settings.management
        port = DEFAULT_PORT if asked.port is None else asked.port
        place = ListenPlace(asked.host or _HOST, port, "management.host", "management.port")
        super().__init__([PortEndpoint(place)])
        self._settings = settings
        self._server: HttpServer | None = None

    @classmethod
    def configured(cls, settings: Settings) -> Self | None:
        """Return the port, if there is one. Raises ConfigError: requests could be read loosely."""
        if not settings.management.enabled:
            return None
        try:
            check_strictness()
        except NotStrict as error:
            raise ConfigError(Problem("management.enabled", str(error))) from error
        return cls(settings)

    def bind(self) -> None:
        """Take the port, and listen, so that no other process can; without it if it is the default.

        Raises:
            ConfigError: An address that was asked for cannot be had.
        """
        [endpoint] = self.endpoints
        try:
            endpoint.bind()
            with endpoint.place.blamed():
                listen_at(endpoint.sockets, _BACKLOG)
        except ConfigError as refusal:
            endpoint.close()
            self.endpoints = []
            asked = self._settings.management
            if asked.port is not None or asked.host is not None:
                raise
            reason = refusal.problems[0].reason
            log.warning("no management api, its usual port is not free reason=%s", reason)

    @property
    def ready(self) -> str:
        """The address."""
        return "".join(f"management={shown(*each.address)}" for each in self.endpoints)

    async def wait(self, backend: AdministeredBackend) -> None:
        """Answer that this member follows."""
        await self._answer(Standby(backend.service))

    async def serve(self, backend: AdministeredBackend) -> None:
        """Answer from now on."""
        for endpoint in self.endpoints:
            shared, broker = self.context.shared, backend.broker
            shared.open_ports[PROTOCOL] = endpoint.address
            facts = self._facts(backend, endpoint)
            backing = ApiBacking(backend.administration, broker.authentication, facts, awaited)
            application: ASGIApp = Application(backing, RESOURCES)
            if (cluster := backend.service.cluster) is not None:
                host = self._settings.stream.advertised_host
                url = f"http://{shown(host, endpoint.widest_address[1])}"
                application = Copying(cluster.offer_copies(url), application)
            await self._answer(application)

    async def _answer(self, application: ASGIApp) -> None:
        """Have an application answer from now on."""
        for endpoint in self.endpoints:
            if self._server is None:
                self._server = HttpServer(endpoint.sockets, self.context.shared, application)
                await self._server.start()
            self._server.application = application

    def _facts(self, backend: AdministeredBackend, endpoint: PortEndpoint) -> ServerFacts:
        service, settings = backend.broker.service, self._settings

        def listeners() -> list[tuple[str, str, int]]:
            named = [
                (each.protocol, each.addresses) for each in service.listeners if not each.is_shut
            ]
            named.append((PROTOCOL, endpoint.addresses))
            return [(protocol, *each) for protocol, addresses in named for each in addresses]

        return ServerFacts(
            f"rabbit@{settings.stream.advertised_host}",
            listeners,
            settings.stream.connections_max,
            _certificates(settings),
        )

    def stop_accepting(self) -> None:
        """Answer no more."""
        super().stop_accepting()
        if self._server is not None:
            self._server.stop()

    async def settle(self) -> None:
        """Wait for the answers that are under way, for a moment."""
        if self._server is not None:
            await self._server.stopped()


def _certificates(settings: Settings) -> dict[str, Path]:
    given = {"certfile": settings.tls.certificate, "cacertfile": settings.tls.ca}
    return {name: path for name, path in given.items() if path is not None}


class AdminPort(Port[AdministeredBackend]):
    """The socket in the data directory, which every server has."""

    def __init__(self) -> None:
        """As of `configured`."""
        super().__init__([])
        self._socket: AdminSocket | None = None
        self._finish_import: Callable[[], Coroutine[Any, Any, None]] | None = None

    @classmethod
    def configured(cls, settings: Settings) -> Self:  # noqa: ARG003  # it has none
        """Return the port."""
        return cls()

    async def wait(self, backend: AdministeredBackend) -> None:
        """Let administrators see a member that follows. Raises ConfigError."""
        self._have_answered(backend, Standby(backend.service).answer)
        await self._start()

    async def prepare(self, backend: AdministeredBackend) -> None:
        """Remove what a server that was killed has left. Raises ConfigError: it is no socket."""
        administration = backend.administration

        def answered(
            name: str, arguments: Mapping[str, Any], body: bytes
        ) -> Coroutine[Any, Any, object]:
            return awaited(answer(administration, OWNER, name, arguments, body))

        self._finish_import = lambda: awaited(administration.importing.close())
        self._have_answered(backend, answered)

    def _have_answered(self, backend: AdministeredBackend, answer: Answer) -> None:
        """Have requests answered by a function from now on. Raises ConfigError."""
        if self._socket is None:
            self._socket = AdminSocket(backend.service.about.data, answer)
            with suppress(OSError):  # told when it starts
                self._socket.make_way()
        self._socket.answer = answer

    @property
    def ready(self) -> str:
        """Nothing: its path is in the data directory."""
        return ""

    async def serve(self, backend: AdministeredBackend) -> None:  # noqa: ARG002
        """Let administrators in, unless the file system has no sockets: clients can be served."""
        await self._start()

    async def _start(self) -> None:
        assert self._socket is not None
        if self._socket.is_started:
            return
        try:
            await self._socket.start()
        except OSError as error:
            log.error(  # noqa: TRY400  # a line for the operator
                "administrators cannot reach this server path=%s error=%s",
                self._socket.path,
                error,
            )

    def stop_accepting(self) -> None:
        """Let no more administrators in."""
        if self._socket is not None:
            self._socket.stop_accepting()

    async def settle(self) -> None:
        """Stop an import that is under way; the next start goes on with it."""
        if self._finish_import is not None:
            await self._finish_import()

    async def close(self) -> None:
        """End the requests of administrators."""
        if self._socket is not None:
            await self._socket.stop()
