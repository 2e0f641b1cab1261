r"""The exchanges of one virtual host, and the bindings by which they lead to streams.

They lie in the catalogue's table, beside the streams:

    amq.exchange.<number>          JSON: what it is, its number, its state
    amq.binding.<number><hash>     JSON: exchange's number, stream's generation, key, arguments

Numbers and generations are never used twice, so a binding says exactly which exchange and which
stream it joins. One whose exchange or stream is gone means nothing; the next opening removes it.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.broker.catalogue import DELETING, Catalogue
from gateway.broker.errors import ExchangeDoesNotExist, InternalError, PreconditionFailed
from gateway.broker.exchange import (
    BINDING_KEY,
    DIRECT,
    EXCHANGE_KEY,
    FANOUT,
    HEADERS,
    PARTITION_ORDER,
    ROUTES,
    TOPIC,
    Binding,
    Declared,
    Exchange,
    number_in,
)
from gateway.broker.naming import clean_name
from gateway.broker.streams import Stream, Streams
from gateway.broker.turns import Check, Turns, unchecked
from store.api import TableEntry
from store.errors import CorruptSegment, StoreError

__all__ = [
    "DEFAULT_EXCHANGE",
    "DIRECT",
    "PARTITION_ORDER",
    "Binding",
    "Declared",
    "Exchange",
    "Exchanges",
    "is_predeclared",
    "open_exchanges",
]

log = logging.getLogger(__name__)

DEFAULT_EXCHANGE: Final = ""
"""Leads to every stream by its name; nothing else can be bound to it."""

_PREDECLARED: Final = (
    ("amq.direct", DIRECT),
    ("amq.fanout", FANOUT),
    ("amq.headers", HEADERS),
    ("amq.match", HEADERS),
    ("amq.rabbitmq.trace", TOPIC),
    ("amq.topic", TOPIC),
    ("amq.rabbitmq.log", TOPIC),  # bindings hold the number of the place here: add at the end
)


class Exchanges:
    """All exchanges of a virtual host. Create it with `open_exchanges`."""

    def __init__(self, streams: Streams) -> None:
        self.turns = Turns()
        """Declarations, bindings and deletions of one exchange go one after the other."""
        self._streams = streams
        self._catalogue: Catalogue = streams.catalogue
        self._declared: dict[str, Declared] = {}
        self._by_number: dict[int, Declared] = {}
        for number, (name, kind) in enumerate(_PREDECLARED, start=1):
            is_internal = name.startswith("amq.rabbitmq.")
            self.adopt(Declared(Exchange(name, kind, internal=is_internal), number, is_stored=True))
        streams.when_gone = self._stream_gone

    # Looking

    def all(self) -> list[Exchange]:
        """Return every exchange but the default one."""
        return [each.exchange for each in self._declared.values()]

    def bindings(self) -> list[Binding]:
        """Return every binding but those of the default exchange, which has each stream."""
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
        """Return where a routing key leads, but for alternate exchanges (`VirtualHost.route`).

        Raises:
            ExchangeDoesNotExist: No such exchange.
        """
        if exchange == DEFAULT_EXCHANGE:
            return [routing_key] if routing_key in self._streams else []
        return self.declared(exchange).route(routing_key)

    def partitions(self, exchange: str) -> Sequence[str]:
        """Return the streams bound to an exchange in the order that their bindings state.

        Raises:
            ExchangeDoesNotExist: No such exchange.
        """
        if exchange == DEFAULT_EXCHANGE:
            return [stream.name for stream in self._streams]
        return self.declared(exchange).partitions

    def orders_of(self, exchange: str, stream: str) -> list[int | None]:
        """Return the order that each binding of a stream to an exchange states, if it does."""
        if exchange == DEFAULT_EXCHANGE:
            return [None] if stream in self._streams else []
        declared = self._declared.get(exchange)
        return [] if declared is None else declared.orders_of(stream)

    # Exchanges

    async def declare(self, exchange: Exchange, *, check: Check = unchecked) -> None:
        """Make sure that an exchange exists.

        Args:
            exchange: It.
            check: Called in the turn; here and below what it raises ends this.

        Raises:
            PreconditionFailed: A bad name, an unknown type, or it exists as something else.
            InternalError: The store refused.
        """
        await self.turns.take(exchange.name)
        try:
            check()
            existing = self._declared.get(exchange.name)
            if existing is not None:
                existing.exchange.check_again(exchange)
                return
            if clean_name(exchange.name) != exchange.name:
                raise PreconditionFailed("an exchange's name has no line breaks")
            if exchange.type not in ROUTES:
                raise PreconditionFailed(f"exchanges of type {exchange.type!r} are not supported")
            declared = self.draft(exchange)
            await self._put(declared, declared.row())
            self.adopt(declared)
        finally:
            self.turns.end(exchange.name)
        log.info("exchange declared exchange=%s type=%s", exchange.name, exchange.type)

    async def delete(self, name: str, *, check: Check = unchecked) -> None:
        """Delete an exchange and its bindings; the streams stay.

        Raises:
            PreconditionFailed: It is one of those that are always there.
            ExchangeDoesNotExist: There is none.
            InternalError: The store refused.
        """
        if is_predeclared(name):
            raise PreconditionFailed(f"exchange {name!r} cannot be deleted")
        await self.turns.take(name)
        try:
            check()
            declared = self.declared(name)
            await self._remove(declared, declared.key, *declared.bindings)
            self.drop(declared)
        finally:
            self.turns.end(name)
        log.info("exchange deleted exchange=%s", name)

    # Bindings

    async def bind(self, *bindings: Binding, check: Check = unchecked) -> None:
        """Let routing keys of one exchange lead to streams: all that are given, or none.

        Raises:
            ExchangeDoesNotExist: The source.
            StreamDoesNotExist: A destination.
            PreconditionFailed: The source takes no bindings.
            InternalError: The store refused.
        """
        (source,) = {binding.source for binding in bindings}
        if source == DEFAULT_EXCHANGE:
            raise PreconditionFailed("the default exchange takes no bindings")
        destinations = {binding.destination for binding in bindings}
        await self.turns.take(source)
        try:
            await self._streams.turns.take_all(destinations)
            try:
                check()
                await self._bind(source, bindings)
            finally:
                self._streams.turns.end_all(destinations)
        finally:
            self.turns.end(source)

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
        self.keep(declared)
        try:
            await self._put(declared, *(row for row, _, _ in added.values()))
            for key, (_, binding, stream) in added.items():
                self.join(declared, key, binding, stream)
        finally:
            await self.let_go(declared)

    async def unbind(self, binding: Binding, *, check: Check = unchecked) -> None:
        """Undo a binding; nothing happens if there is none like this.

        Raises:
            ExchangeDoesNotExist: The source.
            StreamDoesNotExist: The destination.
            InternalError: The store refused.
        """
        await self.turns.take(binding.source)
        try:
            check()
            declared = self.declared(binding.source)
            stream = self._streams.find(binding.destination)
            key = declared.binding_row(binding, stream.entry.generation).key
            if key in declared.bindings:
                await self._unbind(declared, key, stream)
        finally:
            self.turns.end(binding.source)

    async def _unbind(self, declared: Declared, key: bytes, stream: Stream) -> None:
        is_last = len(declared.bindings) == 1 and declared.exchange.auto_delete
        self.keep(declared)
        try:
            await self._remove(declared, key, *([declared.key] if is_last else []))
            if is_last:
                declared.is_stored = False
            if key in declared.bindings:  # its stream may have gone meanwhile
                declared.remove(key)
                stream.bound_by.discard(key)
                self._lost_binding(declared)
        finally:
            await self.let_go(declared)

    # What is known, apart from the table

    def draft(self, exchange: Exchange) -> Declared:
        """Return a new exchange that is neither stored nor known yet."""
        return Declared(
            exchange, self._streams.storage.new_generation(), is_stored=exchange.durable
        )

    def adopt(self, declared: Declared) -> None:
        """Know an exchange that is stored."""
        self._declared[declared.exchange.name] = declared
        self._by_number[declared.number] = declared

    def drop(self, declared: Declared) -> None:
        """Know an exchange no more."""
        for key, binding in list(declared.bindings.items()):
            declared.remove(key)
            if binding.destination in self._streams:
                self._streams.find(binding.destination).bound_by.discard(key)
        if self._declared.get(declared.exchange.name) is declared:
            del self._declared[declared.exchange.name]
        self._by_number.pop(declared.number, None)

    def keep(self, declared: Declared) -> None:
        """Let an exchange not go with its last binding until `let_go`; whose turn it is may."""
        declared.is_kept = True

    async def let_go(self, declared: Declared) -> None:
        """End `keep`: if the exchange should have gone meanwhile, and nothing is bound, it goes."""
        is_to_go = declared.is_bereft and not declared.bindings
        declared.is_kept = declared.is_bereft = False
        if not is_to_go:
            return
        self.drop(declared)
        try:
            await self._remove(declared, declared.key)
        except InternalError as error:
            log.warning("exchange without bindings not removed error=%s", error)

    def join(self, declared: Declared, key: bytes, binding: Binding, stream: Stream) -> None:
        """Know a binding that is stored."""
        if not stream.is_deleted:
            declared.add(key, binding)
            stream.bound_by.add(key)

    def _lost_binding(self, declared: Declared) -> bool:
        """Let an exchange go that should with its last binding, now or later; tell whether now."""
        if declared.bindings or not declared.exchange.auto_delete:
            return False
        declared.is_bereft = True
        if declared.is_kept:
            return False
        self.drop(declared)
        return True

    def _stream_gone(self, stream: Stream) -> None:
        """Forget the bindings of a stream; in the table they go with it."""
        for key in list(stream.bound_by):
            declared = self._by_number[number_in(key)]
            declared.remove(key)
            if self._lost_binding(declared):
                stream.bound_by.add(declared.key)

    # The table

    async def _put(self, declared: Declared, *rows: TableEntry) -> None:
        if not declared.is_stored:
            return
        try:
            await self._catalogue.put(topology=rows)
        except StoreError as error:
            raise InternalError(str(error)) from error

    async def _remove(self, declared: Declared, *keys: bytes) -> None:
        if not declared.is_stored:
            return
        try:
            await self._catalogue.remove(topology=keys)
        except StoreError as error:
            raise InternalError(str(error)) from error

    async def load(self) -> None:
        """Take over what the table holds; remove what means nothing any more."""
        rows, self._catalogue.topology = self._catalogue.topology, []
        try:
            values = {row.key: json.loads(row.value) for row in rows}
            dead = self._load_exchanges(values)
            dead += self._load_bindings(values)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            host = self._streams.virtual_host
            reason = f"the exchanges of the virtual host {host!r} are damaged: {error!r}"
            raise CorruptSegment(reason) from error
        try:
            await self._catalogue.remove(topology=dead)
        except StoreError as error:
            log.warning("dead bindings not removed error=%s", error)

    def _load_exchanges(self, values: Mapping[bytes, dict[str, Any]]) -> list[bytes]:
        """Take over the exchanges; return the keys of those that are dead."""
        dead: list[bytes] = []
        found = [key for key in values if key.startswith(EXCHANGE_KEY)]
        for key in sorted(found, reverse=True):  # of two with one name the later one lives
            fields = dict(values[key])
            number, state = fields.pop("number"), fields.pop("state")
            self._streams.storage.note_generation(number)
            exchange = Exchange(**fields)
            if state == DELETING or exchange.name in self._declared:
                dead.append(key)
            else:
                self.adopt(Declared(exchange, number, is_stored=True))
        return dead

    def _load_bindings(self, values: Mapping[bytes, dict[str, Any]]) -> list[bytes]:
        """Take over the bindings; return the keys of dead ones, and of exchanges that go too."""
        dead: list[bytes] = []
        bereft: set[int] = set()
        streams = {stream.entry.generation: stream for stream in self._streams}
        for key, fields in values.items():
            if not key.startswith(BINDING_KEY):
                continue
            number = fields["exchange"]
            declared, stream = self._by_number.get(number), streams.get(fields["stream"])
            if declared is None or stream is None:
                dead.append(key)
                bereft.add(number)
                continue
            routing_key, arguments = fields["routing_key"], fields["arguments"]
            binding = Binding(declared.exchange.name, stream.name, routing_key, arguments)
            self.join(declared, key, binding, stream)
        for declared in [self._by_number[each] for each in bereft & self._by_number.keys()]:
            if declared.exchange.auto_delete and not declared.bindings:
                dead.append(declared.key)
                self.drop(declared)
        return dead


def is_predeclared(name: str) -> bool:
    """Tell whether an exchange is always there."""
    return name == DEFAULT_EXCHANGE or name.startswith("amq.")


async def open_exchanges(streams: Streams) -> Exchanges:
    """Open what a virtual host has of exchanges, when its streams are open."""
    exchanges = Exchanges(streams)
    await exchanges.load()
    return exchanges
