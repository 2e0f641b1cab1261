"""Rows as the writer encodes and the reader decodes them: the same."""

import zlib
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from hutch.formats.entries import SubBatchCodec
from pyspark_hutch.columns import WantedColumns
from pyspark_hutch.decoding.decoder import Decoder
from pyspark_hutch.encoding.frames import FrameLimits
from pyspark_hutch.encoding.messages import messages_of
from pyspark_hutch.encoding.sub_batches import Packing
from tests.chunks import HEADER, MAGIC_AND_VERSION
from tests.unit.pyspark_hutch.encoding.batches import batch, ids_from, taken

PACKINGS = [
    Packing(),
    Packing("none", 7),
    *(Packing(c.name.lower(), 7) for c in SubBatchCodec if c),
]
COLUMNS = ("properties", "application_properties", "message_annotations")
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
EVERYTHING: dict[str, Any] = {
    "message_id": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
    "message_id_type": "uuid",
    "user_id": b"\x00\xff",
    "to": "to",
    "subject": "",
    "reply_to": "ü" * 200,
    "correlation_id": "AP8=",
    "correlation_id_type": "binary",
    "content_type": "text/plain",
    "content_encoding": "gzip",
    "absolute_expiry_time": MOMENT,
    "creation_time": MOMENT,
    "group_id": "g",
    "group_sequence": 4_294_967_295,
    "reply_to_group_id": "r",
}
NUMBERED = EVERYTHING | {
    "message_id": "18446744073709551615",
    "message_id_type": "ulong",
    "correlation_id": "c",
    "correlation_id_type": "string",
}


def read_back(rows: pa.RecordBatch, packing: Packing, *columns: str) -> pa.Table:
    """Pack rows, store them as the server does, and read the chunks."""
    reader = Decoder(WantedColumns(columns=("offset", "body", "body_type", *columns), stream="s"))
    packer = packing.packer("s", 0, FrameLimits(1 << 20, frame_bytes=1_500))
    messages = messages_of(rows)
    frames = [*packer.add(messages, ids_from(1, len(rows))), *packer.flush()]
    found: list[pa.RecordBatch] = []
    first = 0
    for frame in frames:
        stored = taken(frame).stored
        header = HEADER.pack(
            MAGIC_AND_VERSION, 0, len(frame.ids), frame.records, 0, 1, first,
            zlib.crc32(stored), len(stored), 0, 0, bytes(3),
        )  # fmt: skip
        first += frame.records
        found += reader.add(header + stored, 0, first)
    found += reader.finish()
    assert len(frames) > 1
    return pa.Table.from_batches(found)


@pytest.mark.parametrize("packing", PACKINGS, ids=lambda packing: packing.option or "plain")
def test_bodies_come_back_in_order(packing: Packing) -> None:
    bodies = [b"%d " % number * (number % 130) for number in range(60)]

    table = read_back(batch(body=bodies), packing)

    assert table["body"].to_pylist() == bodies
    assert table["offset"].to_pylist() == list(range(60))
    assert set(table["body_type"].to_pylist()) == {"data"}


@pytest.mark.parametrize("packing", [Packing(), Packing("zstd", 7)], ids=["plain", "zstd"])
def test_properties_and_maps_come_back(packing: Packing) -> None:
    rows = batch(
        body=[b"x" * 200] * 20,
        properties=[EVERYTHING, None, NUMBERED, EVERYTHING] * 5,
        application_properties=[None, [("a", "1"), ("ü", "")], [("n", None)], [("k", "v")]] * 5,
        message_annotations=[[("x-a", "1")], None, [("x-long", "l" * 300)], None] * 5,
    )

    table = read_back(rows, packing, *COLUMNS)

    for name in COLUMNS:
        assert table[name].to_pylist() == rows.column(name).to_pylist()
