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

Besides bytes, a call takes and returns an array of signed 64-bit numbers, `state`:

    POSITION         where to go on: a frame's start, or an entry's if FRAME_END is not 0     in out
    FRAME_END        0, or the end of the frame whose middle POSITION is                      in out
    LIMIT            end of what was received                                                 in
    FRAME_BYTES_MAX  a frame with a larger size field is left to the caller                   in
    PUBLISHER        id of the publisher whose frames are taken                               in
    UNCOMPRESSED_MAX largest uncompressed size of a sub-batch, bytes                          in
    WRITTEN          bytes of the target in use                                               in out
    CAPACITY         how far entries may reach in the target; a single larger entry is taken
                     into an empty chunk (ENTRIES_MAX is 65,535) if the target has the room   in
    ENTRIES_MAX      how many entries the chunk still takes                                   in
    IS_NAMED         1 if ids at or below the last are duplicates, and dropped                in
    HAS_LAST, LAST   1 if there is a last id, and that id (u64 in two's complement)           in out
    ENTRIES, RECORDS entries taken by this call, and the number of offsets they use           out
    DUPLICATES       entries dropped by this call                                             out
"""

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

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

# Places in `state`; a second list has the same for the compiled code.
POSITION = 0
FRAME_END = 1
LIMIT = 2
FRAME_BYTES_MAX = 3
PUBLISHER = 4
UNCOMPRESSED_MAX = 5
WRITTEN = 6
CAPACITY = 7
ENTRIES_MAX = 8
IS_NAMED = 9
HAS_LAST = 10
LAST = 11
ENTRIES = 12
RECORDS = 13
DUPLICATES = 14
STATE_SIZE = 15

_POSITION = cython.declare(cython.Py_ssize_t, 0)
_FRAME_END = cython.declare(cython.Py_ssize_t, 1)
_LIMIT = cython.declare(cython.Py_ssize_t, 2)
_FRAME_BYTES_MAX = cython.declare(cython.Py_ssize_t, 3)
_PUBLISHER = cython.declare(cython.Py_ssize_t, 4)
_UNCOMPRESSED_MAX = cython.declare(cython.Py_ssize_t, 5)
_WRITTEN = cython.declare(cython.Py_ssize_t, 6)
_CAPACITY = cython.declare(cython.Py_ssize_t, 7)
_ENTRIES_MAX = cython.declare(cython.Py_ssize_t, 8)
_IS_NAMED = cython.declare(cython.Py_ssize_t, 9)
_HAS_LAST = cython.declare(cython.Py_ssize_t, 10)
_LAST = cython.declare(cython.Py_ssize_t, 11)
_ENTRIES = cython.declare(cython.Py_ssize_t, 12)
_RECORDS = cython.declare(cython.Py_ssize_t, 13)
_DUPLICATES = cython.declare(cython.Py_ssize_t, 14)

_FRAME_HEAD_BYTES = cython.declare(cython.Py_ssize_t, 13)  # size, key, version, publisher, count
_PUBLISHING_ID_BYTES = cython.declare(cython.Py_ssize_t, 8)
_SIMPLE_HEAD_BYTES = cython.declare(cython.Py_ssize_t, 4)
_SUB_BATCH_HEAD_BYTES = cython.declare(cython.Py_ssize_t, 11)
_CODEC_MAX = cython.declare(cython.int, 4)
_PUBLISH_V1 = cython.declare(cython.uint, 0x00020001)  # a bare literal is a Python int
_NO_FILTER = cython.declare(cython.int, 0xFFFF)


_ENTRIES_IN_EMPTY = cython.declare(cython.Py_ssize_t, 65535)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _u16_at(source: cython.const_uchar[::1], position: cython.Py_ssize_t) -> cython.uint:
    return (cython.cast(cython.uint, source[position]) << 8) | source[position + 1]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _u32_at(source: cython.const_uchar[::1], position: cython.Py_ssize_t) -> cython.uint:
    return (
        (cython.cast(cython.uint, source[position]) << 24)
        | (cython.cast(cython.uint, source[position + 1]) << 16)
        | (cython.cast(cython.uint, source[position + 2]) << 8)
        | source[position + 3]
    )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _u64_at(source: cython.const_uchar[::1], position: cython.Py_ssize_t) -> cython.ulonglong:
    return (cython.cast(cython.ulonglong, _u32_at(source, position)) << 32) | _u32_at(
        source, position + 4
    )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _copy(
    target: cython.uchar[::1],
    place: cython.Py_ssize_t,
    source: cython.const_uchar[::1],
    start: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.void:
    """Copy `size` bytes. Compiled slices do the same, but cost as much as copying 500 bytes."""
    if cython.compiled:
        memcpy(cython.address(target[place]), cython.address(source[start]), size)
    else:
        target[place : place + size] = source[start : start + size]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _sub_batch_is_good(
    source: cython.const_uchar[::1], position: cython.Py_ssize_t, uncompressed_max: cython.uint
) -> cython.bint:
    """Apply the five rules for a sub-batch's head; the body is never read."""
    codec: cython.int = (source[position] >> 4) & 7
    records: cython.uint = _u16_at(source, position + 1)
    uncompressed: cython.uint = _u32_at(source, position + 3)
    size: cython.uint = _u32_at(source, position + 7)
    if codec > _CODEC_MAX or records == 0 or uncompressed > uncompressed_max:
        return False
    if cython.cast(cython.ulonglong, records) * 4 > uncompressed:
        return False
    return not (size == 0 and codec != 0)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _as_id(number: cython.longlong) -> cython.ulonglong:
    """Return the id of a number in two's complement."""
    if cython.compiled:
        return cython.cast(cython.ulonglong, number)
    return number & 0xFFFF_FFFF_FFFF_FFFF


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _as_signed(publishing_id: cython.ulonglong) -> cython.longlong:
    """Return an id as a number in two's complement."""
    if cython.compiled:
        return cython.cast(cython.longlong, publishing_id)
    return publishing_id - (publishing_id >> 63 << 64)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_id(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    target: cython.uchar[::1],
    state: cython.longlong[::1],
    counter: cython.Py_ssize_t,
) -> cython.bint:
    """Copy the publishing id at `position` behind those counted in `counter`; False if full."""
    place: cython.Py_ssize_t = state[counter] * _PUBLISHING_ID_BYTES
    if place + _PUBLISHING_ID_BYTES > len(target):
        return False
    _copy(target, place, source, position, _PUBLISHING_ID_BYTES)
    state[counter] += 1
    return True


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _fits(
    state: cython.longlong[::1], end: cython.Py_ssize_t, target_bytes: cython.Py_ssize_t
) -> cython.bint:
    """Tell whether the chunk takes one more entry that would end at `end`."""
    if state[_ENTRIES] == state[_ENTRIES_MAX]:
        return False
    if end <= state[_CAPACITY]:
        return True
    is_empty: cython.bint = state[_ENTRIES] == 0 and state[_ENTRIES_MAX] == _ENTRIES_IN_EMPTY
    return is_empty and end <= target_bytes


@cython.cfunc
def _put_filter(
    source: cython.const_uchar[::1],
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
    source: cython.const_uchar[::1],
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
        filter_size = _u16_at(source, position)
        position += 2 if filter_size == _NO_FILTER else 2 + filter_size
    return position


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _body_size(
    source: cython.const_uchar[::1],
    start: cython.Py_ssize_t,
    frame_end: cython.Py_ssize_t,
    has_filters: cython.bint,
) -> cython.Py_ssize_t:
    """Return the size of the stored part at `start` with its head; 0 if it does not fit."""
    size: cython.Py_ssize_t
    if start + _SIMPLE_HEAD_BYTES > frame_end:
        return 0
    if source[start] < 128:
        size = _SIMPLE_HEAD_BYTES + cython.cast(cython.Py_ssize_t, _u32_at(source, start))
    elif has_filters or start + _SUB_BATCH_HEAD_BYTES > frame_end:
        return 0  # version 2 has no room for a sub-batch
    else:
        size = _SUB_BATCH_HEAD_BYTES + cython.cast(cython.Py_ssize_t, _u32_at(source, start + 7))
    return size if start + size <= frame_end else 0


@cython.cfunc
def _take_entries(
    source: cython.const_uchar[::1],
    target: cython.uchar[::1],
    ids: cython.uchar[::1],
    duplicates: cython.uchar[::1],
    state: cython.longlong[::1],
    filters: object,
) -> cython.int:
    """Copy the entries from POSITION to FRAME_END; return why it stopped."""
    position: cython.Py_ssize_t = state[_POSITION]
    frame_end: cython.Py_ssize_t = state[_FRAME_END]
    written: cython.Py_ssize_t = state[_WRITTEN]
    has_filters: cython.bint = filters is not None
    is_named: cython.bint = state[_IS_NAMED] != 0
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
        if is_batch and not _sub_batch_is_good(source, start, state[_UNCOMPRESSED_MAX]):
            reason = _BAD_SUB_BATCH
            break
        if is_named:
            publishing_id = _u64_at(source, position)
            if state[_HAS_LAST] != 0 and publishing_id <= _as_id(state[_LAST]):
                if not _put_id(source, position, duplicates, state, _DUPLICATES):
                    reason = _CHUNK_FULL
                    break
                position = start + size
                continue
        if not _fits(state, written + size, len(target)):
            reason = _CHUNK_FULL
            break
        if is_named:
            state[_LAST] = _as_signed(publishing_id)
            state[_HAS_LAST] = 1
        if has_filters:
            _put_filter(source, position, start, filters)
        state[_RECORDS] += _u16_at(source, start + 1) if is_batch else 1
        _put_id(source, position, ids, state, _ENTRIES)
        _copy(target, written, source, start, size)
        if is_batch:  # the four unused bits are stored as 0
            target[written] = target[written] & 0xF0
        written += size
        position = start + size
    # end of hot
    state[_POSITION] = position
    state[_WRITTEN] = written
    return reason


def take_publishes(
    source: cython.const_uchar[::1],
    target: cython.uchar[::1],
    ids: cython.uchar[::1],
    duplicates: cython.uchar[::1],
    state: cython.longlong[::1],
) -> cython.int:
    """Copy the entries of a run of Publish v1 frames of one publisher into a chunk.

    Args:
        source: The receive buffer.
        target: The open chunk's buffer.
        ids: Gets the publishing ids of stored entries, 8 bytes each; room for 65,535.
        duplicates: Gets the ids of dropped entries; the call stops when it is full.
        state: See the module's docstring.

    Returns:
        The reason why it stopped: one of the constants above.

    Source: RabbitMQ stream protocol, Publish; osiris chunk entries.
    """
    reason: cython.int = _NEEDS_BYTES
    position: cython.Py_ssize_t
    size: cython.longlong
    state[_ENTRIES] = state[_RECORDS] = state[_DUPLICATES] = 0
    while True:
        if state[_FRAME_END] == 0:
            position = state[_POSITION]
            if position + _FRAME_HEAD_BYTES > state[_LIMIT]:
                return _OTHER_FRAME if position + 4 <= state[_LIMIT] else _NEEDS_BYTES
            size = _u32_at(source, position)
            if (
                _u32_at(source, position + 4) != _PUBLISH_V1
                or source[position + 8] != state[_PUBLISHER]
                or size > state[_FRAME_BYTES_MAX]
                or size < _FRAME_HEAD_BYTES - 4
            ):
                return _OTHER_FRAME
            if position + 4 + size > state[_LIMIT]:
                return _NEEDS_BYTES
            state[_FRAME_END] = position + 4 + size
            state[_POSITION] = position + _FRAME_HEAD_BYTES
        reason = _take_entries(source, target, ids, duplicates, state, None)
        if reason != _NEEDS_BYTES:
            return reason
        state[_FRAME_END] = 0


def take_filtered(
    source: cython.const_uchar[::1],
    target: cython.uchar[::1],
    ids: cython.uchar[::1],
    duplicates: cython.uchar[::1],
    state: cython.longlong[::1],
    filters: set,
) -> cython.int:
    """Copy the entries of one Publish v2 frame into a chunk, and collect their filter values.

    Like `take_publishes`, for a frame whose head the caller has read: POSITION is an entry's start
    and FRAME_END the frame's end. `filters` gets the distinct values of stored entries, and b""
    for entries without one. A sub-batch is MALFORMED here.

    Source: RabbitMQ stream protocol, Publish version 2.
    """
    state[_ENTRIES] = state[_RECORDS] = state[_DUPLICATES] = 0
    return _take_entries(source, target, ids, duplicates, state, filters)


def publishing_ids_of(
    source: cython.const_uchar[::1],
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
        ids.append(_u64_at(source, position))
        position = start + size
    return ids, position
