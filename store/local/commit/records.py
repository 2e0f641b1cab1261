# cython: language_level=3, annotation_typing=False, nonecheck=True
"""The journal's bytes: frames of changes. Pure: from values to bytes and back.

A frame is what one commit writes, all of it or nothing. Little-endian:

    frame   | xxh3  | sequence | at_ms | synced | size | count | changes ...
    bytes   | 8     | 8        | 8     | 8      | 4    | 4     | size

`xxh3` covers everything after it. `sequence` grows by one per frame and never repeats in the life
of a store, so that the frames of a file's former life are never taken for new ones. The seed of
the checksum is a random number of this opening (the salt), so that no data that a client chose can
pass for a frame. All frames with a sequence below `synced` were durable when this one was written,
so where one of them does not check out and this one does, that is damage.

A file of the journal begins with a head that is written once:

    head    | hutchjn2 | number | size of the file | xxh3, seeded with the store's id
    bytes   | 8        | 8      | 8                | 8

    change  | size  | kind | flags | zero | segment | body ...
    bytes   | 4     | 1    | 1     | 2    | 8       | size - 16

    create      key_length i32 (-1: not a table), name
    append      file u64, position u64, size u64, xxh3 u64 of the data, writer 16 bytes,
                event number i64; then the data itself if flag INLINE is set (the xxh3 is then 0)
    attributes  (attribute 16 bytes, value i64) ...; those that a segment is created with follow its
                create in the same frame
    seal        nothing
    truncate    position u64
    merge       source segment u64, attributes as above
    delete      nothing
    link        number u64 and size u64 of the file that follows (segment 0); the last of a file

Flags: DURABLE: acknowledged only after a sync, so its data must be there. INLINE: see append.
HAS_WRITER: writer and event number of the append count.
"""

import enum
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from xxhash import xxh3_64_intdigest

from store.errors import StoreError
from store.local.kernel.journal_bytes import behind_checksum, checked_part

FRAME_HEAD: Final = struct.Struct("<QQQQII")
"""A frame's head: checksum, sequence, at_ms, synced, size, count."""
FRAME_HEAD_BYTES: Final = FRAME_HEAD.size
_FILE_MAGIC: Final = b"hutchjn2"
_FILE_HEAD: Final = struct.Struct("<8sQQ")
_CHECKSUM_BYTES: Final = 8
FILE_HEAD_BYTES: Final = _FILE_HEAD.size + _CHECKSUM_BYTES
"""The byte of a file at which its first frame begins."""

CHANGE_HEAD: Final = struct.Struct("<IBBHQ")
_KEY_LENGTH: Final = struct.Struct("<i")
APPEND: Final = struct.Struct("<IBBHQQQQQ16sq")
APPEND_BYTES: Final = APPEND.size
ATTRIBUTE: Final = struct.Struct("<16sq")
_NUMBER: Final = struct.Struct("<Q")
_LINK: Final = struct.Struct("<QQ")
LINK_FRAME_BYTES: Final = FRAME_HEAD_BYTES + CHANGE_HEAD.size + _LINK.size

DURABLE: Final = 1
INLINE: Final = 2
HAS_WRITER: Final = 4

NO_WRITER: Final = bytes(16)

AttributeValues = Sequence[tuple[bytes, int]]
"""Attribute ids (16 bytes) with the value that they get; store.api.ABSENT removes."""


class Kind(enum.IntEnum):
    """Kinds of changes."""

    CREATE = 1
    APPEND = 2
    ATTRIBUTES = 3
    SEAL = 4
    TRUNCATE = 5
    MERGE = 6
    DELETE = 7
    LINK = 8


KIND_APPEND: Final = int(Kind.APPEND)


@dataclass(frozen=True, slots=True)
class Create:
    """A new segment; `key_length` None for a plain one."""

    segment: int
    name: str
    key_length: int | None
    durable: bool


@dataclass(frozen=True, slots=True)
class Append:
    """Data at a position; in the record itself (`inline`) or only its hash."""

    segment: int
    file: int
    position: int
    size: int
    data_hash: int
    inline: bytes | None
    writer: bytes | None
    event_number: int
    durable: bool


@dataclass(frozen=True, slots=True)
class Attributes:
    """New values of attributes."""

    segment: int
    values: AttributeValues
    durable: bool


@dataclass(frozen=True, slots=True)
class Seal:
    """No more appends."""

    segment: int
    durable: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    """Bytes before the position are given up."""

    segment: int
    position: int
    durable: bool


@dataclass(frozen=True, slots=True)
class Merge:
    """All of `source` is now at the end of `segment`, and `source` is gone."""

    segment: int
    source: int
    values: AttributeValues
    durable: bool


@dataclass(frozen=True, slots=True)
class Delete:
    """The segment is gone."""

    segment: int
    durable: bool


@dataclass(frozen=True, slots=True)
class Link:
    """The next frame is the first of this journal file, which has `size` bytes."""

    file: int
    size: int
    durable: bool = False


