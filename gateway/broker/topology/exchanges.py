"""The exchanges of one virtual host, and the bindings by which they lead to streams."""

import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import islice
from typing import Final

from gateway.broker.errors import ExchangeDoesNotExist, InternalError, PreconditionFailed
from gateway.broker.locks import Check, Locks, unchecked
from gateway.broker.naming import clean_name
from gateway.broker.streams.catalogue import StreamCatalogue
from gateway.broker.streams.streams import Stream, Streams
from gateway.broker.topology.exchange import (
    DEFAULT_EXCHANGE,
    DIRECT,
    PARTITION_ORDER,
    ROUTES,
    Binding,
    Declared,
    Exchange,
    is_predeclared,
    number_in,
)
from gateway.logs import NameInHost
from store.api import TableEntry
from store.errors import StoreError

__all__ = [
    "DEFAULT_EXCHANGE",
    "DIRECT",
    "PARTITION_ORDER",
    "Binding",
    "Declared",
    "Exchange",
    "Exchanges",
    "is_predeclared",
]

log = logging.getLogger(__name__)

_SHOWN_MAX: Final = 10


class Exchanges:
    """All exchanges of a virtual host. Made by `exchange_loading.open_exchanges`."""

    def __init__(self, streams: Streams) -> None:
        self.locks = Locks()
        """For declarations, bindings and deletions of one exchange."""
        self._streams = streams
        self._catalogue: StreamCatalogue = streams.catalogue
        self._declared: dict[str, Declared] = {}
        self.by_number: dict[int, Declared] = {}
        streams.when_gone = self._stream_gone

    # Looking

    def all(self) -> list[Exchange]:
        """Return every exchange except the default one."""
        return [each.exchange for each in self._declared.values()]

    def bindings(self) -> list[Binding]:
        """Return every binding except those of the default exchange, which has all streams."""
        return [each for one in self._declared.values() for each in one.bindings.values()]

    def __contains__(self, name: str) -> bool:
        return name in self._declared or name == DEFAULT_EXCHANGE

    def declared(self, name: str) -> Declared:
        """Return an exchange with its bindings; not the default one.

        Raises:
            ExchangeDoesNotExist: There is none.
        """
        found = self._declared.get(name)
        if found is None:
            raise ExchangeDoesNotExist(name)
        return found

    def route(self, exchange: str, routing_key: str) -> list[str]:
        """Return the streams of a routing key, without alternate exchanges: `VirtualHost.route`.

        Raises:
            ExchangeDoesNotExist: No such exchange.
        """
        if exchange == DEFAULT_EXCHANGE:
            return [routing_key] if routing_key in self._streams else []
        return self.declared(exchange).route(routing_key)

    def partitions(self, exchange: str) -> Sequence[str]:
        """Return the streams bound to an exchange, in the order of their bindings.

        Raises:
            ExchangeDoesNotExist: No such exchange.
        """
        if exchange == DEFAULT_EXCHANGE:
            return [stream.name for stream in self._streams]
        return self.declared(exchange).partitions

    def orders_of(self, exchange: str, stream: str) -> list[int | None]:
        """Return the order of each binding of a stream to an exchange, None for one without."""
        if exchange == DEFAULT_EXCHANGE:
            return [None] if stream in self._streams else []
        declared = self._declared.get(exchange)
        return [] if declared is None else declared.orders_of(stream)

    # Exchanges

    async def declare(self, exchange: Exchange, *, check: Check = unchecked) -> bool:
        """Make sure that an exchange exists, and return whether it is new.

        Args:
            exchange: The exchange.
            check: Called under the lock; an error that it raises ends the call, here and below.

        Raises:
            PreconditionFailed: A bad name, an unknown type, or it exists with other properties.
            InternalError: The store refused.
        """
        async with self.locks.hold(exchange.name):
            check()
            existing = self._declared.get(exchange.name)
            if existing is not None:
                existing.exchange.check_again(exchange)
                return False
            _check_new(exchange)
            declared = self.draft(exchange)
            await self._put(declared, declared.row())
            self.adopt(declared)
        log.info("exchange declared exchange=%s type=%s", exchange.name, exchange.type)
        return True

    async def delete(self, name: str, *, check: Check = unchecked) -> None:
        """Delete an exchange and its bindings; the streams stay.

        Raises:
            PreconditionFailed: It is predeclared.
            ExchangeDoesNotExist: There is none.
            InternalError: The store refused.
        """
        if is_predeclared(name):
            raise PreconditionFailed(f"exchange {name!r} cannot be deleted")
        async with self.locks.hold(name):
            check()
            declared = self.declared(name)
            await self._remove(declared, declared.key, *declared.bindings)
            self.drop(declared)
        log.info("exchange deleted exchange=%s", name)

    # Bindings

    async def bind(self, *bindings: Binding, check: Check = unchecked) -> None:
        """Bind streams to one exchange: all bindings, or none.

        Raises:
            ExchangeDoesNotExist: The source does not exist.
            StreamDoesNotExist: A destination does not exist.
            PreconditionFailed: The source takes no bindings.
            InternalError: The store refused.
        """
        (source,) = {binding.source for binding in bindings}
        if source == DEFAULT_EXCHANGE:
            raise PreconditionFailed("the default exchange takes no bindings")
        destinations = {binding.destination for binding in bindings}
        async with self.locks.hold(source), self._streams.locks.hold(*destinations):
            check()
            await self._bind(source, bindings)

    async def _bind(self, source: str, bindings: Sequence[Binding]) -> None:
        declared = self.declared(source)
        if declared.exchange.type not in ROUTES:
            raise PreconditionFailed(f"exchange {source!r} takes no bindings")
        added: dict[bytes, tuple[TableEntry, Binding, Stream]] = {}
        for binding in bindings:
            stream = self._streams.find(binding.destination)
            row = declared.binding_row(binding, stream.entry.generation)
            if row.key not in declared.bindings:
                added[row.key] = row, binding, stream
        if not added:
            return
        async with self.kept(declared):
            await self._put(declared, *(row for row, _, _ in added.values()))
            for key, (_, binding, stream) in added.items():
                self.join(declared, key, binding, stream)
            for stream in dict.fromkeys(stream for _, _, stream in added.values()):
                _warn_of_twins(declared, stream, self._streams.virtual_host)

    async def unbind(self, binding: Binding, *, check: Check = unchecked) -> None:
        """Remove a binding; do nothing if there is no such binding.

        Raises:
            ExchangeDoesNotExist: The source does not exist.
            StreamDoesNotExist: The destination does not exist.
            InternalError: The store refused.
        """
        async with self.locks.hold(binding.source):
            check()
            declared = self.declared(binding.source)
            stream = self._streams.find(binding.destination)
            key = declared.binding_row(binding, stream.entry.generation).key
            if key in declared.bindings:
                await self._unbind(declared, key, stream)

    async def _unbind(self, declared: Declared, key: bytes, stream: Stream) -> None:
        is_last = len(declared.bindings) == 1 and declared.exchange.auto_delete
        async with self.kept(declared):
            await self._remove(declared, key, *([declared.key] if is_last else []))
            if is_last:
                declared.is_stored = False
            if key in declared.bindings:  # its stream may have gone meanwhile
                declared.remove(key)
                stream.bound_by.discard(key)
                self._lost_binding(declared)

    # In memory, apart from the table

    def draft(self, exchange: Exchange) -> Declared:
        """Return a new exchange that is neither stored nor visible yet."""
        return Declared(
            exchange, self._streams.storage.new_generation(), is_stored=exchange.durable
        )

    def adopt(self, declared: Declared) -> None:
        """Make a stored exchange visible."""
        self._declared[declared.exchange.name] = declared
        self.by_number[declared.number] = declared

    def drop(self, declared: Declared) -> None:
        """Make an exchange invisible."""
        declared.governed.end()
        for key, binding in list(declared.bindings.items()):
            declared.remove(key)
            if binding.destination in self._streams:
                self._streams.find(binding.destination).bound_by.discard(key)
        if self._declared.get(declared.exchange.name) is declared:
            del self._declared[declared.exchange.name]
        self.by_number.pop(declared.number, None)

    @asynccontextmanager
    async def kept(self, declared: Declared) -> AsyncIterator[None]:
        """Keep an exchange while it is changed; if its last binding went, it goes at the end.

        The caller holds its lock.
        """
        declared.is_kept = True
        try:
            yield
        finally:
            is_to_go = declared.is_bereft and not declared.bindings
            declared.is_kept = declared.is_bereft = False
            if is_to_go:
                self.drop(declared)
                try:
                    await self._remove(declared, declared.key)
                except InternalError as error:
                    log.warning("exchange without bindings not removed error=%s", error)

    def join(self, declared: Declared, key: bytes, binding: Binding, stream: Stream) -> None:
        """Make a stored binding visible."""
        if not stream.is_deleted:
            declared.add(key, binding)
            stream.bound_by.add(key)

    def _lost_binding(self, declared: Declared) -> bool:
        """Drop an auto-delete exchange without bindings unless it is kept; True if it went."""
        if declared.bindings or not declared.exchange.auto_delete:
            return False
        declared.is_bereft = True
        if declared.is_kept:
            return False
        self.drop(declared)
        return True

    def _stream_gone(self, stream: Stream) -> None:
        """Forget the bindings of a stream; the table loses them with the stream."""
        for key in list(stream.bound_by):
            declared = self.by_number[number_in(key)]
            declared.remove(key)
            if self._lost_binding(declared):
                stream.bound_by.add(declared.key)

    # The table

    async def _put(self, declared: Declared, *rows: TableEntry) -> None:
        if declared.is_stored:
            with _refusals():
                await self._catalogue.put(topology=rows)

    async def _remove(self, declared: Declared, *keys: bytes) -> None:
        if declared.is_stored:
            with _refusals():
                await self._catalogue.remove(topology=keys)


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise InternalError if the store refuses."""
    try:
        yield
    except StoreError as error:
        raise InternalError(str(error)) from error


def _warn_of_twins(declared: Declared, stream: Stream, virtual_host: str) -> None:
    """Warn if a partition is bound to its super stream more than once."""
    if not declared.exchange.is_super_stream:
        return
    theirs = (declared.bindings[key] for key in stream.bound_by if key in declared.bindings)
    twins = list(islice(theirs, _SHOWN_MAX))
    if len(twins) > 1:
        log.warning(
            "partition bound more than once, and clients read it as often: remove all bindings"
            " but one super_stream=%s stream=%s bindings=%s",
            NameInHost(declared.exchange.name, virtual_host),
            stream.name,
            ", ".join(sorted(each.shown for each in twins)),
        )


def _check_new(exchange: Exchange) -> None:
    """Raise PreconditionFailed if such an exchange is not allowed."""
    if clean_name(exchange.name) != exchange.name:
        raise PreconditionFailed("an exchange's name must not contain line breaks")
    if exchange.type not in ROUTES:
        raise PreconditionFailed(f"exchanges of type {exchange.type!r} are not supported")
