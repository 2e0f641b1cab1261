"""Everything that clients and administrators can ask a broker for, asked."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Final

from gateway.broker.errors import BrokerError
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.log.damage.errors import LogError
from gateway.log.derived.filters import SubscriptionFilter
from gateway.log.log import StreamLog
from gateway.log.reading.locations import StartKind, locate
from store.errors import StoreError
from tests.chunks import Chunk
from tests.damage.ledger import Key, Stream
from tests.unit.gateway.log.log_rig import Tap
from tests.unit.gateway.stream.link_rig import Broker

FILTER_VALUES: Final = (b"red", b"blue")
REFUSED: Final = "refused"
"""The answer where a publisher's last id is not told."""


@dataclass
class LookUp:
    """A place that was sought, and where reading from there began.

    Attributes:
        kind: By what.
        value: The offset or time.
        offset: The chunk that was named.
        delivered: The first offset that came, None if nothing did.
    """

    kind: StartKind
    value: int
    offset: int
    delivered: int | None


@dataclass
class Reading:
    """What was answered.

    Attributes:
        records: By stream, chunks as (first offset, timestamp, bodies), in the order of delivery.
        filtered: By stream and filter value, offsets and bodies that came.
        look_ups: By stream.
        values: All else, by key.
        refused: Streams that could not be opened or read to their end, and why.
    """

    records: dict[Stream, list[tuple[int, int, list[bytes]]]] = field(default_factory=dict)
    filtered: dict[tuple[Stream, bytes], dict[int, bytes]] = field(default_factory=dict)
    look_ups: dict[Stream, list[LookUp]] = field(default_factory=dict)
    values: dict[Key, object] = field(default_factory=dict)
    refused: dict[Stream, str] = field(default_factory=dict)
    unclean_count: int = 0

    def offsets(self, stream: Stream) -> dict[int, bytes]:
        """Return all records of a stream."""
        return {
            first + number: body
            for first, _, bodies in self.records.get(stream, [])
            for number, body in enumerate(bodies)
        }


def rows_of(broker: Broker) -> dict[Key, object]:
    """Return what administrators are told: users, rights, policies, streams, bindings."""
    access, hosts = broker.access, broker.virtual_hosts
    rows: dict[Key, object] = {("user", each.name): each.pack() for each in access.users()}
    for permission in access.permissions():
        rows["permission", permission.user, permission.virtual_host] = permission.pack()
    for name in hosts.names():
        host = hosts.find(name)
        assert host is not None
        rows["host", name] = hosts.entry(name).pack()
        if limits := access.virtual_host_limits(name):
            rows["limits", name] = dict(limits)
        rows |= _rows_of_host(host)
    return rows


def _rows_of_host(host: VirtualHost) -> dict[Key, object]:
    name = host.name
    rows: dict[Key, object] = {
        ("policy", name, each.name): each.pack() for each in host.policies.all()
    }
    for policy in host.policies.operators.all():
        rows["operator-policy", name, policy.name] = policy.pack()
    for stream in host.streams:
        rows["stream", name, stream.name] = stream.entry.pack()
    for exchange in host.exchanges.all():
        rows["exchange", name, exchange.name] = repr(exchange)
    for binding in host.exchanges.bindings():
        arguments = json.dumps(binding.arguments, sort_keys=True)
        key = ("binding", name, binding.source, binding.routing_key, binding.destination)
        rows[key] = arguments
    return rows


def read_all(broker: Broker, chance: random.Random | None) -> Reading:
    """Ask for everything; look-ups and filtered reads only with `chance`, which draws places."""
    reading = Reading(values=rows_of(broker), unclean_count=broker.openings.unclean_count)
    for name in broker.virtual_hosts.names():
        host = broker.virtual_hosts.find(name)
        assert host is not None
        for stream in host.streams:
            at = (name, stream.name)
            try:
                log = broker.store_rig.run(host.streams.logs.of(stream))
                _read_stream(broker, log, at, reading)
                if chance is not None:
                    _look_up(broker, log, at, chance, reading)
                    _read_filtered(broker, log, at, reading)
            except (BrokerError, StoreError, LogError) as error:
                reading.refused[at] = str(error)
            _read_offsets(broker, host, at, reading)
    return reading


def _read_stream(broker: Broker, log: StreamLog, at: Stream, reading: Reading) -> None:
    tap = Tap(broker.store_rig, log, log.start, takes_regions=False, wanted=None)
    reading.records[at] = [_taken_apart(chunk) for chunk in tap.all_now()]
    if tap.cursor.failure is not None:
        reading.refused[at] = str(tap.cursor.failure)
    if log.sequences.damaged or log.read_only is not None:
        reading.values["sequence", *at] = REFUSED
    else:
        for reference, last in log.sequences.all().items():
            reading.values["sequence", *at, reference.decode(errors="backslashreplace")] = last


def _taken_apart(chunk: Chunk) -> tuple[int, int, list[bytes]]:
    return chunk.chunk_id, chunk.timestamp_ms, chunk.records()


def _look_up(
    broker: Broker, log: StreamLog, at: Stream, chance: random.Random, reading: Reading
) -> None:
    records = reading.records[at]
    if not records:
        return
    end = records[-1][0] + len(records[-1][2])
    wanted = [
        (StartKind.OFFSET, chance.randrange(end + 1)),
        (StartKind.TIMESTAMP, chance.choice(records)[1] + chance.choice((-1, 0, 1))),
        (StartKind.LAST, 0),
    ]
    for kind, value in wanted:
        start = broker.store_rig.run(locate(log, kind, value))
        tap = Tap(broker.store_rig, log, start.position, takes_regions=False, wanted=None)
        delivered = _first_of(tap)
        look_up = LookUp(kind, value, start.offset, delivered)
        reading.look_ups.setdefault(at, []).append(look_up)


def _first_of(tap: Tap) -> int | None:
    while tap.cursor.position < tap.cursor.log.committed_length:
        woken = tap.wake_count
        delivery = tap.next()
        if delivery is not None:
            return delivery.chunk_id
        if tap.cursor.failure is not None:
            return None
        if tap.cursor.position < tap.cursor.log.committed_length:
            tap.rig.loop.run_until(lambda: tap.wake_count > woken)  # noqa: B023  # used at once
    return None


def _read_filtered(broker: Broker, log: StreamLog, at: Stream, reading: Reading) -> None:
    if at[1] != "filtered":
        return
    for value in FILTER_VALUES:
        wanted = SubscriptionFilter([value], unfiltered=False)
        tap = Tap(broker.store_rig, log, log.start, takes_regions=False, wanted=wanted)
        reading.filtered[at, value] = {
            chunk.chunk_id + number: body
            for chunk in tap.all_now()
            for number, body in enumerate(chunk.records())
        }


def _read_offsets(broker: Broker, host: VirtualHost, at: Stream, reading: Reading) -> None:
    stream = host.streams.find(at[1])
    found = broker.store_rig.run(host.streams.logs.tracking.offsets_of(stream.entry.generation))
    for reference, offset in found.items():
        reading.values["offset", *at, reference.decode(errors="backslashreplace")] = offset
