"""Requests on what is in a stream: one message more, and what is remembered of its clients."""

import shutil
from typing import Final

from gateway.broker.access.access import Demand, to_publish, to_read
from gateway.broker.errors import ExchangeDoesNotExist
from gateway.broker.topology.exchanges import DEFAULT_EXCHANGE
from gateway.log.log import StreamLog
from gateway.log.records.writing import RECORD_BYTES_MAX, RecordTooLarge, RecordWriter
from gateway.management.administration import Administration, Role
from gateway.management.errors import WrongRequest
from gateway.management.requests.request import Host, request
from gateway.pending import Pending
from store.errors import StoreError

KEYS_MAX: Final = 1_000
"""Routing keys of one message: as many as a super stream has partitions, unless a setting says
more. RabbitMQ takes any number; a body of 2 MiB has room for 100,000."""
_AROUND_BYTES: Final = 128
"""Bytes that are stored around a record, in a chunk of its own."""
_WRITTEN_TIMES: Final = 2
"""A small record goes through the journal as well."""


def _to_publish(host: Host, exchange: str) -> list[Demand]:
    """Demand to write to the exchange, which is there: where it leads to is its own affair."""
    if exchange not in host.exchanges:
        raise ExchangeDoesNotExist(exchange)
    return to_publish(exchange)


@request(Role.MANAGEMENT, needs=_to_publish)
async def publish(
    administration: Administration,
    host: Host,
    exchange: str,
    routing_keys: tuple[str, ...],
    filter_value: str | None,
    body: bytes,
) -> object:
    """Add one message to every stream that any of its routing keys leads to, once."""
    if not administration.service.takes_publishers:
        raise WrongRequest("nobody may publish: the server is short of disk")
    if exchange != DEFAULT_EXCHANGE and host.exchanges.declared(exchange).exchange.internal:
        where = f"exchange {exchange!r} in vhost {host.name!r}"
        raise WrongRequest(f"403 ACCESS_REFUSED - cannot publish to internal {where}")
    if len(body) > RECORD_BYTES_MAX:
        raise WrongRequest(f"a message has {RECORD_BYTES_MAX} bytes at most")
    if len(routing_keys) > KEYS_MAX:
        raise WrongRequest(f"a message has {KEYS_MAX} routing keys at most")
    names = sorted({name for key in routing_keys for name in await host.route(exchange, key)})
    _require_space(administration, len(names) * (len(body) + _AROUND_BYTES))
    for name in names:
        log = await host.streams.logs.of(host.streams.find(name))
        raw = None if filter_value is None else filter_value.encode()
        try:
            await _add(log, body, raw)
        except RecordTooLarge as error:
            raise WrongRequest(str(error)) from error
    return {"routed": bool(names)}


class _Stored:
    """Learns of the one record that was put."""

    def __init__(self) -> None:
        self.outcome: Pending[bool] = Pending()

    def committed(self, count: int) -> None:
        self.outcome.settle(count == 1)

    def lost(self, count: int) -> None:
        self.outcome.settle(count == 0)


async def _add(log: StreamLog, record: bytes, filter_value: bytes | None) -> None:
    """Put a record, and wait until it is stored. Raises RecordTooLarge, StoreError."""
    sink = _Stored()
    RecordWriter(log, sink).put(record, filter_value)
    if not await sink.outcome:
        raise log.failure or StoreError("the record was not stored")


def _require_space(administration: Administration, size: int) -> None:
    """Demand that all of a message finds space, before any of it is written. Raises WrongRequest.

    Otherwise a message that the disk cannot hold would be refused half way, with the disk full.
    """
    if size <= RECORD_BYTES_MAX:
        return
    try:
        free = shutil.disk_usage(administration.service.about.data).free
    except OSError:
        return
    if size * _WRITTEN_TIMES > free:
        raise WrongRequest(f"nothing is published: it takes {size} bytes, and {free} are free")


@request(Role.MANAGEMENT, needs=to_read)
async def list_tracking(_: Administration, host: Host, name: str, type: str = "all") -> object:  # noqa: A002  # as the request calls it
    """Return the stored offsets of a stream, and the last publishing ids of its publishers."""
    stream = host.streams.find(name)
    result: dict[str, dict[str, int]] = {}
    log = await host.streams.logs.of(stream)
    if type != "offset":
        result["writers"] = _named(log.sequences.all())
    if type != "writer":
        offsets = await host.streams.logs.tracking.offsets_of(stream.entry.generation)
        result["offsets"] = _named(offsets)
    return result


def _named(found: dict[bytes, int]) -> dict[str, int]:
    return {raw.decode("utf-8", "surrogateescape"): found[raw] for raw in sorted(found)}
