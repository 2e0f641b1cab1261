"""The parts of mewbase's protocol put together: binders, readers, the context of connections."""

from functools import partial

from gateway.broker.hosts.broker import Broker
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.log.records.openings import OpeningRoom
from gateway.mewbase.binders.binders import Binders, open_binders
from gateway.mewbase.binders.projection import Change, Projection
from gateway.mewbase.binders.projections_file import (
    BadProjections,
    functions_of,
    read_projections,
)
from gateway.mewbase.front import MewbaseKind
from gateway.mewbase.link import PROTOCOL, MewbaseContext
from gateway.mewbase.sources import EventReading
from gateway.server.context import ServerContext
from gateway.server.front import ConnectionLimits
from gateway.server.loop.awaiting import awaited, settled_after
from gateway.server.loop.threads import Threads
from gateway.server.tls.tls_greeting import lower_priority
from gateway.settings.errors import ConfigError
from gateway.settings.mewbase import MewbaseSettings


class Assembly:
    """The parts."""

    def __init__(self, settings: MewbaseSettings) -> None:
        """Read the file of projections. Raises ConfigError: it cannot be used."""
        self._settings = settings
        self._projections, self._functions = _projections_of(settings)

    async def open(
        self, broker: Broker, virtual_host: VirtualHost, context: ServerContext
    ) -> MewbaseKind:
        """Open the binders, let their projections run, and return the protocol for the ports.

        Raises StoreError.
        """
        settings, connections = self._settings, broker.connections
        wait = partial(settled_after, context.loop)
        threads = Threads(context.loop, 1, name="sub-batches", begin=lower_priority)
        reading = EventReading(wait, OpeningRoom(settings.sub_batches_bytes_max, threads.run, wait))
        host = MewbaseContext(
            access=broker.access,
            authentication=broker.authentication,
            connections=connections,
            virtual_hosts=broker.virtual_hosts.find,
            service=broker.service,
            has_room=lambda: connections.count_of_protocol(PROTOCOL) < settings.connections_max,
            binders=await self._open_binders(broker, virtual_host, reading, context),
            reading=reading,
            settings=settings,
        )
        return MewbaseKind(host, _limits_of(settings))

    async def _open_binders(
        self,
        broker: Broker,
        virtual_host: VirtualHost,
        reading: EventReading,
        context: ServerContext,
    ) -> Binders:
        opening = open_binders(
            broker.store,
            virtual_host,
            self._settings,
            self._projections,
            self._functions,
            reading=reading,
            thread_of=lambda name: Threads(context.loop, 1, name=f"projection-{name}").run,
        )
        binders = await awaited(opening)
        broker.service.add_part(binders)
        broker.readers.append(lambda: awaited(binders.stop()))
        return binders


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


def _limits_of(mewbase: MewbaseSettings) -> ConnectionLimits:
    """Return the limits of each connection."""
    return ConnectionLimits(
        close_timeout_ms=mewbase.close_timeout_ms,
        unconfirmed_max=mewbase.unanswered_events_max,
        unconfirmed_resume=mewbase.unanswered_events_resume,
        backlog_pause_bytes=mewbase.send_backlog_pause_bytes,
        backlog_bytes_max=mewbase.send_backlog_bytes_max,
    )
