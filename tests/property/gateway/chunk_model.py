"""What the chunk kernel must do, said slowly, and chunks to do it on.

Written apart from the kernel: `struct`, `zlib`, lists.
"""

import struct
import zlib
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.chunks import SubBatch

NEEDS_BYTES, BAD_CRC, MALFORMED, NOT_JOINABLE, BAD_HEADER, NOT_NEXT, BAD_SEAL = range(7)
SEED = zlib.crc32(b"the name of a segment")
HEADER = struct.Struct(">IIBBHIqQQIII4x")

Walked = tuple[int, int, list[tuple[int, ...]]]
Joined = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Stored:
    """A chunk to be stored; what is None is what it should be. `seed`: if it has a seal."""

    data: bytes
    entries: int
    records: int
    chunk_id: int
    timestamp_ms: int = 0
    epoch: int = 1
    kind: int = 0
    magic: int = 0x50
    zero: int = 0
    crc: int | None = None
    event_bytes: int | None = None
    data_bytes: int | None = None
    trailer: bytes = b""
    rest: bytes = b""
    seed: int | None = None

    def event(self) -> bytes:
        data_bytes = len(self.data) if self.data_bytes is None else self.data_bytes
        body = self.data + self.trailer + self.rest + (b"" if self.seed is None else bytes(4))
        event_bytes = 48 + len(body) if self.event_bytes is None else self.event_bytes
        crc = zlib.crc32(self.data) if self.crc is None else self.crc
        timestamp_ms, epoch, chunk_id = self.timestamp_ms, self.epoch, self.chunk_id
        counts = (self.magic, self.kind, self.entries, self.records)
        sizes = (crc, data_bytes, len(self.trailer))
        head = HEADER.pack(self.zero, event_bytes, *counts, timestamp_ms, epoch, chunk_id, *sizes)
        if self.seed is not None:
            sealed = head[8:] + self.trailer + self.rest
            body = body[:-4] + zlib.crc32(sealed, self.seed).to_bytes(4)
        return head + body


def fields_at(source: bytes, position: int) -> tuple[int, ...] | int:
    """The numbers of a whole chunk's head; or why there is none."""
    if position + HEADER.size > len(source):
        return NEEDS_BYTES
    fields = HEADER.unpack_from(source, position)
    if fields[0] != 0 or fields[2] != 0x50 or 48 + fields[10] + fields[11] > fields[1]:
        return MALFORMED
    if position + 8 + fields[1] > len(source):
        return NEEDS_BYTES
    return fields


def walk(source: bytes) -> Walked:
    found: list[tuple[int, ...]] = []
    position = 0
    while not isinstance(fields := fields_at(source, position), int):
        _, size, _, _, _, records, timestamp, epoch, chunk_id, _, data, trailer = fields
        found.append((position, 8 + size, chunk_id, records, timestamp, epoch, data, trailer))
        position += 8 + size
    return fields, position, found


def data_at(source: bytes, position: int, fields: tuple[int, ...]) -> bytes:
    return source[position + 56 : position + 56 + fields[10]]


def verify(source: bytes) -> tuple[int, int]:
    position = 0
    while not isinstance(fields := fields_at(source, position), int):
        if zlib.crc32(data_at(source, position, fields)) != fields[9]:
            return BAD_CRC, position
        position += 8 + fields[1]
    return fields, position


def has_seal(source: bytes, position: int, fields: tuple[int, ...], seed: int) -> bool:
    event = source[position + 8 : position + 8 + fields[1]]
    data_end = 48 + fields[10]
    if data_end + fields[11] > len(event) - 4:
        return False
    return zlib.crc32(event[:48] + event[data_end:-4], seed) == int.from_bytes(event[-4:])


def check_seals(source: bytes, seed: int) -> tuple[int, int]:
    position = 0
    while not isinstance(fields := fields_at(source, position), int):
        if not has_seal(source, position, fields, seed):
            return BAD_SEAL, position
        position += 8 + fields[1]
    return fields, position


def find_sealed(source: bytes, begin: int, seed: int) -> int:
    for position in range(begin, len(source)):
        fields = fields_at(source, position)
        if not isinstance(fields, int) and has_seal(source, position, fields, seed):
            return position
    return -1


def follow(source: bytes) -> tuple[int, int, int, int]:
    position = first = following = 0
    while not isinstance(fields := fields_at(source, position), int):
        bloom = source[position + 52 : position + 56]
        records = records_in(data_at(source, position, fields), fields[4])
        if fields[3] != 0 or bloom != bytes(4) or records != fields[5]:
            return BAD_HEADER, position, first, following
        if not position:
            first = following = fields[8]
        elif fields[8] != following:
            return NOT_NEXT, position, first, following
        following = (following + fields[5]) % 2**64
        position += 8 + fields[1]
    return fields, position, first, following


