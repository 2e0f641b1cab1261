# cython: language_level=3, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""Publish frames to chunk entries and publishing ids, in one pass over the bytes of a socket read.

Cython compiles this file as it stands; uncompiled it is the reference and does the same, slowly.

    frame    | size u32 | key 0x0002 | version u16 | publisher u8 | count u32 | entries …
    entry v1 | publishing id u64 | 0:1 size:31 | body
             | publishing id u64 | 1:1 codec:3 0:4 | records u16 | uncompressed u32 | size u32
             | body
    entry v2 | publishing id u64 | filter size u16 (0xFFFF: none) | filter | 0:1 size:31 | body
    chunk    | entry without its publishing id (and filter), otherwise byte for byte

Besides bytes, a call takes and changes a `State`.
"""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.hutch.bytes import copy_in, u16_in, u32_in, u64_in
    from cython.cimports.libc.string import memcpy
else:
    from hutch.bytes import copy_in, u16_in, u32_in, u64_in

# Reasons why a call stopped. After each of them only the caller can go on.
NEEDS_BYTES = 0  # the frame at POSITION is not complete yet, or the frame is used up
OTHER_FRAME = 1  # the frame at POSITION is not a Publish v1 of this publisher
CHUNK_FULL = 2  # the entry at POSITION does not fit, or no more duplicates: call again
BAD_SUB_BATCH = 3  # the sub-batch at POSITION breaks a rule: it and the frame's rest are refused
MALFORMED = 4  # the entry at POSITION does not fit its frame

_NEEDS_BYTES = cython.declare(cython.int, 0)
_OTHER_FRAME = cython.declare(cython.int, 1)
_CHUNK_FULL = cython.declare(cython.int, 2)
_BAD_SUB_BATCH = cython.declare(cython.int, 3)
_MALFORMED = cython.declare(cython.int, 4)

_FRAME_HEAD_BYTES = cython.declare(cython.Py_ssize_t, 13)  # size, key, version, publisher, count
_PUBLISHING_ID_BYTES = cython.declare(cython.Py_ssize_t, 8)
_SIMPLE_HEAD_BYTES = cython.declare(cython.Py_ssize_t, 4)
_SUB_BATCH_HEAD_BYTES = cython.declare(cython.Py_ssize_t, 11)
_CODEC_MAX = cython.declare(cython.int, 4)
_PUBLISH_V1 = cython.declare(cython.uint, 0x00020001)  # a bare literal is a Python int
_NO_FILTER = cython.declare(cython.int, 0xFFFF)


_ENTRIES_IN_EMPTY = cython.declare(cython.Py_ssize_t, 65535)


class State:
    """Numbers that a call takes and changes.

    Attributes:
        position: Where to go on: a frame's start, or an entry's if `frame_end` is not 0. In, out.
        frame_end: 0, or the end of the frame whose middle `position` is. In, out.
        limit: End of what was received.
        frame_bytes_max: A frame with a larger size field is left to the caller.
        publisher: Id of the publisher whose frames are taken.
        uncompressed_max: Largest uncompressed size of a sub-batch, bytes.
        written: Bytes of the target in use. In, out.
        capacity: How far entries may reach in the target. A single larger entry is taken into an
            empty chunk (`entries_max` is 65,535) if the target has the room.
        entries_max: Number of entries that the chunk still takes.
        is_named: True if ids at or below the last are duplicates, and dropped.
        has_last: True if there is a last id. In, out.
        last: That id, u64. In, out.
        entries: Entries taken by this call.
        records: Number of offsets that they use.
        duplicates: Entries dropped by this call.
    """

    __slots__ = (
        "capacity",
        "duplicates",
        "entries",
        "entries_max",
        "frame_bytes_max",
        "frame_end",
        "has_last",
        "is_named",
        "last",
        "limit",
        "position",
        "publisher",
        "records",
        "uncompressed_max",
        "written",
    )

    def __init__(self) -> None:
        self.position = self.frame_end = self.limit = self.frame_bytes_max = 0
        self.publisher = self.uncompressed_max = 0
        self.written = self.capacity = self.entries_max = 0
        self.is_named = self.has_last = False
        self.last = self.entries = self.records = self.duplicates = 0


@cython.cfunc  # compiled only
@cython.inline
@cython.exceptval(check=False)
def _put_u32(
    target: cython.p_uchar, position: cython.Py_ssize_t, number: cython.uint
) -> cython.void:
    target[position] = number >> 24
    target[position + 1] = (number >> 16) & 0xFF
    target[position + 2] = (number >> 8) & 0xFF
    target[position + 3] = number & 0xFF


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _sub_batch_is_good(
    source: cython.p_uchar, position: cython.Py_ssize_t, uncompressed_max: cython.uint
) -> cython.bint:
    """Apply the five rules for a sub-batch's head; the body is never read."""
    codec: cython.int = (source[position] >> 4) & 7
    records: cython.uint = u16_in(source, position + 1)
    uncompressed: cython.uint = u32_in(source, position + 3)
    size: cython.uint = u32_in(source, position + 7)
    if codec > _CODEC_MAX or records == 0 or uncompressed > uncompressed_max:
        return False
    if cython.cast(cython.ulonglong, records) * 4 > uncompressed:
        return False
    return not (size == 0 and codec != 0)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _copy_id(
    target: cython.p_uchar,
    number: cython.Py_ssize_t,
    source: cython.p_uchar,
    position: cython.Py_ssize_t,
) -> cython.void:
    """Copy the publishing id at `position` behind `count` others."""
    copy_in(target, number * _PUBLISHING_ID_BYTES, source, position, _PUBLISHING_ID_BYTES)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _fits(state: State, end: cython.Py_ssize_t, target_bytes: cython.Py_ssize_t) -> cython.bint:
    """Return whether the chunk takes one more entry that would end at `end`."""
    if state.entries == state.entries_max:
        return False
    if end <= state.capacity:
        return True
    is_empty: cython.bint = state.entries == 0 and state.entries_max == _ENTRIES_IN_EMPTY
    return is_empty and end <= target_bytes


