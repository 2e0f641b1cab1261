# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Publish frames to chunk entries and publishing ids, in one pass over what a socket read brought.

Cython compiles this file as it stands; uncompiled it is the reference and does the same, slowly.

    frame    | size u32 | key 0x0002 | version u16 | publisher u8 | count u32 | entries …
    entry v1 | publishing id u64 | 0:1 size:31 | body
             | publishing id u64 | 1:1 codec:3 0:4 | records u16 | uncompressed u32 | size u32 | body
    entry v2 | publishing id u64 | filter size u16 (0xFFFF: none) | filter | 0:1 size:31 | body
    chunk    | entry without its publishing id (and filter), otherwise byte for byte
"""

import cython

# What made `take_publishes` stop. Each is a place where only the caller can go on.
NEEDS_BYTES = 0  # the frame at `position` is not complete yet
OTHER_FRAME = 1  # the frame at `position` is not a Publish v1 of this publisher
CHUNK_FULL = 2  # the entry at `position` does not fit: close the chunk and call again
BAD_SUB_BATCH = 3  # the sub-batch at `position` breaks a rule: it and the rest of its frame are refused
MALFORMED = 4  # the entry at `position` ends past its frame

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
_NO_FILTER = cython.declare(cython.int, 0xFFFF)


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
def _sub_batch_is_good(
    source: cython.const_uchar[::1], position: cython.Py_ssize_t, uncompressed_max: cython.uint
) -> cython.bint:
    """Apply the five rules for a sub-batch's head; the body is never looked into."""
    codec: cython.int = (source[position] >> 4) & 7
    records: cython.uint = _u16_at(source, position + 1)
    uncompressed: cython.uint = _u32_at(source, position + 3)
    size: cython.uint = _u32_at(source, position + 7)
    if codec > _CODEC_MAX or records == 0 or uncompressed > uncompressed_max:
        return False
    if cython.cast(cython.ulonglong, records) * 4 > uncompressed:
        return False
    return not (size == 0 and codec != 0)


