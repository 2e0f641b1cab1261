"""The messages of one stream as Publish frames, an entry for each.

    frame      size u32 | key 2 u16 | version u16 | publisher u8 | count u32 | entries
    entry v1   publishing id u64 | size u32 | message
    entry v2   publishing id u64 | filter size u16 (0xFFFF: none) | filter | size u32 | message

A frame is one join of Arrow: heads, filters, what stands before the bodies, bodies. The head of the
frame is in front of its first entry's. Without a publisher a frame is the entries alone, in their
stored form (`hutch.formats.entries`): another command carries them.

Source: RabbitMQ stream protocol, Publish.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyspark_hutch.encoding.arrays import (
    Counts,
    Octets,
    array_of,
    big_endian,
    data_of,
    join,
    nulls_of,
    sizes_of,
)
from pyspark_hutch.encoding.errors import MessageTooLarge
from pyspark_hutch.encoding.messages import Messages

Ids: TypeAlias = npt.NDArray[np.uint64]

_FRAME_HEAD: Final = struct.Struct(">IHHBI")
_PUBLISH: Final = 2
SIZE_BYTES: Final = 4
ID_BYTES: Final = 8
_NO_FILTER: Final = 0xFFFF

# A frame much smaller than what a socket takes at once, large enough that a frame's own cost (about
# 20 us) is small beside its entries'.
FRAME_BYTES: Final = 256 << 10
# The server gives a connection 50,000 entries of credit, and its chunks have at most 8,192.
FRAME_ENTRIES_MAX: Final = 8192


@dataclass(frozen=True, slots=True)
class PublishFrame:
    """A Publish frame, or the entries of a frame.

    Attributes:
        data: The whole frame, with its size; or the entries alone.
        ids: The publishing ids of its entries, in their order. A server confirms those that it
            gets.
        records: How many rows it holds; with sub-batches more than it has ids.
    """

    data: bytes | memoryview
    ids: Ids
    records: int


@dataclass(frozen=True, slots=True)
class FrameLimits:
    """Limits on the size of a frame.

    Attributes:
        frame_bytes_max: The server's limit for a frame without its size field; 0 for none.
        frame_bytes: Where a frame ends that could be longer; a single larger entry has its own.
        entries_max: Most entries of a frame.
        head_bytes: Bytes before the entries, with the size field.
    """

    frame_bytes_max: int
    frame_bytes: int = FRAME_BYTES
    entries_max: int = FRAME_ENTRIES_MAX
    head_bytes: int = _FRAME_HEAD.size

    @property
    def largest(self) -> int:
        """Bytes behind the size field of the largest frame."""
        return self.frame_bytes_max or (1 << 32) - 1

    @property
    def entry_bytes(self) -> int:
        """The room for entries in a frame that could be longer."""
        return min(self.largest, self.frame_bytes) + SIZE_BYTES - self.head_bytes

    def needed(self, entry_bytes: int) -> int:
        """Return the size of a frame with these entries, without its size field, in bytes."""
        return entry_bytes + self.head_bytes - SIZE_BYTES


class Packer(Protocol):
    """Turns messages of a stream into frames; those of a call are to be taken to the end."""

    @property
    def waiting_bytes(self) -> int:
        """Memory of the rows that are in no frame yet."""

    def add(self, messages: Messages, ids: Ids) -> Iterator[PublishFrame]:
        """Return the frames that became full."""

    def flush(self) -> Iterator[PublishFrame]:
        """Return frames of the waiting rows; more may be added afterwards."""


class MessagePacker:
    """Packs messages one by one into frames.

    Args:
        stream: Names it in errors.
        publisher_id: The publisher that is declared for the stream; None for entries alone.
        limits: Of frames.
    """

    def __init__(self, stream: str, publisher_id: int | None, limits: FrameLimits) -> None:
        self._stream = stream
        self._publisher_id = publisher_id
        self._limits = limits
        self.waiting_bytes: Final = 0

    def add(self, messages: Messages, ids: Ids) -> Iterator[PublishFrame]:
        """Yield the frames of some messages, in their order; all rows are in them at the end.

        Args:
            messages: Of this stream.
            ids: Their publishing ids.

        Raises:
            MessageTooLarge: A message fits no frame. The frames before it have been given.
        """
        assert len(messages) == len(ids), "each row has its publishing id"
        if self._publisher_id is None:
            assert messages.filters is None, "filter values are no part of stored entries"
            heads, parts = big_endian(messages.sizes, SIZE_BYTES), list(messages.parts)
        else:
            heads, parts = _entries(messages, ids)
        sizes = messages.sizes + heads.shape[1]
        version = 1
        if messages.filters is not None:
            version = 2
            sizes += sizes_of(messages.filters) + SIZE_BYTES
        for first, following in _cuts(sizes, self._limits, self._stream):
            entry_bytes, count = int(sizes[first:following].sum()), following - first
            head = frame_head(version, self._publisher_id, count, entry_bytes)
            cut = [part[first:following] for part in parts]
            yield PublishFrame(
                joined(head, heads[first:following], cut), ids[first:following], count
            )

    def flush(self) -> Iterator[PublishFrame]:
        """Return nothing, since no row waits."""
        return iter(())


def frame_head(version: int, publisher_id: int | None, count: int, entry_bytes: int) -> bytes:
    """Return the bytes before the entries of a frame; none without a publisher."""
    if publisher_id is None:
        return b""
    size = entry_bytes + _FRAME_HEAD.size - SIZE_BYTES
    return _FRAME_HEAD.pack(size, _PUBLISH, version, publisher_id, count)


def _entries(messages: Messages, ids: Ids) -> tuple[Octets, list[pa.Array]]:
    """Return the first bytes of each entry, and the arrays that follow them."""
    id_octets, sizes = big_endian(ids, ID_BYTES), big_endian(messages.sizes, SIZE_BYTES)
    filters = messages.filters
    if filters is None:
        return np.hstack([id_octets, sizes]), list(messages.parts)
    filter_sizes = np.where(nulls_of(filters), _NO_FILTER, sizes_of(filters))
    between = array_of(sizes, np.arange(len(ids) + 1) * SIZE_BYTES)
    heads = np.hstack([id_octets, big_endian(filter_sizes, 2)])
    return heads, [filters, between, *messages.parts]


def joined(before: bytes, heads: Octets, parts: list[pa.Array]) -> memoryview:
    """Join each row's head and parts; `before` is in front of the first."""
    count, width = heads.shape
    positions = np.arange(count + 1) * width
    positions[1:] += len(before)
    return data_of(join(array_of(before + heads.tobytes(), positions), *parts))


def _cuts(sizes: Counts, limits: FrameLimits, stream: str) -> Iterator[tuple[int, int]]:
    """Cut entries of these sizes into frames; yield where each begins and where the next does."""
    ends = np.cumsum(sizes)
    first, done = 0, 0
    while first < len(ends):
        following = int(np.searchsorted(ends, done + limits.entry_bytes, side="right"))
        following = min(following, first + limits.entries_max)
        if following <= first:
            following = first + 1
            needed = limits.needed(int(sizes[first]))
            if needed > limits.largest:
                raise MessageTooLarge(stream, "frame", needed, limits.largest)
        yield first, following
        first, done = following, int(ends[following - 1])
