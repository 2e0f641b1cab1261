"""The ports of mewbase's protocol, on the streams of a virtual host: plain, over TLS, or both."""

from importlib.util import find_spec
from typing import Final, Self

from gateway.broker.errors import BrokerError, PreconditionFailed, StreamExists
from gateway.broker.hosts.broker import Broker, BrokerBackend
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.naming import check_given_name, is_text
from gateway.network.addresses import shown
from gateway.network.listening import ListenPlace
from gateway.server.endpoint import PortEndpoint, TlsEndpoint
from gateway.server.loop.awaiting import awaited
from gateway.server.port import Port
from gateway.settings.errors import ConfigError, Problem
from gateway.settings.model import Settings

_SHOWN_CHARACTERS: Final = 40


class MewbasePort(Port[BrokerBackend]):
    """The ports."""

    def __init__(self, settings: Settings) -> None:
        """As of `configured`."""
        # Not before it is known that BSON can be read.
        from gateway.mewbase.assembly import Assembly  # noqa: PLC0415

        mewbase = settings.mewbase
        host = mewbase.host or settings.stream.host
        host_setting = "mewbase.host" if mewbase.host is not None else "stream.host"
        endpoints = []
        if mewbase.port is not None:
            endpoints.append(
                PortEndpoint(ListenPlace(host, mewbase.port, host_setting, "mewbase.port"))
            )
        if mewbase.tls_port is not None:
            place = ListenPlace(host, mewbase.tls_port, host_setting, "mewbase.tls_port")
            endpoints.append(TlsEndpoint(place, settings.tls))
        super().__init__(endpoints)
        self._settings = mewbase
        self._assembly = Assembly(mewbase)

    @classmethod
    def configured(cls, settings: Settings) -> Self | None:
        """Return the ports, if there are any. Raises ConfigError."""
        mewbase = settings.mewbase
        if mewbase.port is None and mewbase.tls_port is None:
            return None
        if find_spec("bson") is None or find_spec("pymongo") is None:
            name = "mewbase.port" if mewbase.port is not None else "mewbase.tls_port"
            raise ConfigError.without_extra(name, "BSON", "mewbase")
        if mewbase.tls_port is not None and settings.tls.certificate is None:
            raise ConfigError(Problem("mewbase.tls_port", "needs tls.certificate beside it"))
        for word, names in (("channel", mewbase.channels), ("binder", mewbase.binders)):
            for name in names:
                _check_name(name, word)
        return cls(settings)

    @property
    def ready(self) -> str:
        """The addresses."""
        over_tls = self.over_tls
        return " ".join(
            f"{'mewbase_tls' if each in over_tls else 'mewbase'}={shown(*each.address)}"
            for each in self.endpoints
        )

    async def prepare(self, backend: BrokerBackend) -> None:
        """Make the channels that are missing. Raises ConfigError: one cannot be made."""
        virtual_host = self._virtual_host(backend.broker)
        for name in self._settings.channels:
            if name in virtual_host.streams:
                continue
            try:
                await awaited(virtual_host.streams.create(name, {}))
            except StreamExists:
                continue
            except BrokerError as error:
                raise _cannot_be_made(name, "channel", error) from error

    def _virtual_host(self, broker: Broker) -> VirtualHost:
        """Return the virtual host of the channels. Raises ConfigError."""
        name = self._settings.virtual_host
        virtual_host = broker.virtual_hosts.find(name)
        if virtual_host is None:
            reason = f"there is no virtual host {name!r}"
            raise ConfigError(Problem("mewbase.virtual_host", reason))
        return virtual_host

    async def serve(self, backend: BrokerBackend) -> None:
        """Open the binders, then let clients come in. Raises ConfigError or StoreError."""
        broker = backend.broker
        kind = await self._assembly.open(broker, self._virtual_host(broker), self.context)
        for each in self.endpoints:
            each.listen(self.context, kind)


def _check_name(name: str, what: str) -> None:
    """Raise ConfigError if no channel or binder can have a name."""
    if not is_text(name):
        raise _cannot_be_made(name, what, "it has control characters, or is no Unicode text")
    try:
        check_given_name(name)
    except PreconditionFailed as error:
        raise _cannot_be_made(name, what, error) from error


def _cannot_be_made(name: str, what: str, error: object) -> ConfigError:
    """Blame the setting of channels or of binders."""
    reason = f"{what} {name[:_SHOWN_CHARACTERS]!r} cannot be made: {error}"
    return ConfigError(Problem(f"mewbase.{what}s", reason))
