"""Batches as Spark hands them over, and frames as the server takes them."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gateway.stream.kernel import publish
from pyspark_hutch.columns import PROPERTY_FIELDS, TEXTS
from pyspark_hutch.encoding.arrays import join
from pyspark_hutch.encoding.frames import Ids, PublishFrame
from pyspark_hutch.encoding.messages import Messages, messages_of
from tests.property.gateway.publish_calls import run
from tests.property.gateway.publish_model import Call, Outcome

PROPERTIES = pa.struct([(name, kind) for name, _, kind in PROPERTY_FIELDS])
TYPES = {
    "body": pa.binary(),
    "properties": PROPERTIES,
    "application_properties": TEXTS,
    "message_annotations": TEXTS,
}


def batch(
    types: Mapping[str, pa.DataType] | None = None, **columns: Sequence[Any]
) -> pa.RecordBatch:
    """Make a batch; columns have the types that most jobs give them."""
    kinds = {**TYPES, **(types or {})}
    arrays = [pa.array(values, kinds.get(name, pa.string())) for name, values in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def encoded(rows: pa.RecordBatch, *, raw: bool = False) -> list[bytes]:
    """Encode rows, each message as a whole; asserts that the sizes are theirs."""
    messages = messages_of(rows, raw=raw)
    found = whole(messages)
    assert messages.sizes.tolist() == [len(message) for message in found]
    return found


def whole(messages: Messages) -> list[bytes]:
    """Put messages together."""
    found: list[bytes] = join(*messages.parts).to_pylist()
    return found


def filters_of(messages: Messages) -> list[bytes | None]:
    """Give the filter values; asserts that there are some."""
    assert messages.filters is not None
    found: list[bytes | None] = messages.filters.to_pylist()
    return found


def raw_messages(bodies: Sequence[bytes], filters: Sequence[str | None] | None = None) -> Messages:
    """Make raw messages."""
    columns = {"body": bodies} if filters is None else {"body": bodies, "filter_value": filters}
    return messages_of(batch(**columns), raw=True)


def ids_from(first: int, count: int) -> Ids:
    """Number rows."""
    return np.arange(first, first + count, dtype=np.uint64)


def taken(frame: PublishFrame, publisher_id: int = 0) -> Outcome:
    """Let the server's kernel take a frame; asserts that it took all of it."""
    source = bytes(frame.data)
    size, key, version, publisher, count = struct.unpack_from(">IHHBI", source)
    assert (size + 4, key, publisher, count) == (len(source), 2, publisher_id, len(frame.ids))
    room = len(source) + 64
    outcome = run(
        publish,
        Call(
            source,
            position=13 if version > 1 else 0,
            frame_end=len(source) if version > 1 else 0,
            publisher=publisher_id,
            frame_bytes_max=1 << 30,
            capacity=room,
            target_bytes=room,
            filtered=version > 1,
        ),
    )
    assert outcome.reason == publish.NEEDS_BYTES
    assert outcome.position == len(source)
    assert outcome.ids == frame.ids.tolist()
    assert outcome.records == frame.records
    return outcome


def simple(stored: bytes) -> list[bytes]:
    """Divide what the server stored, or an uncompressed sub-batch, into messages."""
    found = []
    place = 0
    while place < len(stored):
        size = int.from_bytes(stored[place : place + 4])
        assert place + 4 + size <= len(stored)
        found.append(stored[place + 4 : place + 4 + size])
        place += 4 + size
    return found