@cython.cfunc
def _put_filter(
    source: cython.p_uchar,
    position: cython.Py_ssize_t,
    start: cython.Py_ssize_t,
    filters: set,
) -> cython.int:
    """Note the filter value of the entry at `position`; an empty one counts as none."""
    filters.add(bytes(source[position + _PUBLISHING_ID_BYTES + 2 : start]))
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _body_start(
    source: cython.p_uchar,
    position: cython.Py_ssize_t,
    frame_end: cython.Py_ssize_t,
    has_filters: cython.bint,
) -> cython.Py_ssize_t:
    """Return the start of the stored part of the entry at `position`; `frame_end` if cut off."""
    filter_size: cython.Py_ssize_t
    position += _PUBLISHING_ID_BYTES
    if has_filters:
        if position + 2 > frame_end:
            return frame_end
        filter_size = u16_in(source, position)
        position += 2 if filter_size == _NO_FILTER else 2 + filter_size
    return position


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _body_size(
    source: cython.p_uchar,
    start: cython.Py_ssize_t,
    frame_end: cython.Py_ssize_t,
    has_filters: cython.bint,
) -> cython.Py_ssize_t:
    """Return the size of the stored part at `start` with its head; 0 if it does not fit."""
    size: cython.Py_ssize_t
    if start + _SIMPLE_HEAD_BYTES > frame_end:
        return 0
    if source[start] < 128:
        size = _SIMPLE_HEAD_BYTES + cython.cast(cython.Py_ssize_t, u32_in(source, start))
    elif has_filters or start + _SUB_BATCH_HEAD_BYTES > frame_end:
        return 0  # version 2 has no room for a sub-batch
    else:
        size = _SUB_BATCH_HEAD_BYTES + cython.cast(cython.Py_ssize_t, u32_in(source, start + 7))
    return size if start + size <= frame_end else 0