def records_in(data: bytes, entries: int) -> int | None:
    """How many records are in the data, if it is exactly so many entries."""
    records = 0
    for _ in range(entries):
        head = int.from_bytes(data[:4])
        is_batch = head >= 2**31
        if len(data) < (11 if is_batch else 4):
            return None
        size = 11 + int.from_bytes(data[7:11]) if is_batch else 4 + head
        records += int.from_bytes(data[1:3]) if is_batch else 1
        if size > len(data):
            return None
        data = data[size:]
    return None if data else records


def is_simple(data: bytes, entries: int) -> bool:
    """Whether the data is exactly so many simple entries."""
    while entries:
        size = int.from_bytes(data[:4])
        if len(data) < 4 or size >= 2**31 or len(data) < 4 + size:
            return False
        data = data[4 + size :]
        entries -= 1
    return not data


def join(source: bytes, capacity: int, seed: int = SEED) -> tuple[Joined, bytes]:
    joined = b""
    count = records = position = 0
    first: tuple[int, ...] = ()
    while not isinstance(fields := fields_at(source, position), int):
        if not has_seal(source, position, fields, seed):
            return (BAD_SEAL, position, len(joined), count, records), joined
        first = first or fields
        data = data_at(source, position, fields)
        can_follow = (
            fields[3] == 0
            and fields[4] == fields[5]
            and is_simple(data, fields[4])
            and fields[7] == first[7]
            and fields[8] == first[8] + records
            and fields[6] - first[6] <= 1000
            and records + fields[4] <= 65_535
            and len(joined) + len(data) <= capacity
        )
        if not can_follow:
            return (NOT_JOINABLE, position, len(joined), count, records), joined
        if zlib.crc32(data) != fields[9]:
            return (BAD_CRC, position, len(joined), count, records), joined
        joined += data
        count += 1
        records += fields[4]
        position += 8 + fields[1]
    return (fields, position, len(joined), count, records), joined


# Strategies

bodies = st.one_of(st.binary(max_size=20), st.integers(0, 300).map(bytes))


@st.composite
def data_sections(draw: st.DrawFn) -> tuple[bytes, int, int]:
    """Data, and how many entries and records it has."""
    data = b""
    entries = records = 0
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 5, 0]))):
        body = draw(bodies)
        entries += 1
        if draw(st.integers(0, 9)) == 0:
            count = draw(st.integers(1, 4))
            data += SubBatch(0, count, count * 4, body).encoded()
            records += count
        else:
            data += len(body).to_bytes(4) + body
            records += 1
    return data, entries, records


oddities = st.one_of(
    *(
        st.builds(dict, **{name: values})
        for name, values in {
            "kind": st.sampled_from([1, 2]),
            "magic": st.sampled_from([0x51, 0]),
            "zero": st.sampled_from([1, 2**32 - 1]),
            "crc": st.integers(0, 2**32 - 1),
            "event_bytes": st.sampled_from([0, 47, 48, 60, 4000, 2**32 - 1]),
            "data_bytes": st.sampled_from([0, 1, 2**31, 2**32 - 1]),
            "epoch": st.sampled_from([0, 2, 2**64 - 1]),
            "chunk_id": st.sampled_from([0, 3, 2**63, 2**64 - 1]),
            "timestamp_ms": st.sampled_from([-1, -(2**62), 999, 1000, 1001, 1002, 2**62]),
            "records": st.integers(0, 2**32 - 1),
            "entries": st.sampled_from([0, 1, 65_535]),
        }.items()
    )
)


@st.composite
def runs(draw: st.DrawFn) -> bytes:
    """Chunks one after another, mostly as the log writes them, now and then cut or damaged."""
    chunk_id = draw(st.sampled_from([0, 0, 7, 2**32, 2**63 - 2]))
    timestamp_ms = draw(st.sampled_from([0, 1, -5, 1_700_000_000_000]))
    epoch = draw(st.sampled_from([1, 2**63]))
    source = b""
    seed = draw(st.sampled_from([None, SEED, SEED]))
    for _ in range(draw(st.integers(0, 6))):
        data, entries, records = draw(data_sections())
        stored = Stored(data, entries, records, chunk_id, timestamp_ms, epoch, seed=seed)
        if draw(st.integers(0, 9)) == 0:
            stored = replace(stored, **draw(oddities))
        if draw(st.integers(0, 3)) == 0:
            stored = replace(stored, trailer=draw(st.binary(max_size=9)), rest=draw(bodies))
        source += stored.event()
        chunk_id += records
        timestamp_ms += draw(st.sampled_from([0, 0, 1, 400, 1000]))
    if source and draw(st.integers(0, 4)) == 0:
        source = source[: draw(st.integers(0, len(source) - 1))]
    if source and draw(st.integers(0, 4)) == 0:
        place = draw(st.integers(0, len(source) - 1))
        source = source[:place] + bytes([draw(st.integers(0, 255))]) + source[place + 1 :]
    return source