def take_publishes(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
    frame_end: cython.Py_ssize_t,
    frame_bytes_max: cython.ulonglong,
    publisher_id: cython.int,
    is_named: cython.bint,
    has_last: cython.bint,
    last_id: cython.ulonglong,
    target: cython.uchar[::1],
    written: cython.Py_ssize_t,
    capacity: cython.Py_ssize_t,
    entries_max: cython.Py_ssize_t,
    ids: cython.uchar[::1],
    duplicates: cython.uchar[::1],
    uncompressed_max: cython.uint,
):
    """Copy the entries of a run of Publish v1 frames of one publisher into a chunk.

    Args:
        source: The receive buffer.
        position: Where to go on: the start of a frame, or of an entry if `frame_end` is not 0.
        limit: End of what was received.
        frame_end: 0, or the end of the frame whose middle `position` is (after CHUNK_FULL).
        frame_bytes_max: A frame with a larger size field is left to the caller (OTHER_FRAME).
        publisher_id: The publisher whose frames are taken.
        is_named: Whether duplicates are dropped.
        has_last: Whether this publisher's reference has a last publishing id yet.
        last_id: That id; ids at or below it are duplicates.
        target: The open chunk's buffer.
        written: Bytes of `target` in use.
        capacity: Bytes of `target` an entry may reach; an entry that exceeds it is taken only
            while `entries_max` is its full 65,535 (an empty chunk) and `target` has the room.
        entries_max: How many entries the chunk still takes.
        ids: Gets the publishing ids of stored entries, 8 bytes each, as they came; at least
            8 × entries_max bytes.
        duplicates: Gets the ids of dropped entries, same layout; the call stops with CHUNK_FULL
            when it is full.
        uncompressed_max: Largest uncompressed size of a sub-batch in bytes.

    Returns:
        (reason, position, frame_end, written, entries, records, duplicate count, has_last,
        last_id): reason is one of the constants above; entries were stored, records is how many
        offsets they use.

    Source: RabbitMQ stream protocol, Publish; osiris chunk entries.
    """
    entries: cython.Py_ssize_t = 0
    records: cython.longlong = 0
    duplicate_bytes: cython.Py_ssize_t = 0
    duplicate_bytes_max: cython.Py_ssize_t = len(duplicates)
    target_bytes: cython.Py_ssize_t = len(target)
    entries_at_start: cython.Py_ssize_t = entries_max
    reason: cython.int = _NEEDS_BYTES
    size: cython.Py_ssize_t
    start: cython.Py_ssize_t
    body_end: cython.Py_ssize_t
    index: cython.Py_ssize_t
    entry_records: cython.uint
    head: cython.uint
    frame_size: cython.ulonglong
    publishing_id: cython.ulonglong = 0

    # hot: no Python operation from here to the return
    while True:
        if frame_end == 0:
            if position + _FRAME_HEAD_BYTES > limit:
                reason = _OTHER_FRAME if position + 4 <= limit else _NEEDS_BYTES
                break
            frame_size = _u32_at(source, position)
            if (
                _u32_at(source, position + 4) != 0x00020001
                or source[position + 8] != publisher_id
                or frame_size > frame_bytes_max
                or frame_size < 9
            ):
                reason = _OTHER_FRAME
                break
            if position + 4 + cython.cast(cython.Py_ssize_t, frame_size) > limit:
                break
            frame_end = position + 4 + cython.cast(cython.Py_ssize_t, frame_size)
            position += _FRAME_HEAD_BYTES
        while position < frame_end:
            start = position + _PUBLISHING_ID_BYTES
            if start + _SIMPLE_HEAD_BYTES > frame_end:
                reason = _MALFORMED
                break
            head = _u32_at(source, start)
            if head < 0x80000000:
                size = _SIMPLE_HEAD_BYTES + cython.cast(cython.Py_ssize_t, head)
                entry_records = 1
            else:
                if start + _SUB_BATCH_HEAD_BYTES > frame_end:
                    reason = _MALFORMED
                    break
                size = _SUB_BATCH_HEAD_BYTES + cython.cast(
                    cython.Py_ssize_t, _u32_at(source, start + 7)
                )
                entry_records = _u16_at(source, start + 1)
            body_end = start + size
            if body_end > frame_end:
                reason = _MALFORMED
                break
            if head >= 0x80000000 and not _sub_batch_is_good(source, start, uncompressed_max):
                reason = _BAD_SUB_BATCH
                break
            if is_named:
                publishing_id = _u64_at(source, position)
                if has_last and publishing_id <= last_id:
                    if duplicate_bytes == duplicate_bytes_max:
                        reason = _CHUNK_FULL
                        break
                    for index in range(8):
                        duplicates[duplicate_bytes + index] = source[position + index]
                    duplicate_bytes += 8
                    position = body_end
                    continue
            if entries == entries_max or (
                written + size > capacity
                and not (entries == 0 and entries_at_start == 65535 and written + size <= target_bytes)
            ):
                reason = _CHUNK_FULL
                break
            if is_named:
                last_id = publishing_id
                has_last = True
            for index in range(8):
                ids[entries * 8 + index] = source[position + index]
            target[written : written + size] = source[start:body_end]
            if head >= 0x80000000:  # the four unused bits of a sub-batch's first byte are stored as 0
                target[written] = target[written] & 0xF0
            written += size
            entries += 1
            records += entry_records
            position = body_end
        if position < frame_end:
            break
        frame_end = 0
    # end of hot

    return (
        reason,
        position,
        frame_end,
        written,
        entries,
        records,
        duplicate_bytes // 8,
        bool(has_last),
        last_id,
    )


