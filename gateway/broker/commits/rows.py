"""Rows of the table of commits; pure bytes. Integers of keys and parts are big-endian u64.

    n                        number               the last commit
    s + sink                 JSON                 a sink: its last batch, and the commit of that
    t + stage                size u32, JSON, data a stage; a small one with its bytes
    h + number               JSON                 a commit under way
    p + number + generation  kind u8, size u32, name, content    its part for one stream

The row of a stage comes before its segment and goes after it, since the store lists no segments.
A commit is one update: last number, sink, head and parts. Its stages have their rows by then.
"""

import dataclasses
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

LAST: Final = b"n"
SINK: Final = b"s"
STAGE: Final = b"t"
HEAD: Final = b"h"
PART: Final = b"p"

_NUMBER: Final = struct.Struct(">Q")
_SIZE: Final = struct.Struct(">I")
_PART: Final = struct.Struct(">BI")


class Content(IntEnum):
    """Kind of a part's content."""

    STAGES = 0
    """Numbers of stages, in order."""
    CHUNK = 1
    """One chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow:
    """A stage as it is stored.

    Attributes:
        user: Its owner.
        sink: The sink that it is for; empty for a save that is not remembered.
        batch: The batch that it is for.
        stream: The name of its stream.
        generation: The generation of that.
        records: Number of records.
        size_bytes: Size of its chunks.
        is_closed: Whether it is complete.
        has_segment: Whether its chunks lie in a segment; else they follow in the row.
        used_ms: The time of its last use.
        sequence: Number of its frames, if it is closed.
    """

    user: str
    sink: str
    batch: int
    stream: str
    generation: int
    records: int = 0
    size_bytes: int = 0
    is_closed: bool = False
    has_segment: bool = False
    used_ms: int = 0
    sequence: int = 0

    def pack(self, data: bytes = b"") -> bytes:
        """Encode for the table, with the chunks of a small stage."""
        head = _json_of(self)
        return _SIZE.pack(len(head)) + head + data

    @classmethod
    def unpack(cls, value: bytes) -> "tuple[StageRow, bytes]":
        """Undo `pack`. Raises ValueError or a like error if it was never packed."""
        (size,) = _SIZE.unpack_from(value)
        end = _SIZE.size + size
        return cls(**json.loads(value[_SIZE.size : end])), value[end:]


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRow:
    """A sink: the last batch that it committed, the commit's number and time, and its user."""

    batch: int
    number: int
    at_ms: int
    user: str

    def pack(self) -> bytes:
        """Encode for the table."""
        return _json_of(self)

    @classmethod
    def unpack(cls, value: bytes) -> "SinkRow":
        """Undo `pack`. Raises ValueError or a like error if it was never packed."""
        return cls(**json.loads(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRow:
    """A commit under way."""

    user: str
    sink: str
    batch: int
    records: int
    size_bytes: int

    def pack(self) -> bytes:
        """Encode for the table."""
        return _json_of(self)

    @classmethod
    def unpack(cls, value: bytes) -> "HeadRow":
        """Undo `pack`. Raises ValueError or a like error if it was never packed."""
        return cls(**json.loads(value))


@dataclass(frozen=True, slots=True)
class PartRow:
    """The part of a commit for one stream.

    Attributes:
        stream: The name of the stream.
        stages: The stages whose chunks it gets; none if the row has one chunk instead.
        chunk_bytes: Size of that chunk.
    """

    stream: str
    stages: tuple[int, ...] = ()
    chunk_bytes: int = 0

    def pack(self, chunk: bytes = b"") -> bytes:
        """Encode for the table, with the chunk of a part that has one."""
        name = self.stream.encode("utf-8", "surrogateescape")
        numbers = struct.pack(f">{len(self.stages)}Q", *self.stages)
        kind = Content.CHUNK if self.chunk_bytes else Content.STAGES
        return _PART.pack(kind, len(name)) + name + numbers + chunk

    @classmethod
    def unpack(cls, value: bytes) -> "tuple[PartRow, bytes]":
        """Undo `pack`. Raises ValueError or a like error if it was never packed."""
        kind, size = _PART.unpack_from(value)
        if kind not in set(Content):
            raise ValueError(f"the part is of kind {kind}, which this version does not know")
        end = _PART.size + size
        name = value[_PART.size : end].decode("utf-8", "surrogateescape")
        if kind == Content.CHUNK:
            return cls(name, chunk_bytes=len(value) - end), value[end:]
        count, rest = divmod(len(value) - end, _NUMBER.size)
        if rest:
            raise ValueError("the part ends inside a number")
        return cls(name, struct.unpack_from(f">{count}Q", value, end)), b""


def chunk_row_bytes(stream: str, chunk_bytes: int) -> int:
    """Return the size of a part with one chunk, with its key."""
    name = stream.encode("utf-8", "surrogateescape")
    return len(PART) + 2 * _NUMBER.size + _PART.size + len(name) + chunk_bytes


def _json_of(row: Any) -> bytes:  # noqa: ANN401 - any of the dataclasses above
    return json.dumps(dataclasses.asdict(row)).encode()


def pack_number(number: int) -> bytes:
    """Encode the last number of all."""
    return _NUMBER.pack(number)


def unpack_number(value: bytes) -> int:
    """Undo `pack_number`. Raises struct.error if it was never packed."""
    return int(_NUMBER.unpack(value)[0])


def unpack(key: bytes, value: bytes) -> object:
    """Decode a row, as its class does. Raises ValueError or a like error if it was never packed."""
    try:
        return _UNPACK[key[:1]](value)
    except struct.error as error:
        raise ValueError(str(error)) from error


_UNPACK: Final[Mapping[bytes, Callable[[bytes], object]]] = {
    LAST: unpack_number,
    SINK: SinkRow.unpack,
    STAGE: StageRow.unpack,
    HEAD: HeadRow.unpack,
    PART: PartRow.unpack,
}


def sink_key(sink: str) -> bytes:
    """Return the key of a sink."""
    return SINK + sink.encode("utf-8", "surrogateescape")


def sink_of(key: bytes) -> str:
    """Undo `sink_key`."""
    return key[len(SINK) :].decode("utf-8", "surrogateescape")


def stage_key(stage: int) -> bytes:
    """Return the key of a stage."""
    return STAGE + _NUMBER.pack(stage)


def head_key(number: int) -> bytes:
    """Return the key of a commit under way."""
    return HEAD + _NUMBER.pack(number)


def part_key(number: int, generation: int) -> bytes:
    """Return the key of a commit's part for a stream."""
    return PART + _NUMBER.pack(number) + _NUMBER.pack(generation)


def numbers_of(key: bytes) -> tuple[int, ...]:
    """Return the numbers in a key, behind its first byte."""
    return tuple(number for (number,) in _NUMBER.iter_unpack(key[1:]))
