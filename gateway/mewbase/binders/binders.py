"""All binders of a server, and the projections that feed them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.log import names
from gateway.mewbase.binders.binder import Binder, open_binder
from gateway.mewbase.binders.feeder import Feeder, FeederPorts
from gateway.mewbase.binders.folding import InThread
from gateway.mewbase.binders.projection import Change, Projection
from gateway.mewbase.sources import EventReading
from gateway.pending import Pending, run
from gateway.settings.mewbase import MewbaseSettings
from store.api import SegmentStore

_FRESH_MS: Final = 1_000
"""Longest time that a query waits for events that were stored before it."""


class Binders:
    """The binders by name. Create it with `open_binders`."""

    def __init__(self, wait: Callable[[int], Pending[None]]) -> None:
        """`wait` returns a Pending that settles after a number of milliseconds."""
        self._wait = wait
        self._binders: dict[str, Binder] = {}
        self._feeders: list[Feeder] = []

    def add(self, binder: Binder) -> None:
        """Add a binder."""
        self._binders[binder.name] = binder

    async def feed(self, feeder: Feeder) -> None:
        """Let a projection run; events published after this belong to it."""
        self._feeders.append(feeder)
        feeder.start()
        await feeder.begun

    def find(self, name: str) -> Binder | None:
        """Return a binder; None if there is none of the name."""
        return self._binders.get(name)

    def ended_of(self, binder: Binder) -> str:
        """Return the name of a projection of a binder that has ended; empty if none has."""
        ended = (each for each in self._feeders if each.binder is binder and each.failure)
        return next((each.projection.name for each in ended), "")

    @property
    def ended(self) -> list[str]:
        """Projections that have ended though the server goes on, each with the reason."""
        ended = (each for each in self._feeders if each.failure)
        return [f"projection {each.projection.name!r}: {each.failure}" for each in ended]

    async def freshen(self, binder: Binder) -> None:
        """Wait until a binder has the events published by now, but not for long."""
        either: Pending[None] = Pending()

        def settle(_outcome: object = None) -> None:
            if not either.is_settled:
                either.settle(None)

        run(self._all_caught_up(binder), settle)
        if not either.is_settled:
            self._wait(_FRESH_MS).when_settled(settle)
        await either

    async def _all_caught_up(self, binder: Binder) -> None:
        for feeder in self._feeders:
            if feeder.binder is binder:
                await feeder.caught_up()

    async def stop(self) -> None:
        """Let the projections take no more events, and wait for the writes under way."""
        for feeder in self._feeders:
            await feeder.stop()
        for binder in self._binders.values():
            await binder.close()


async def open_binders(
    store: SegmentStore,
    virtual_host: VirtualHost,
    settings: MewbaseSettings,
    projections: Sequence[Projection],
    functions: Mapping[str, Change],
    *,
    reading: EventReading,
    thread_of: Callable[[str], InThread],
) -> Binders:
    """Open the binders of a virtual host, and let their projections run.

    Args:
        store: Holds their tables.
        virtual_host: Its streams are the channels.
        settings: They name binders besides those of the projections.
        projections: The projections.
        functions: Their functions, by the names of their entry points.
        reading: State that the readers of events share.
        thread_of: Gives a thread for the function of a projection.

    Raises:
        CorruptSegment: A table is damaged.
        StoreError: It cannot be read.
    """
    binders = Binders(reading.wait)
    for name in dict.fromkeys([*settings.binders, *(each.binder for each in projections)]):
        table = names.binder_table(virtual_host.name, name)
        virtual_host.more_tables.add(table)
        binders.add(await open_binder(name, store, table, settings.binder_ids_max))
    for projection in projections:
        binder = binders.find(projection.binder)
        assert binder is not None
        ports = FeederPorts(virtual_host.streams, thread_of(projection.name), reading)
        change = functions.get(projection.function)
        fate = settings.bad_sub_batches
        await binders.feed(Feeder(projection, binder, ports, change, fate))
    return binders