def take_filtered(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    frame_end: cython.Py_ssize_t,
    is_named: cython.bint,
    has_last: cython.bint,
    last_id: cython.ulonglong,
    target: cython.uchar[::1],
    written: cython.Py_ssize_t,
    capacity: cython.Py_ssize_t,
    entries_max: cython.Py_ssize_t,
    ids: cython.uchar[::1],
    duplicates: cython.uchar[::1],
    filters: set,
):
    """Copy the entries of one Publish v2 frame into a chunk, and collect their filter values.

    Like `take_publishes`, for a frame whose head the caller has read: `position` is an entry's
    start and `frame_end` the frame's end. `filters` gets the distinct values of stored entries as
    bytes, and b"" for entries without one (no value and an empty value mean the same). A
    sub-batch is MALFORMED here: the protocol has no room for it in version 2.

    Returns:
        The same tuple; the reason is NEEDS_BYTES when the frame is used up.

    Source: RabbitMQ stream protocol, Publish version 2.
    """
    entries: cython.Py_ssize_t = 0
    duplicate_bytes: cython.Py_ssize_t = 0
    duplicate_bytes_max: cython.Py_ssize_t = len(duplicates)
    target_bytes: cython.Py_ssize_t = len(target)
    entries_at_start: cython.Py_ssize_t = entries_max
    reason: cython.int = _NEEDS_BYTES
    size: cython.Py_ssize_t
    start: cython.Py_ssize_t
    body_end: cython.Py_ssize_t
    index: cython.Py_ssize_t
    filter_size: cython.Py_ssize_t
    head: cython.uint
    publishing_id: cython.ulonglong = 0

    while position < frame_end:
        start = position + _PUBLISHING_ID_BYTES
        if start + 2 > frame_end:
            reason = _MALFORMED
            break
        filter_size = _u16_at(source, start)
        if filter_size == _NO_FILTER:
            filter_size = 0
        start += 2 + filter_size
        if start + _SIMPLE_HEAD_BYTES > frame_end:
            reason = _MALFORMED
            break
        head = _u32_at(source, start)
        size = _SIMPLE_HEAD_BYTES + cython.cast(cython.Py_ssize_t, head)
        body_end = start + size
        if head >= 0x80000000 or body_end > frame_end:
            reason = _MALFORMED
            break
        if is_named:
            publishing_id = _u64_at(source, position)
            if has_last and publishing_id <= last_id:
                if duplicate_bytes == duplicate_bytes_max:
                    reason = _CHUNK_FULL
                    break
                for index in range(8):
                    duplicates[duplicate_bytes + index] = source[position + index]
                duplicate_bytes += 8
                position = body_end
                continue
        if entries == entries_max or (
            written + size > capacity
            and not (entries == 0 and entries_at_start == 65535 and written + size <= target_bytes)
        ):
            reason = _CHUNK_FULL
            break
        if is_named:
            last_id = publishing_id
            has_last = True
        for index in range(8):
            ids[entries * 8 + index] = source[position + index]
        target[written : written + size] = source[start:body_end]
        filters.add(bytes(source[start - filter_size : start]))
        written += size
        entries += 1
        position = body_end

    return (
        reason,
        position,
        frame_end if position < frame_end else 0,
        written,
        entries,
        entries,
        duplicate_bytes // 8,
        bool(has_last),
        last_id,
    )


def publishing_ids_of(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    frame_end: cython.Py_ssize_t,
    version: cython.int,
):
    """Collect the publishing ids of the entries from `position` to the end of a Publish frame.

    Used to refuse them; nothing is validated but that the entries fill the frame exactly.

    Returns:
        (ids, position): the ids as a list, and `frame_end`, or where the first entry that does not
        fit begins.
    """
    ids: list = []
    start: cython.Py_ssize_t
    size: cython.Py_ssize_t
    filter_size: cython.Py_ssize_t
    head: cython.uint
    while position < frame_end:
        start = position + _PUBLISHING_ID_BYTES
        if version == 2:
            if start + 2 > frame_end:
                break
            filter_size = _u16_at(source, start)
            start += 2 if filter_size == _NO_FILTER else 2 + filter_size
        if start + _SIMPLE_HEAD_BYTES > frame_end:
            break
        head = _u32_at(source, start)
        if head < 0x80000000:
            size = _SIMPLE_HEAD_BYTES + cython.cast(cython.Py_ssize_t, head)
        elif version == 2 or start + _SUB_BATCH_HEAD_BYTES > frame_end:
            break
        else:
            size = _SUB_BATCH_HEAD_BYTES + cython.cast(
                cython.Py_ssize_t, _u32_at(source, start + 7)
            )
        if start + size > frame_end:
            break
        ids.append(_u64_at(source, position))
        position = start + size
    return ids, position
