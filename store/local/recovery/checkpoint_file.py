"""The checkpoint's bytes: every segment as it was before one frame of the journal. Pure.

Little-endian:

    checkpoint | magic | number | xxh3 of all that follows | head | segment ...
    bytes      | 7     | 1      | 8                        |

    head       sequence u64, file u64 and position u64 of the first frame that is not contained,
               its salt u64, next segment u64, next data file u64,
               flags u32 (1: the store was closed), count of segments u32,
               the store's id u64, size u64 of that journal file,
               count of loose data files u32, the number u64 of each

    segment    size u32 (all of it), flags u32 (1 sealed, 2 damaged), number u64,
               key_length i32 (-1: not a table), name size u32, start u64, length u64,
               modified_at_ms u64, count of attributes u32, of writers u32, of extents u32,
               name, attributes (16 bytes, i64) ..., writers alike, in the order of their last
               appends ..., extents (base u64, file u64) ...
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from xxhash import xxh3_64_intdigest

from store.errors import OtherFormat, StoreError
from store.local.commit.journal import JournalPlace
from store.local.commit.records import ATTRIBUTE
from store.local.state.segment import Segment

FORMAT_NUMBER: Final = 7
"""The number of the stored form, in every data directory. Each change of a stored form raises it by
one: of the journal, of tables, of streams and of what the gateway keeps in them too."""

_MAGIC: Final = b"hutchcp"
_BEGINNING: Final = _MAGIC + bytes((FORMAT_NUMBER,))
BEGINNING_BYTES: Final = len(_BEGINNING)
_CHECKSUM: Final = struct.Struct("<Q")
_BODY_AT: Final = BEGINNING_BYTES + _CHECKSUM.size
_HEAD: Final = struct.Struct("<QQQQQQIIQQI")
_LOOSE: Final = struct.Struct("<Q")
_SEGMENT: Final = struct.Struct("<IIQiIQQQIII")
_EXTENT: Final = struct.Struct("<QQ")

CHECKED_FROM_BYTES: Final = 64 * 1024 * 1024
"""A checkpoint above this is looked through before all of it is read (`check_size`): some hundred
thousand segments have less, and a file that only says that it is large may not fit into memory."""

_SIZE: Final = struct.Struct("<I")
_CLOSED: Final = 1
_SEALED: Final = 1
_DAMAGED: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointHead:
    """Facts in a checkpoint about the store as a whole.

    Attributes:
        place: The first frame that is not contained.
        salt: Seed of the checksums of that frame and of those behind it.
        next_segment: Number of the next segment.
        next_file: Number of the next data file.
        closed: The store was closed in good order.
        store_id: Seed of the heads of the journal's files.
        journal_size: Bytes of the journal file of `place`.
        loose: Numbers of data files that may be there although no segment has them.
    """

    place: JournalPlace
    salt: int
    next_segment: int
    next_file: int
    closed: bool
    store_id: int
    journal_size: int
    loose: tuple[int, ...] = ()


class SegmentImage(NamedTuple):
    """A segment as it is committed at one moment, cheap to take."""

    number: int
    name: str
    key_length: int | None
    sealed: bool
    corrupt: bool
    start: int
    length: int
    modified_at_ms: int
    attributes: dict[bytes, int]
    writers: dict[bytes, int]
    extents: list[tuple[int, int]]


def image_of(segment: Segment) -> SegmentImage:
    """Take the image of a segment."""
    state = segment.committed
    return SegmentImage(
        segment.number,
        segment.name,
        segment.key_length,
        state.sealed,
        segment.corrupt,
        state.start,
        state.length,
        state.modified_at_ms,
        dict(state.attributes.named),
        dict(state.attributes.writers),
        [(base, file.number) for base, file in state.extents],
    )


def bytes_of_segment(image: SegmentImage) -> bytes:
    """Encode one segment."""
    name = image.name.encode()
    attributes = [ATTRIBUTE.pack(*item) for item in image.attributes.items()]
    writers = [ATTRIBUTE.pack(*item) for item in image.writers.items()]
    extents = [_EXTENT.pack(*extent) for extent in image.extents]
    tail = b"".join((name, *attributes, *writers, *extents))
    head = _SEGMENT.pack(
        _SEGMENT.size + len(tail),
        (_SEALED if image.sealed else 0) | (_DAMAGED if image.corrupt else 0),
        image.number,
        -1 if image.key_length is None else image.key_length,
        len(name),
        image.start,
        image.length,
        image.modified_at_ms,
        len(attributes),
        len(writers),
        len(extents),
    )
    return head + tail


def bytes_of_checkpoint(head: CheckpointHead, segments: Iterable[bytes], count: int) -> bytes:
    """Join encoded segments into a whole checkpoint."""
    packed = _HEAD.pack(
        *head.place,
        head.salt,
        head.next_segment,
        head.next_file,
        _CLOSED if head.closed else 0,
        count,
        head.store_id,
        head.journal_size,
        len(head.loose),
    )
    body = b"".join((packed, *map(_LOOSE.pack, head.loose), *segments))
    return b"".join((_BEGINNING, _CHECKSUM.pack(xxh3_64_intdigest(body)), body))


def check_number(beginning: bytes) -> None:
    """Check the number of the stored form.

    Args:
        beginning: The first `BEGINNING_BYTES` of a checkpoint, or more of it.

    Raises:
        OtherFormat: It is another number. Whatever does not begin like a checkpoint is damage.
    """
    magic, number = beginning[: len(_MAGIC)], beginning[len(_MAGIC) : BEGINNING_BYTES]
    if magic == _MAGIC and number and number[0] != FORMAT_NUMBER:
        raise OtherFormat(
            f"this Hutch stores format {FORMAT_NUMBER}, the data directory has format {number[0]}:"
            " made by an unreleased Hutch: start with an empty directory"
        )


def check_size(size: int, read: Callable[[int, int], bytes]) -> None:
    """Check that a checkpoint has the bytes that its head and its segments say it has.

    Args:
        size: Of the file, in bytes.
        read: Gives up to so many bytes from a position on.

    Raises:
        OtherFormat: It has another number.
        StoreError: It has more or fewer, or does not begin like a checkpoint.
    """
    beginning = read(_BODY_AT + _HEAD.size, 0)
    _check_beginning(beginning)
    *_, count, _, _, loose_count = _HEAD.unpack_from(beginning, _BODY_AT)
    at = len(beginning) + loose_count * _LOOSE.size
    while count and at < size:
        count -= 1
        (segment_size,) = _SIZE.unpack(read(_SIZE.size, at).ljust(_SIZE.size, b"\0"))
        at += max(segment_size, _SEGMENT.size)
    if count or at != size:
        raise _does_not_fit(min(at, size))


def _check_beginning(data: bytes) -> None:
    check_number(data)
    if len(data) < _BODY_AT + _HEAD.size or not data.startswith(_BEGINNING):
        raise StoreError("the checkpoint is damaged: it does not begin like one")


def head_of_checkpoint(data: bytes) -> CheckpointHead:
    """Check a checkpoint, and decode its head.

    Raises:
        OtherFormat: It has another number.
        StoreError: It is damaged.
    """
    _check_beginning(data)
    (checksum,) = _CHECKSUM.unpack_from(data, BEGINNING_BYTES)
    if xxh3_64_intdigest(memoryview(data)[_BODY_AT:]) != checksum:
        raise StoreError("the checkpoint is damaged: its checksum does not match")
    sequence, file, position, salt, next_segment, next_file, flags, _, store_id, size, count = (
        _HEAD.unpack_from(data, _BODY_AT)
    )
    at = _BODY_AT + _HEAD.size
    loose = data[at : at + count * _LOOSE.size]
    if len(loose) != count * _LOOSE.size:
        raise _does_not_fit(at)
    return CheckpointHead(
        place=JournalPlace(sequence, file, position),
        salt=salt,
        next_segment=next_segment,
        next_file=next_file,
        closed=bool(flags & _CLOSED),
        store_id=store_id,
        journal_size=size,
        loose=tuple(number for (number,) in _LOOSE.iter_unpack(loose)),
    )


def segments_of_checkpoint(data: bytes) -> Iterator[SegmentImage]:
    """Decode the segments of a checkpoint whose head was checked.

    Raises:
        StoreError: Its checksum is right, and its counts and sizes do not fit each other.
    """
    *_, count, _, _, loose_count = _HEAD.unpack_from(data, _BODY_AT)
    at = _BODY_AT + _HEAD.size + loose_count * _LOOSE.size
    for _ in range(count):
        try:
            image, size = _image_at(data, at)
        except (struct.error, UnicodeDecodeError) as error:
            raise _does_not_fit(at) from error
        yield image
        at += size
    if at != len(data):
        raise _does_not_fit(at)


def _does_not_fit(at: int) -> StoreError:
    return StoreError(f"the checkpoint is damaged: what is at byte {at} does not fit the rest")


def _image_at(data: bytes, at: int) -> tuple[SegmentImage, int]:
    (
        size,
        flags,
        number,
        key_length,
        name_size,
        start,
        length,
        modified_at_ms,
        attribute_count,
        writer_count,
        extent_count,
    ) = _SEGMENT.unpack_from(data, at)
    name_at = at + _SEGMENT.size
    attributes_at = name_at + name_size
    writers_at = attributes_at + attribute_count * ATTRIBUTE.size
    extents_at = writers_at + writer_count * ATTRIBUTE.size
    end = extents_at + extent_count * _EXTENT.size
    if end != at + size or end > len(data):
        raise _does_not_fit(at)
    extents = list(_EXTENT.iter_unpack(data[extents_at:end]))
    bases = [base for base, _ in extents]
    # Each byte from the start to the end lies in a data file.
    is_covered = bool(bases) and bases[0] <= start and bases[-1] <= length
    if start > length or sorted(bases) != bases or (start < length and not is_covered):
        raise _does_not_fit(at)
    image = SegmentImage(
        number,
        data[name_at:attributes_at].decode(),
        None if key_length < 0 else key_length,
        bool(flags & _SEALED),
        bool(flags & _DAMAGED),
        start,
        length,
        modified_at_ms,
        dict(ATTRIBUTE.iter_unpack(data[attributes_at:writers_at])),
        dict(ATTRIBUTE.iter_unpack(data[writers_at:extents_at])),
        extents,
    )
    return image, size
