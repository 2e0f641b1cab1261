"""Chunks as delivered, and AMQP, written apart from the package's own code for them."""

import zlib
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any, Final

from pyspark_hutch.columns import WantedColumns
from pyspark_hutch.decoding import vectors
from pyspark_hutch.decoding.decoder import Decoder
from tests.chunks import HEADER, MAGIC_AND_VERSION, Entry, SubBatch
from tests.property.gateway.kernel_builds import load

KERNEL: Final = "pyspark_hutch.kernel.entries"
WAYS: Final = ("compiled", "interpreted", "numpy")
EVERYTHING: Final = 1 << 62
TIMESTAMP_MS: Final = 1_700_000_000_123


def way_of(name: str) -> ModuleType:
    """The loops over entries, in one of the ways to run them."""
    return vectors if name == "numpy" else load(KERNEL, name)


def data_of(entries: Iterable[Entry]) -> bytes:
    """Entries behind one another."""
    return b"".join(
        entry.encoded() if isinstance(entry, SubBatch) else len(entry).to_bytes(4) + entry
        for entry in entries
    )


def chunk_of(
    *entries: Entry,
    chunk_id: int = 0,
    timestamp_ms: int = TIMESTAMP_MS,
    kind: int = 0,
    records: int | None = None,
    entry_count: int | None = None,
    magic: int = MAGIC_AND_VERSION,
) -> bytes:
    """A chunk as a Deliver carries it, with trailer and filter sizes that are not there."""
    data = data_of(entries)
    if records is None:
        records = sum(e.record_count if isinstance(e, SubBatch) else 1 for e in entries)
    count = len(entries) if entry_count is None else entry_count
    crc = zlib.crc32(data)
    header = (count, records, timestamp_ms, 1, chunk_id, crc, len(data), 13, 16, b"\0\0\0")
    return HEADER.pack(magic, kind, *header) + data


def batches_of(
    chunks: Iterable[bytes | bytearray | memoryview],
    wanted: WantedColumns,
    way: ModuleType | None = None,
    low: int = 0,
    high: int = EVERYTHING,
) -> list[Any]:
    """Decode chunks to batches."""
    decoder = Decoder(wanted, way)
    batches = [batch for chunk in chunks for batch in decoder.add(chunk, low, high)]
    batches += decoder.finish()
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema == wanted.schema()
    return batches


def rows_of(
    chunks: Iterable[bytes | bytearray | memoryview],
    wanted: WantedColumns,
    way: ModuleType | None = None,
    low: int = 0,
    high: int = EVERYTHING,
) -> list[dict[str, Any]]:
    """Decode chunks to rows."""
    batches = batches_of(chunks, wanted, way, low, high)
    return [row for batch in batches for row in batch.to_pylist()]


def sized(code: int, raw: bytes) -> bytes:
    """A binary (a0), text (a1) or symbol (a3), short where it can be."""
    if len(raw) < 256:
        return bytes((code, len(raw))) + raw
    return bytes((code + 0x10,)) + len(raw).to_bytes(4) + raw


def compound(code: int, items: Sequence[bytes]) -> bytes:
    """A list (c0) or map (c1), short where it can be."""
    content = b"".join(items)
    if len(content) < 255 and len(items) < 256:
        return bytes((code, len(content) + 1, len(items))) + content
    sizes = (len(content) + 4).to_bytes(4) + len(items).to_bytes(4)
    return bytes((code + 0x10,)) + sizes + content


def text(value: str) -> bytes:
    return sized(0xA1, value.encode())


def listed(*items: bytes) -> bytes:
    return compound(0xC0, items)


def mapped(**pairs: bytes) -> bytes:
    return compound(0xC1, [part for key, value in pairs.items() for part in (text(key), value)])


def section(code: int, value: bytes, *, is_long: bool = False) -> bytes:
    """A section, with its code as a small number or in eight bytes."""
    return (b"\0\x80" + code.to_bytes(8) if is_long else bytes((0, 0x53, code))) + value


def data(body: bytes) -> bytes:
    """A message that is one data section."""
    return section(0x75, sized(0xA0, body))
