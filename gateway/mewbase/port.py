"""The ports of mewbase's protocol, on the streams of a virtual host."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from gateway.server.awaiting import awaited
from gateway.serving.backend import Backend, Opened
from gateway.broker.errors import BrokerError, PreconditionFailed, StreamExists
from gateway.broker.naming import check_given_name, is_text
from gateway.broker.virtual_host import VirtualHost
from gateway.log.records.openings import Room
from gateway.mewbase.binders.binders import Binders, open_binders
from gateway.mewbase.binders.projection import Change, Projection
from gateway.mewbase.binders.projections_file import (
    BadProjections,
    functions_of,
    read_projections,
)
from gateway.mewbase.front import MewbaseKind
from gateway.mewbase.host import PROTOCOL, Host
from gateway.mewbase.sources import Reading
from gateway.network.addresses import shown
from gateway.network.listening import Place, Port, take_all
from gateway.pending import Pending
from gateway.server.certificate_user import naming_of
from gateway.server.front import Limits
from gateway.server.listener import Listener, listen
from gateway.server.shared import Shared
from gateway.server.sockets import Sockets
from gateway.server.threads import Threads
from gateway.server.tls_greeting import lower_priority
from gateway.server.tls_serving import TlsServing
from gateway.settings.errors import ConfigError, Problem
from gateway.settings.mewbase import MewbaseSettings
from gateway.settings.model import Settings

log: Final = logging.getLogger(__name__)

_SHOWN_CHARACTERS: Final = 40


class MewbasePorts:
    """The plain port and the one over TLS, or one of them.

    Attributes:
        tls: What serves the one over TLS; None if there is none.
    """

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        """Read the files that the settings name. Raises ConfigError: one is wrong or missing."""
        mewbase = settings.mewbase
        self._check(settings)
        host = mewbase.host or settings.stream.host
        host_setting = "mewbase.host" if mewbase.host is not None else "stream.host"
        self._settings = settings
        self._plain: Port | None = None
        if mewbase.port is not None:
            self._plain = Port(Place(host, mewbase.port, host_setting, "mewbase.port"))
        self._loop = loop
        self._projections, self._functions = _projections_of(mewbase)
        self.tls: TlsServing | None = None
        if mewbase.tls_port is not None:
            place = Place(host, mewbase.tls_port, host_setting, "mewbase.tls_port")
            self.tls = TlsServing(settings.tls, place, loop)

    @staticmethod
    def _check(settings: Settings) -> None:
        """Raise ConfigError where a port lacks what it needs."""
        mewbase = settings.mewbase
        if mewbase.tls_port is not None and settings.tls.certificate is None:
            raise ConfigError(Problem("mewbase.tls_port", "needs tls.certificate beside it"))

    @property
    def ready(self) -> str:
        """The addresses as the ready line has them."""
        words = []
        if self._plain is not None:
            words.append(f"mewbase={shown(*self._plain.address)}")
        if self.tls is not None:
            words.append(f"mewbase_tls={shown(*self.tls.address)}")
        return " ".join(words)

    async def prepare(self, opened: Opened) -> None:
        """Make the channels that are missing. Raises ConfigError: one cannot be made."""
        for name in self._settings.mewbase.binders:
            _check_name(name, "binder")
        await self._make_channels(self._virtual_host(opened))

    def bind(self) -> None:
        """Take the addresses. Raises ConfigError."""
        take_all(each.bind for each in (self._plain, self.tls) if each is not None)

    def _virtual_host(self, opened: Opened) -> VirtualHost:
        """Return the virtual host of the channels. Raises ConfigError."""
        name = self._settings.mewbase.virtual_host
        virtual_host = opened.virtual_hosts.find(name)
        if virtual_host is None:
            reason = f"there is no virtual host {name!r}"
            raise ConfigError(Problem("mewbase.virtual_host", reason))
        return virtual_host

    async def _make_channels(self, virtual_host: VirtualHost) -> None:
        """Make the channels that are missing. Raises ConfigError."""
        channels = self._settings.mewbase.channels
        missing = [name for name in channels if name not in virtual_host.streams]
        for name in missing:
            _check_name(name, "channel")
        for name in missing:
            try:
                await awaited(virtual_host.streams.create(name, {}))
            except StreamExists:
                continue
            except BrokerError as error:
                raise _cannot_be_made(name, "channel", error) from error

    def _reading(self) -> Reading:
        """Return the state that the readers of events share."""
        threads = Threads(self._loop, 1, name="sub-batches", begin=lower_priority)
        room = Room(self._settings.mewbase.sub_batches_bytes_max, threads.run, self._wait)
        return Reading(self._wait, room)

    async def _open_binders(
        self, backend: Backend, virtual_host: VirtualHost, reading: Reading
    ) -> Binders:
        """Open the binders, and let their projections run. Raises StoreError."""
        opening = open_binders(
            backend.served.store,
            virtual_host,
            self._settings.mewbase,
            self._projections,
            self._functions,
            reading=reading,
            thread_of=lambda name: Threads(self._loop, 1, name=f"projection-{name}").run,
        )
        binders = await awaited(opening)
        backend.service.add_part(binders)
        backend.readers.append(lambda: awaited(binders.stop()))
        return binders

    def _wait(self, delay_ms: int) -> Pending[None]:
        pending: Pending[None] = Pending()
        self._loop.call_later(delay_ms / 1_000, pending.settle, None)
        return pending

    async def start(
        self,
        opened: Opened,
        backend: Backend,
        shared: Shared,
        sockets: Sockets,
        add: Callable[[Listener], object],
    ) -> None:
        """Open the binders, then accept; `prepare` and `bind` come before.

        Args:
            opened: Users and virtual hosts.
            backend: What is behind all ports.
            shared: Parts that all connections of the process share.
            sockets: The sockets of the process.
            add: Notes a listener, to be stopped with the others.

        Raises:
            ConfigError: Another process listens there by now.
            StoreError: A binder cannot be opened.
        """
        mewbase, clients = self._settings.mewbase, backend.clients
        reading = self._reading()
        binders = await self._open_binders(backend, self._virtual_host(opened), reading)
        host = Host(
            access=opened.access,
            authentication=opened.authentication,
            connections=clients,
            virtual_hosts=opened.virtual_hosts.find,
            service=backend.service,
            has_room=lambda: clients.count_of_protocol(PROTOCOL) < mewbase.connections_max,
            binders=binders,
            reading=reading,
            settings=mewbase,
        )
        kind = MewbaseKind(host, _limits_of(mewbase))
        if self._plain is not None:
            listen(self._plain, shared, kind, sockets, add)
        if self.tls is not None:
            add(self.tls.start(shared, kind, sockets, naming_of(self._settings.tls)))


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


def _projections_of(mewbase: MewbaseSettings) -> tuple[list[Projection], dict[str, Change]]:
    """Return the projections, and the functions that they name. Raises ConfigError."""
    path = mewbase.projections_file
    if path is None:
        return [], {}
    try:
        projections = read_projections(path)
        return projections, functions_of(projections)
    except BadProjections as error:
        raise ConfigError.in_file("mewbase.projections_file", path, *error.problems) from None


def _limits_of(mewbase: MewbaseSettings) -> Limits:
    """Return the limits of each connection."""
    return Limits(
        close_timeout_ms=mewbase.close_timeout_ms,
        unconfirmed_max=mewbase.unanswered_events_max,
        unconfirmed_resume=mewbase.unanswered_events_resume,
        backlog_pause_bytes=mewbase.send_backlog_pause_bytes,
        backlog_bytes_max=mewbase.send_backlog_bytes_max,
    )
