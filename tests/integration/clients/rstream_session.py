"""Short ways to publish and read with the stock client `rstream`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any, Final, TypeAlias

import cramjam
from rstream import (
    CompressionType,
    ConfirmationStatus,
    Consumer,
    ConsumerOffsetSpecification,
    MessageContext,
    OffsetType,
    Producer,
)
from rstream.compression import ICompressionCodec, StreamCompressionCodecs

from tests.integration.clients.loop import eventually
from tests.integration.server import Endpoint

Records = list[tuple[int, bytes]]
# Keyword arguments handed on to the client, and its records, whatever its decoder made of them.
Passed: TypeAlias = Any

# 1,000 records of at most 113 bytes and their heads: far below the 1 MiB of a frame,
# which the server enforces and `send_batch` does not look at.
BATCH: Final = 1_000

FIRST: Final = ConsumerOffsetSpecification(OffsetType.FIRST)
LOGIN: Final[dict[str, Any]] = {"username": "guest", "password": "guest"}


@asynccontextmanager
async def producer_of(endpoint: Endpoint, **options: Passed) -> AsyncIterator[Producer]:
    """Connect a producer for the length of the block."""
    async with Producer(endpoint.host, endpoint.port, **LOGIN, **options) as producer:
        yield producer


@asynccontextmanager
async def consumer_of(endpoint: Endpoint, **options: Passed) -> AsyncIterator[Consumer]:
    """Connect a consumer for the length of the block."""
    async with Consumer(endpoint.host, endpoint.port, **LOGIN, **options) as consumer:
        yield consumer


async def publish(
    producer: Producer, stream: str, records: Iterable[Any], name: str | None = None
) -> list[int]:
    """Publish in batches and wait until every record is confirmed.

    Returns:
        The confirmed publishing ids, in the order in which they were confirmed.
    """
    pending = list(records)
    count = len(pending)
    confirmed: list[int] = []

    def on_confirm(status: ConfirmationStatus) -> None:
        assert status.is_confirmed, status
        confirmed.append(status.message_id)

    for first in range(0, count, BATCH):
        batch = pending[first : first + BATCH]
        await producer.send_batch(stream, batch, publisher_name=name, on_publish_confirm=on_confirm)
    await eventually(lambda: len(confirmed) >= count)
    return confirmed


async def read(
    endpoint: Endpoint,
    stream: str,
    count: int,
    offset: ConsumerOffsetSpecification = FIRST,
    **options: Passed,
) -> Records:
    """Read until `count` records are there, and a little longer for any too many."""
    async with consumer_of(endpoint) as consumer:
        records = await subscribe(consumer, stream, offset, **options)
        await eventually(lambda: len(records) >= count)
        await asyncio.sleep(0.05)
    return records


async def subscribe(
    consumer: Consumer,
    stream: str,
    offset: ConsumerOffsetSpecification = FIRST,
    **options: Passed,
) -> Records:
    """Subscribe; the returned list grows with every record that arrives."""
    records: Records = []

    def on_record(record: Passed, context: MessageContext) -> None:
        records.append((context.offset, bytes(record)))

    await consumer.subscribe(stream, on_record, offset_specification=offset, **options)
    return records


class CramjamCodec(ICompressionCodec):
    """Sub-entries compressed by a module of cramjam; the server must not care which."""

    def __init__(self, kind: CompressionType, module: ModuleType) -> None:
        self._kind = kind
        self._module = module
        self._plain_size = 0
        self._count = 0
        self._packed = b""

    def compress(self, messages: Sequence[Passed]) -> None:
        """Pack records, each behind its size."""
        plain = b"".join(len(m).to_bytes(4, "big") + m for m in map(bytes, messages))
        self._plain_size = len(plain)
        self._count = len(messages)
        self._packed = bytes(self._module.compress(plain))

    def uncompress(self, compressed_data: bytes, uncompressed_data_size: int) -> bytes:
        """Unpack what `compress` made."""
        plain = bytes(self._module.decompress(bytes(compressed_data)))
        assert len(plain) == uncompressed_data_size
        return plain

    def compressed_size(self) -> int:
        """Count the bytes sent."""
        return len(self._packed)

    def uncompressed_size(self) -> int:
        """Count the bytes that they stand for."""
        return self._plain_size

    def messages_count(self) -> int:
        """Count the records."""
        return self._count

    def compression_type(self) -> int:
        """Return the number of this compression in the protocol."""
        return int(self._kind.value)

    def data(self) -> bytes:
        """Return the bytes to send."""
        return self._packed


def register_codecs() -> None:
    """Teach rstream the three compressions of the protocol that it lacks."""
    for kind, module in (
        (CompressionType.Snappy, cramjam.snappy),
        (CompressionType.Lz4, cramjam.lz4),
        (CompressionType.Zstd, cramjam.zstd),
    ):
        StreamCompressionCodecs.register_codec(kind, CramjamCodec(kind, module))
