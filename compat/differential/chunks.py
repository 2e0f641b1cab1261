"""Delivered chunks in words: each record with its offset, whatever chunk brought it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from compat.differential.reading import CutShort, Fields

HEADER_BYTES = 48
SUB_BATCH_FLAG = 0x80


@dataclass(frozen=True, slots=True)
class Piece:
    """One entry of a chunk.

    Attributes:
        offset: The offset of its first record.
        records: How many records it holds.
        text: What is compared.
    """

    offset: int
    records: int
    text: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """One Deliver frame.

    Attributes:
        subscription_id: The subscription that got it.
        head: The version of the command, and the header's fields that are the same on every
            server if the chunk has the same entries.
        pieces: Its entries.
        fault: What is wrong with it, if anything: wrong magic, CRC or counts.
    """

    subscription_id: int
    head: str
    pieces: tuple[Piece, ...]
    fault: str

    @property
    def record_count(self) -> int:
        """Number of records in it."""
        return sum(piece.records for piece in self.pieces)


def delivery(version: int, fields: Fields) -> Delivery:
    """Read a Deliver behind its key and version.

    What is left out: the timestamp, and the epoch, which counts how often a server was started.

    Source: RabbitMQ stream protocol, Deliver; osiris_log.erl, chunk format.
    """
    subscription_id = fields.number(1)
    committed = f" committed {fields.number(8)}" if version > 1 else ""
    magic, kind, entries = fields.number(1), fields.number(1), fields.number(2)
    records = fields.number(4)
    fields.take(16)  # timestamp, epoch
    first = fields.number(8)
    crc, data_bytes, trailer_bytes = (fields.number(4) for _ in range(3))
    bloom_bytes, reserved = fields.number(1), fields.number(3)
    data = fields.rest()
    head = (
        f"v{version}{committed} chunk {first} type {kind} entries {entries} records {records} "
        f"data {data_bytes} trailer {trailer_bytes} bloom {bloom_bytes} reserved {reserved}"
    )
    faults = [
        text
        for text, is_wrong in (
            (f"magic {magic:#x}", magic != 0x50),  # noqa: PLR2004 - magic 5, version 0
            (f"{len(data)} bytes follow, header says {data_bytes}", len(data) != data_bytes),
            ("CRC is wrong", zlib.crc32(data) != crc),
        )
        if is_wrong
    ]
    try:
        pieces = pieces_of(data, first)
    except CutShort as error:
        return Delivery(subscription_id, head, (), f"{'; '.join(faults)} {error}".strip())
    if len(pieces) != entries or sum(piece.records for piece in pieces) != records:
        faults.append("the counts are wrong")
    return Delivery(subscription_id, head, tuple(pieces), "; ".join(faults))


def pieces_of(data: bytes, first: int) -> list[Piece]:
    """Split the data section of a chunk into its entries."""
    fields = Fields(data)
    pieces: list[Piece] = []
    offset = first
    while not fields.is_done:
        piece = next_piece(fields, offset)
        pieces.append(piece)
        offset += piece.records
    return pieces


def next_piece(fields: Fields, offset: int) -> Piece:
    """Read one entry, which begins at `offset`."""
    if not fields.data[fields.position] & SUB_BATCH_FLAG:
        return Piece(offset, 1, f"{offset}={shortened(fields.take(fields.number(4)))}")
    flags, records, uncompressed = fields.number(1), fields.number(2), fields.number(4)
    body = fields.take(fields.number(4))
    words = f"flags {flags:#x} records {records} uncompressed {uncompressed} {shortened(body)}"
    return Piece(offset, records, f"{offset}=[{words}]")


def shortened(body: bytes) -> str:
    """Return a body as text, a long one by its size and CRC."""
    if len(body) > 64:  # noqa: PLR2004 - what still reads well in a report
        return f"({len(body)} bytes, crc {zlib.crc32(body):08x})"
    return body.decode("ascii", errors="backslashreplace") if body.isascii() else body.hex()
