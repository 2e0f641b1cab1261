# cython: language_level=3, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""Stored chunks: walk them, check them, and join many small ones into one for delivery.

Cython compiles this file as it stands; uncompiled it is the reference and does the same, slowly.

A chunk is stored as one event, all integers big-endian:

    event   | u32 0 | u32 size of the rest | header 48 | data | trailer | filter values | seal u32 |
    header  | 0x50 | type u8 | entries u16 | records u32 | timestamp ms i64 | epoch u64
            | chunk id u64 | crc u32 | data size u32 | trailer size u32 | bloom u8 | 0 u24 |

A seal is the CRC-32 of header, trailer and filter values; the oldest chunks may be without.
"""

import cython

from gateway.log.fast_crc import FAST_CRC32
from gateway.log.kernel.sealing import CRC_TABLE

if cython.compiled:
    from cython.cimports.hutch.bytes import (
        FastCrc,
        copy_at,
        crc32_at,
        event_size,
        has_seal,
        u16_at,
        u32_at,
        u64_at,
    )

    # Null where there is none.
    _fast_crc = cython.declare(
        FastCrc, cython.cast(FastCrc, cython.cast(cython.size_t, FAST_CRC32))
    )
else:
    from hutch.bytes import (
        copy_at,
        crc32_at,
        event_size,
        has_seal,
        u16_at,
        u32_at,
        u64_at,
    )

    _fast_crc = None

# Reasons why a walk or a join stopped.
NEEDS_BYTES = 0  # the bytes are used up, or end inside a chunk
BAD_CRC = 1  # the data of the chunk at the place does not have its checksum
MALFORMED = 2  # the bytes at the place are not a chunk
NOT_JOINABLE = 3  # the chunk at the place must not be joined to what was joined so far
BAD_HEADER = 4  # the header of the chunk at the place does not fit the entries behind it
NOT_NEXT = 5  # the chunk at the place does not begin with the offset behind the one before it
BAD_SEAL = 6  # the header, the trailer or the filter values of the chunk do not have their checksum

_NEEDS_BYTES = cython.declare(cython.int, 0)
_BAD_CRC = cython.declare(cython.int, 1)
_MALFORMED = cython.declare(cython.int, 2)
_NOT_JOINABLE = cython.declare(cython.int, 3)
_BAD_HEADER = cython.declare(cython.int, 4)
_NOT_NEXT = cython.declare(cython.int, 5)
_BAD_SEAL = cython.declare(cython.int, 6)

_EVENT_AND_HEADER_BYTES = cython.declare(cython.Py_ssize_t, 56)
_SUB_BATCH_FLAG = cython.declare(cython.uint, 0x80000000)
_SUB_BATCH_HEAD_BYTES = cython.declare(cython.Py_ssize_t, 11)
_ENTRIES_MAX = cython.declare(cython.uint, 65535)
_JOINED_SPAN_MS = cython.declare(cython.longlong, 1000)


_TABLE = cython.declare(cython.const_uint[::1], CRC_TABLE)


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _i64_at(source: cython.const_uchar[::1], position: cython.Py_ssize_t) -> cython.longlong:
    number: cython.ulonglong = u64_at(source, position)
    if cython.compiled:
        return cython.cast(cython.longlong, number)
    return number - (number >> 63 << 64)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _has_crc(source: cython.const_uchar[::1], position: cython.Py_ssize_t) -> cython.bint:
    """Return whether the data of the event at `position` matches its checksum."""
    data: cython.Py_ssize_t = position + _EVENT_AND_HEADER_BYTES
    end: cython.Py_ssize_t = data + u32_at(source, position + 44)
    return crc32_at(_fast_crc, _TABLE, source, data, end, 0) == u32_at(source, position + 40)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_simple(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    entries: cython.uint,
) -> cython.bint:
    """Return whether [position, end) is exactly `entries` simple entries."""
    head: cython.uint
    while entries != 0:
        if position + 4 > end:
            return False
        head = u32_at(source, position)
        if head >= _SUB_BATCH_FLAG:
            return False
        position += 4 + cython.cast(cython.Py_ssize_t, head)
        entries -= 1
    return position == end


def walk_chunks(
    source: cython.const_uchar[::1], position: cython.Py_ssize_t, limit: cython.Py_ssize_t
) -> tuple:
    """List the whole chunks in [position, limit) by their headers; no checksum is checked.

    Args:
        source: Stored bytes.
        position: Start of an event.
        limit: End of the bytes.

    Returns:
        (reason, position, chunks): why and where the walk stopped. A chunk is the tuple (place of
        its event, size of the event, chunk id, records, timestamp, epoch, data size, trailer size).
    """
    chunks: list = []
    size: cython.Py_ssize_t
    reason: cython.int = _NEEDS_BYTES
    while True:
        size = event_size(source, position, limit)
        if size <= 0:
            if size < 0:
                reason = _MALFORMED
            break
        chunks.append(
            (
                position,
                size,
                u64_at(source, position + 32),
                u32_at(source, position + 12),
                _i64_at(source, position + 16),
                u64_at(source, position + 24),
                u32_at(source, position + 44),
                u32_at(source, position + 48),
            )
        )
        position += size
    return reason, position, chunks


def verify_chunks(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
) -> tuple:
    """Check the CRC of every whole chunk in [position, limit); lets other threads run meanwhile.

    Returns:
        (reason, position): BAD_CRC or MALFORMED with the place of the chunk at fault, or
        NEEDS_BYTES with the end of the last whole chunk.
    """
    size: cython.Py_ssize_t
    reason: cython.int = _NEEDS_BYTES
    with cython.nogil:
        while True:
            size = event_size(source, position, limit)
            if size <= 0:
                if size < 0:
                    reason = _MALFORMED
                break
            if not _has_crc(source, position):
                reason = _BAD_CRC
                break
            position += size
    return reason, position


def check_seals(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
    seed: cython.uint,
) -> tuple:
    """Check the seal of every whole chunk, as `verify_chunks` its CRC; the reason is BAD_SEAL."""
    size: cython.Py_ssize_t
    reason: cython.int = _NEEDS_BYTES
    with cython.nogil:
        while True:
            size = event_size(source, position, limit)
            if size <= 0:
                if size < 0:
                    reason = _MALFORMED
                break
            if not has_seal(_fast_crc, _TABLE, source, position, size, seed):
                reason = _BAD_SEAL
                break
            position += size
    return reason, position


def find_sealed(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
    seed: cython.uint,
) -> int:
    """Find the first whole chunk with its seal in [position, limit); -1: there is none."""
    size: cython.Py_ssize_t
    with cython.nogil:
        while position + _EVENT_AND_HEADER_BYTES <= limit:
            if source[position + 8] == 0x50:
                size = event_size(source, position, limit)
                if size > 0 and has_seal(_fast_crc, _TABLE, source, position, size, seed):
                    break
            position += 1
    return position if position + _EVENT_AND_HEADER_BYTES <= limit else -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _records_in(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    entries: cython.uint,
) -> cython.longlong:
    """Count the records of [position, end); -1 if its entries are not exactly `entries`."""
    head: cython.uint
    records: cython.longlong = 0
    while entries != 0:
        if position + 4 > end:
            return -1
        head = u32_at(source, position)
        if head < _SUB_BATCH_FLAG:
            records += 1
            position += 4 + cython.cast(cython.Py_ssize_t, head)
        elif position + _SUB_BATCH_HEAD_BYTES > end:
            return -1
        else:
            records += u16_at(source, position + 1)
            position += _SUB_BATCH_HEAD_BYTES + cython.cast(
                cython.Py_ssize_t, u32_at(source, position + 7)
            )
        entries -= 1
    return records if position == end else -1


def follow_chunks(
    source: cython.const_uchar[::1], position: cython.Py_ssize_t, limit: cython.Py_ssize_t
) -> tuple:
    """Check that each whole chunk in [position, limit) fits its header and the chunk before it.

    A chunk holds records of users, its data has as many entries and records as the header says, and
    its offsets begin where those of the chunk before it end. Lets other threads run meanwhile.

    Returns:
        (reason, position, first, next): BAD_HEADER, NOT_NEXT or MALFORMED with the place of the
        chunk at fault, or NEEDS_BYTES with the end of the last whole one; the offset of the first
        chunk, and the one behind the last that is not at fault, both 0 if there is none.
    """
    size: cython.Py_ssize_t
    data_end: cython.Py_ssize_t
    begin: cython.Py_ssize_t = position
    first: cython.ulonglong = 0
    following: cython.ulonglong = 0
    records: cython.uint
    reason: cython.int = _NEEDS_BYTES
    with cython.nogil:
        while True:
            size = event_size(source, position, limit)
            if size <= 0:
                if size < 0:
                    reason = _MALFORMED
                break
            data_end = position + _EVENT_AND_HEADER_BYTES + u32_at(source, position + 44)
            records = u32_at(source, position + 12)
            if (
                source[position + 9] != 0
                or u32_at(source, position + 52) != 0
                or _records_in(
                    source,
                    position + _EVENT_AND_HEADER_BYTES,
                    data_end,
                    u16_at(source, position + 10),
                )
                != cython.cast(cython.longlong, records)
            ):
                reason = _BAD_HEADER
                break
            if position == begin:
                first = following = u64_at(source, position + 32)
            elif u64_at(source, position + 32) != following:
                reason = _NOT_NEXT
                break
            following += records
            if not cython.compiled:
                following &= 0xFFFFFFFFFFFFFFFF
            position += size
    return reason, position, first, following


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _may_follow(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    records: cython.uint,
) -> cython.bint:
    """Return whether the chunk continues the run from place 0, with simple entries of users."""
    data_start: cython.Py_ssize_t = position + _EVENT_AND_HEADER_BYTES
    entries: cython.uint = u16_at(source, position + 10)
    return (
        source[position + 9] == 0
        and u64_at(source, position + 24) == u64_at(source, 24)
        and u64_at(source, position + 32) == u64_at(source, 32) + records
        and _i64_at(source, position + 16) <= _i64_at(source, 16) + _JOINED_SPAN_MS
        and entries == u32_at(source, position + 12)
        and _is_simple(source, data_start, data_start + u32_at(source, position + 44), entries)
    )


def join_chunks(
    source: cython.const_uchar[::1],
    limit: cython.Py_ssize_t,
    target: cython.uchar[::1],
    capacity: cython.Py_ssize_t,
    seed: cython.uint,
) -> tuple:
    """Copy the data of a run of whole small chunks behind one another.

    A run holds chunks of one epoch with simple entries only, whose offsets follow one another, with
    at most 65,535 entries and 1 s from first to last timestamp. Seals and CRCs are checked first.

    Args:
        source: Stored bytes, from the start of the first chunk's event.
        limit: Their end.
        target: Gets the data sections, from its front up to `capacity`.
        capacity: Bytes.
        seed: What seals begin with.

    Returns:
        (reason, position, written, chunk count, records): why and where the join stopped. With
        NOT_JOINABLE and no chunk the first chunk itself must go alone.
    """
    position: cython.Py_ssize_t = 0
    written: cython.Py_ssize_t = 0
    chunk_count: cython.Py_ssize_t = 0
    records: cython.uint = 0
    reason: cython.int
    # hot: no Python operation up to the end of the loop
    while True:
        size: cython.Py_ssize_t = event_size(source, position, limit)
        if size <= 0:
            reason = _NEEDS_BYTES if size == 0 else _MALFORMED
            break
        if not has_seal(_fast_crc, _TABLE, source, position, size, seed):
            reason = _BAD_SEAL
            break
        data_size: cython.Py_ssize_t = u32_at(source, position + 44)
        entries: cython.uint = u16_at(source, position + 10)
        if (
            records + entries > _ENTRIES_MAX
            or written + data_size > capacity
            or not _may_follow(source, position, records)
        ):
            reason = _NOT_JOINABLE
            break
        if not _has_crc(source, position):
            reason = _BAD_CRC
            break
        copy_at(target, written, source, position + _EVENT_AND_HEADER_BYTES, data_size)
        written += data_size
        records += entries
        chunk_count += 1
        position += size
    # end of hot
    return reason, position, written, chunk_count, records