@cython.cfunc
def _take_entries(
    source: cython.p_uchar,
    target: cython.p_uchar,
    target_bytes: cython.Py_ssize_t,
    ids: cython.p_uchar,
    duplicates: cython.p_uchar,
    duplicates_max: cython.Py_ssize_t,
    state: State,
    filters: object,
) -> cython.int:
    """Copy the entries from POSITION to FRAME_END; return why it stopped."""
    position: cython.Py_ssize_t = state.position
    frame_end: cython.Py_ssize_t = state.frame_end
    written: cython.Py_ssize_t = state.written
    has_filters: cython.bint = filters is not None
    is_named: cython.bint = state.is_named
    reason: cython.int = _NEEDS_BYTES
    publishing_id: cython.ulonglong = 0
    # hot: no Python operation up to the end of the loop, except for filter values
    while position < frame_end:
        start: cython.Py_ssize_t = _body_start(source, position, frame_end, has_filters)
        size: cython.Py_ssize_t = _body_size(source, start, frame_end, has_filters)
        is_batch: cython.bint = size != 0 and source[start] >= 128
        if size == 0:
            reason = _MALFORMED
            break
        if is_batch and not _sub_batch_is_good(source, start, state.uncompressed_max):
            reason = _BAD_SUB_BATCH
            break
        if is_named:
            publishing_id = u64_in(source, position)
            if state.has_last and publishing_id <= state.last:
                if state.duplicates == duplicates_max:
                    reason = _CHUNK_FULL
                    break
                _copy_id(duplicates, state.duplicates, source, position)
                state.duplicates += 1
                position = start + size
                continue
        if not _fits(state, written + size, target_bytes):
            reason = _CHUNK_FULL
            break
        if is_named:
            state.last = publishing_id
            state.has_last = True
        if has_filters:
            _put_filter(source, position, start, filters)
        state.records += u16_in(source, start + 1) if is_batch else 1
        _copy_id(ids, state.entries, source, position)
        state.entries += 1
        copy_in(target, written, source, start, size)
        if is_batch:  # the four unused bits are stored as 0
            target[written] = target[written] & 0xF0
        written += size
        position = start + size
    # end of hot
    state.position = position
    state.written = written
    return reason


def take_publishes(
    source: bytearray, target: bytearray, ids: bytearray, duplicates: bytearray, state: State
) -> cython.int:
    """Copy the entries of a run of Publish v1 frames of one publisher into a chunk.

    Args:
        source: The receive buffer.
        target: The open chunk's buffer.
        ids: Gets the publishing ids of stored entries, 8 bytes each; room for 65,535.
        duplicates: Gets the ids of dropped entries; the call stops when it is full.
        state: See there.

    Returns:
        The reason why it stopped: one of the constants above.

    Source: RabbitMQ stream protocol, Publish; osiris chunk entries.
    """
    reason: cython.int = _NEEDS_BYTES
    position: cython.Py_ssize_t
    size: cython.longlong
    bytes_in: cython.p_uchar = source
    target_bytes: cython.Py_ssize_t = len(target)
    duplicates_max: cython.Py_ssize_t = len(duplicates) // _PUBLISHING_ID_BYTES
    state.entries = state.records = state.duplicates = 0
    while True:
        if state.frame_end == 0:
            position = state.position
            if position + _FRAME_HEAD_BYTES > state.limit:
                return _OTHER_FRAME if position + 4 <= state.limit else _NEEDS_BYTES
            size = u32_in(bytes_in, position)
            if (
                u32_in(bytes_in, position + 4) != _PUBLISH_V1
                or bytes_in[position + 8] != state.publisher
                or size > state.frame_bytes_max
                or size < _FRAME_HEAD_BYTES - 4
            ):
                return _OTHER_FRAME
            if position + 4 + size > state.limit:
                return _NEEDS_BYTES
            state.frame_end = position + 4 + size
            state.position = position + _FRAME_HEAD_BYTES
        reason = _take_entries(
            bytes_in, target, target_bytes, ids, duplicates, duplicates_max, state, None
        )
        if reason != _NEEDS_BYTES:
            return reason
        state.frame_end = 0


