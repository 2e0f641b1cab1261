"""The ports of the stream protocol, plain and over TLS."""

from collections.abc import Callable
from typing import Final, Self

from gateway.broker.hosts.broker import Broker, BrokerBackend
from gateway.network.addresses import shown
from gateway.network.listening import Address, ListenPlace
from gateway.server.context import let_go_of_deleted
from gateway.server.endpoint import PortEndpoint, TlsEndpoint
from gateway.server.port import Port
from gateway.server.sockets import kept_for_strangers
from gateway.settings.model import Settings
from gateway.stream.advertising import Advertising, advertised, advertised_over_tls
from gateway.stream.context import StreamContext, limits_of, link_settings_of
from gateway.stream.front import StreamKind
from gateway.stream.link import PROTOCOL

_MS_A_SECOND: Final = 1000


def clients_max(connections_max: int, sockets: int) -> int:
    """Return how many clients may be logged in, so that sockets are left for others."""
    return min(connections_max, sockets - kept_for_strangers(sockets))


class StreamPort(Port[BrokerBackend]):
    """The ports."""

    def __init__(self, settings: Settings) -> None:
        """As of `configured`."""
        stream, tls = settings.stream, settings.tls
        self._plain = PortEndpoint(
            ListenPlace(stream.host, stream.port, "stream.host", "stream.port")
        )
        self._tls: TlsEndpoint | None = None
        if tls.certificate is not None:
            self._tls = TlsEndpoint(
                ListenPlace(stream.host, tls.port, "stream.host", "tls.port"), tls
            )
        super().__init__(each for each in (self._plain, self._tls) if each is not None)
        self._settings = settings
        self._stop_letting_go: Callable[[], object] | None = None

    @classmethod
    def configured(cls, settings: Settings) -> Self:
        """Return the ports. Raises ConfigError."""
        return cls(settings)

    @property
    def address(self) -> Address:
        """Host and port listened on without TLS, the first of them."""
        return self._plain.address

    @property
    def ready(self) -> str:
        """The addresses, and those that clients are told."""
        told = advertised(self._settings, self._plain.address[1])
        words = [f"stream={shown(*self._plain.address)} advertised={shown(*told)}"]
        if self._tls is not None:
            told = advertised_over_tls(self._settings, self._tls.address[1])
            words.append(f"tls={shown(*self._tls.address)} tls_advertised={shown(*told)}")
        return " ".join(words)

    async def serve(self, backend: BrokerBackend) -> None:
        """Let clients come in. Raises ConfigError."""
        settings, context, broker = self._settings, self.context, backend.broker
        advertising = Advertising(settings, self._plain.widest_address[0])
        advertising.warn()
        told = advertised(settings, self._plain.address[1])
        self._plain.listen(context, self._kind(broker, told, advertising))
        if self._tls is not None:
            told = advertised_over_tls(settings, self._tls.address[1])
            self._tls.listen(context, self._kind(broker, told, advertising))
        within_s = settings.stream.deleted_file_timeout_ms / _MS_A_SECOND
        letting_go = let_go_of_deleted(context.listeners.connections, within_s)
        self._stop_letting_go = context.loop.create_task(letting_go).cancel

    def _kind(self, broker: Broker, told: Address, advertising: Advertising) -> StreamKind:
        stream = self._settings.stream
        connections, sockets = broker.connections, self.context.sockets

        def has_room() -> bool:
            room = clients_max(stream.connections_max, sockets.places)
            return connections.count_of_protocol(PROTOCOL) < room

        host = StreamContext(
            access=broker.access,
            authentication=broker.authentication,
            connections=connections,
            virtual_hosts=broker.virtual_hosts.find,
            settings=link_settings_of(stream, told),
            advertising=advertising,
            peer_properties=broker.service.about.peer_properties,
            has_room=has_room,
            service=broker.service,
        )
        return StreamKind(host, limits_of(stream))

    def stop_accepting(self) -> None:
        """Refuse new clients, and look for those that keep deleted files no more."""
        super().stop_accepting()
        if self._stop_letting_go is not None:
            self._stop_letting_go()