Record = Create | Append | Attributes | Seal | Truncate | Merge | Delete | Link


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that checked out. `size` is its place in the file, head included.

    All frames with a sequence below `synced` were durable when it was written.
    """

    sequence: int
    at_ms: int
    size: int
    records: Sequence[Record]
    synced: int


def file_head(number: int, size: int, store_id: int) -> bytes:
    """Encode the head of a journal file of `size` bytes."""
    head = _FILE_HEAD.pack(_FILE_MAGIC, number, size)
    return head + xxh3_64_intdigest(head, store_id).to_bytes(_CHECKSUM_BYTES, "little")


def frame_of(sequence: int, at_ms: int, synced: int, changes: Sequence[bytes], salt: int) -> bytes:
    """Join changes, or none, into one frame."""
    body = changes[0] if len(changes) == 1 else b"".join(changes)
    part = checked_part(sequence, at_ms, synced, body, len(changes))
    return behind_checksum(xxh3_64_intdigest(part, salt), part)


def sequence_at(data: bytes, position: int, salt: int) -> int | None:
    """Return the sequence of the frame at `position`, or None where no whole frame checks out."""
    if position + FRAME_HEAD_BYTES > len(data):
        return None
    checksum, sequence, *_, size, _ = FRAME_HEAD.unpack_from(data, position)
    end = position + FRAME_HEAD_BYTES + size
    if end > len(data):
        return None
    checked = memoryview(data)[position + _CHECKSUM_BYTES : end]
    return sequence if xxh3_64_intdigest(checked, salt) == checksum else None


def frame_at(data: bytes, position: int, sequence: int, salt: int) -> Frame | None:
    """Decode the frame at `position` if it checks out and is the one with that sequence.

    Raises:
        StoreError: The frame checks out but holds what this version does not know.
    """
    if sequence_at(data, position, salt) != sequence:
        return None
    _, _, at_ms, synced, size, count = FRAME_HEAD.unpack_from(data, position)
    at = position + FRAME_HEAD_BYTES
    end = at + size
    records = []
    for _ in range(count):
        if end - at < CHANGE_HEAD.size:
            raise StoreError(
                f"the journal's frame {sequence} is damaged: it counts {count} changes"
            )
        change_size, kind, flags, _, segment = CHANGE_HEAD.unpack_from(data, at)
        if not CHANGE_HEAD.size <= change_size <= end - at:
            raise StoreError(f"the journal's frame {sequence} is damaged: a size is {change_size}")
        records.append(_record_of(data[at : at + change_size], kind, flags, segment))
        at += change_size
    return Frame(sequence, at_ms, FRAME_HEAD_BYTES + size, records, synced)


def create_record(segment: int, name: str, key_length: int | None, *, durable: bool) -> bytes:
    """Encode the creation of a segment (`key_length` None) or table."""
    body = _KEY_LENGTH.pack(-1 if key_length is None else key_length) + name.encode()
    return _change(Kind.CREATE, segment, body, durable=durable)


def attributes_record(segment: int, values: AttributeValues, *, durable: bool) -> bytes:
    """Encode new attribute values."""
    return _change(Kind.ATTRIBUTES, segment, _attributes_body(values), durable=durable)


def seal_record(segment: int, *, durable: bool) -> bytes:
    """Encode a seal."""
    return _change(Kind.SEAL, segment, b"", durable=durable)


def truncate_record(segment: int, position: int, *, durable: bool) -> bytes:
    """Encode a truncation."""
    return _change(Kind.TRUNCATE, segment, _NUMBER.pack(position), durable=durable)


def merge_record(segment: int, source: int, values: AttributeValues, *, durable: bool) -> bytes:
    """Encode a merge of `source` into `segment`."""
    body = _NUMBER.pack(source) + _attributes_body(values)
    return _change(Kind.MERGE, segment, body, durable=durable)


def delete_record(segment: int, *, durable: bool) -> bytes:
    """Encode a deletion."""
    return _change(Kind.DELETE, segment, b"", durable=durable)


def link_record(number: int, size: int) -> bytes:
    """Encode that the journal goes on in another file."""
    return _change(Kind.LINK, 0, _LINK.pack(number, size), durable=False)


def _change(kind: Kind, segment: int, body: bytes, *, durable: bool) -> bytes:
    size = CHANGE_HEAD.size + len(body)
    return CHANGE_HEAD.pack(size, kind, DURABLE if durable else 0, 0, segment) + body


def _attributes_body(values: Iterable[tuple[bytes, int]]) -> bytes:
    return b"".join(ATTRIBUTE.pack(attribute, value) for attribute, value in values)


def _record_of(change: bytes, kind: int, flags: int, segment: int) -> Record:
    durable = bool(flags & DURABLE)
    body = change[CHANGE_HEAD.size :]
    record: Record
    match kind:
        case Kind.APPEND:
            record = _append_of(change, flags)
        case Kind.CREATE:
            (key_length,) = _KEY_LENGTH.unpack_from(body)
            name = body[_KEY_LENGTH.size :].decode()
            record = Create(segment, name, None if key_length < 0 else key_length, durable)
        case Kind.ATTRIBUTES:
            record = Attributes(segment, list(ATTRIBUTE.iter_unpack(body)), durable)
        case Kind.TRUNCATE:
            record = Truncate(segment, _NUMBER.unpack(body)[0], durable)
        case Kind.MERGE:
            (source,) = _NUMBER.unpack_from(body)
            values = list(ATTRIBUTE.iter_unpack(body[_NUMBER.size :]))
            record = Merge(segment, source, values, durable)
        case Kind.SEAL | Kind.DELETE:
            record = (Seal if kind == Kind.SEAL else Delete)(segment, durable)
        case Kind.LINK:
            record = Link(*_LINK.unpack(body))
        case _:
            raise StoreError(f"the journal holds a change of kind {kind}, which is none")
    return record


def _append_of(change: bytes, flags: int) -> Append:
    _, _, _, _, segment, file, position, size, data_hash, writer, number = APPEND.unpack_from(
        change
    )
    return Append(
        segment,
        file,
        position,
        size,
        data_hash,
        change[APPEND_BYTES:] if flags & INLINE else None,
        writer if flags & HAS_WRITER else None,
        number,
        bool(flags & DURABLE),
    )