def take_filtered(
    source: bytearray,
    target: bytearray,
    ids: bytearray,
    duplicates: bytearray,
    state: State,
    filters: set,
) -> cython.int:
    """Copy the entries of one Publish v2 frame into a chunk, and collect their filter values.

    Like `take_publishes`, for a frame whose head the caller has read: `position` is an entry's
    start and `frame_end` the frame's end. `filters` gets the distinct values of stored entries, and
    b"" for entries without one. A sub-batch is MALFORMED here.

    Source: RabbitMQ stream protocol, Publish version 2.
    """
    duplicates_max: cython.Py_ssize_t = len(duplicates) // _PUBLISHING_ID_BYTES
    state.entries = state.records = state.duplicates = 0
    return _take_entries(
        source, target, len(target), ids, duplicates, duplicates_max, state, filters
    )


def confirm_of(publisher_id: cython.int, ids: bytes) -> bytes:
    """Return a PublishConfirm frame for publishing ids, 8 bytes each.

    Source: RabbitMQ stream protocol, PublishConfirm.
    """
    size: cython.Py_ssize_t = len(ids)
    if cython.compiled:
        frame: bytes = PyBytes_FromStringAndSize(cython.NULL, 13 + size)
        target: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(frame))
        _put_u32(target, 0, cython.cast(cython.uint, 9 + size))
        _put_u32(target, 4, 0x00030001)
        target[8] = publisher_id
        _put_u32(target, 9, cython.cast(cython.uint, size // 8))
        memcpy(target + 13, PyBytes_AS_STRING(ids), size)
        return frame
    return b"".join(
        (
            (9 + size).to_bytes(4, "big"),
            b"\x00\x03\x00\x01",
            bytes((publisher_id,)),
            (size // 8).to_bytes(4, "big"),
            ids,
        )
    )


def deliver_of(
    version: cython.int,
    subscription_id: cython.int,
    committed_chunk_id: cython.ulonglong,
    chunk_bytes: cython.Py_ssize_t,
    head: bytes,
) -> bytes:
    """Return a Deliver frame, or its beginning.

    Args:
        version: 1, or 2 with the id of the last chunk that is committed.
        subscription_id: The client's number for it.
        committed_chunk_id: That id.
        chunk_bytes: Size of the chunk, header and data.
        head: The first bytes of the chunk, or all.

    Source: RabbitMQ stream protocol, Deliver.
    """
    place: cython.int = 9 if version == 1 else 17
    body_bytes: cython.Py_ssize_t = place - 4 + chunk_bytes
    if cython.compiled:
        size: cython.Py_ssize_t = len(head)
        frame: bytes = PyBytes_FromStringAndSize(cython.NULL, place + size)
        target: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(frame))
        _put_u32(target, 0, cython.cast(cython.uint, body_bytes))
        _put_u32(target, 4, cython.cast(cython.uint, 0x00080000 + version))
        target[8] = subscription_id
        if version != 1:
            _put_u32(target, 9, cython.cast(cython.uint, committed_chunk_id >> 32))
            _put_u32(target, 13, cython.cast(cython.uint, committed_chunk_id))
        memcpy(target + place, PyBytes_AS_STRING(head), size)
        return frame
    begin = body_bytes.to_bytes(4, "big") + b"\x00\x08\x00" + bytes((version, subscription_id))
    return begin + (b"" if version == 1 else committed_chunk_id.to_bytes(8, "big")) + head


def u32_at(source: bytearray, position: cython.Py_ssize_t) -> cython.longlong:
    """Return the u32 at a position, of which all four bytes are there."""
    return u32_in(source, position)


def publishing_ids_of(
    source: bytearray,
    position: cython.Py_ssize_t,
    frame_end: cython.Py_ssize_t,
    version: cython.int,
) -> tuple:
    """Collect the publishing ids of the entries from `position` to the end of a Publish frame.

    Used to refuse them. The only check is that the entries fill the frame exactly.

    Returns:
        (ids, position): the ids as a list, and `frame_end`, or the start of the first entry that
        does not fit.
    """
    ids: list = []
    has_filters: cython.bint = version > 1
    while position < frame_end:
        start: cython.Py_ssize_t = _body_start(source, position, frame_end, has_filters)
        size: cython.Py_ssize_t = _body_size(source, start, frame_end, has_filters)
        if size == 0:
            break
        ids.append(u64_in(source, position))
        position = start + size
    return ids, position
