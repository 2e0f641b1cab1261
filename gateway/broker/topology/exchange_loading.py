"""The rows of exchanges and bindings in the catalogue's table, and how they are loaded.

    amq.exchange.<number>          JSON: its declaration, its number, its state
    amq.binding.<number><hash>     JSON: exchange's number, stream's generation, key, arguments

Numbers and generations are never used twice, so a binding names exactly one exchange and one
stream. If either is gone, the binding is dead; the next opening removes it.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from gateway.broker.streams.catalogue import DELETING
from gateway.broker.streams.streams import Streams
from gateway.broker.topology.exchange import (
    BINDING_KEY,
    DIRECT,
    EXCHANGE_KEY,
    FANOUT,
    HEADERS,
    TOPIC,
    Binding,
    Declared,
    Exchange,
)
from gateway.broker.topology.exchanges import Exchanges
from store.api import TableEntry
from store.errors import CorruptSegment, StoreError

log = logging.getLogger(__name__)

_PREDECLARED: Final = (
    ("amq.direct", DIRECT),
    ("amq.fanout", FANOUT),
    ("amq.headers", HEADERS),
    ("amq.match", HEADERS),
    ("amq.rabbitmq.trace", TOPIC),
    ("amq.topic", TOPIC),
    ("amq.rabbitmq.log", TOPIC),  # bindings store a place in this list: add at the end
)


class ExchangeRow(NamedTuple):
    """An exchange as it is stored, with its number and its state."""

    exchange: Exchange
    number: int
    state: str


class BindingRow(NamedTuple):
    """A binding as it is stored, with the numbers of its exchange and its stream."""

    exchange: int
    stream: int
    routing_key: str
    arguments: dict[str, Any]


Rows = Mapping[bytes, ExchangeRow | BindingRow | None]


async def open_exchanges(streams: Streams) -> Exchanges:
    """Open the exchanges of a virtual host; its streams must be open.

    Dead rows are removed.

    Raises:
        CorruptSegment: A row is damaged.
    """
    exchanges = Exchanges(streams)
    for number, (name, kind) in enumerate(_PREDECLARED, start=1):
        is_internal = name.startswith("amq.rabbitmq.")
        exchange = Exchange(name, kind, internal=is_internal)
        exchanges.adopt(Declared(exchange, number, is_stored=True))
    rows, streams.catalogue.topology = streams.catalogue.topology, []
    try:
        unpacked = {row.key: unpack_row(row) for row in rows}
        dead = _load_exchanges(exchanges, streams, unpacked)
        dead += _load_bindings(exchanges, streams, unpacked)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = (
            f"the exchanges of the virtual host {streams.virtual_host!r} are damaged: {error!r}"
        )
        raise CorruptSegment(reason) from error
    try:
        await streams.catalogue.remove(topology=dead)
    except StoreError as error:
        log.warning("dead bindings not removed error=%s", error)
    return exchanges


def unpack_row(row: TableEntry) -> ExchangeRow | BindingRow | None:
    """Decode a row; None if it is of neither kind.

    Raises:
        ValueError: It was never written; or a like error.
    """
    fields = json.loads(row.value)
    if row.key.startswith(EXCHANGE_KEY):
        number, state = fields.pop("number"), fields.pop("state")
        return ExchangeRow(Exchange(**fields), number, state)
    return BindingRow(**fields) if row.key.startswith(BINDING_KEY) else None


def _load_exchanges(exchanges: Exchanges, streams: Streams, rows: Rows) -> list[bytes]:
    """Load the exchanges; return the keys of dead ones."""
    dead: list[bytes] = []
    for key in sorted(rows, reverse=True):  # of two with the same name the later one lives
        row = rows[key]
        if not isinstance(row, ExchangeRow):
            continue
        streams.storage.note_generation(row.number)
        if row.state == DELETING or row.exchange.name in exchanges:
            dead.append(key)
        else:
            exchanges.adopt(Declared(row.exchange, row.number, is_stored=True))
    return dead


def _load_bindings(exchanges: Exchanges, streams: Streams, rows: Rows) -> list[bytes]:
    """Load the bindings; return the keys of dead ones, and of exchanges that go with them."""
    dead: list[bytes] = []
    unbound: set[int] = set()
    by_generation = {stream.entry.generation: stream for stream in streams}
    for key, row in rows.items():
        if not isinstance(row, BindingRow):
            continue
        declared, stream = exchanges.by_number.get(row.exchange), by_generation.get(row.stream)
        if declared is None or stream is None:
            dead.append(key)
            unbound.add(row.exchange)
            continue
        binding = Binding(
            source=declared.exchange.name,
            destination=stream.name,
            routing_key=row.routing_key,
            arguments=row.arguments,
        )
        exchanges.join(declared, key, binding, stream)
    for declared in filter(None, map(exchanges.by_number.get, unbound)):
        if declared.exchange.auto_delete and not declared.bindings:
            dead.append(declared.key)
            exchanges.drop(declared)
    return dead
