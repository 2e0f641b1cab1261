# cython: language_level=3, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""The check of stored chunks, in one pass over their bytes: is anything wrong?

`gateway.log.kernel.chunks` draws a chunk, and finds the fault and its place. This here has to keep
up with a reader: each byte is taken from memory once, and the CRC-32 is the fast one.
Cython compiles this file as it stands; uncompiled it is the reference and does the same, slowly.
"""

import cython

from gateway.log.fast_crc import FAST_CRC32
from gateway.log.kernel.sealing import CRC_TABLE

if cython.compiled:
    from cython.cimports.hutch.bytes import (
        FastCrc,
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
    from hutch.bytes import crc32_at, event_size, has_seal, u16_at, u32_at, u64_at

    _fast_crc = None

_EVENT_AND_HEADER_BYTES = cython.declare(cython.Py_ssize_t, 56)
_SUB_BATCH_FLAG = cython.declare(cython.uint, 0x80000000)
_SUB_BATCH_HEAD_BYTES = cython.declare(cython.Py_ssize_t, 11)
_TABLE = cython.declare(cython.const_uint[::1], CRC_TABLE)
# Data whose CRC-32 was taken is in the nearest cache, of 32 KiB or more, when entries are counted.
_BLOCK_BYTES = cython.declare(cython.Py_ssize_t, 16384)


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


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _has_data(source: cython.const_uchar[::1], position: cython.Py_ssize_t) -> cython.bint:
    """Return whether the data of the event at `position` has its checksum, entries and records.

    Entries are counted behind the checksum, block by block: memory is read once.
    """
    at: cython.Py_ssize_t = position + _EVENT_AND_HEADER_BYTES
    place: cython.Py_ssize_t = at
    end: cython.Py_ssize_t = at + u32_at(source, position + 44)
    entries: cython.uint = u16_at(source, position + 10)
    records: cython.longlong = 0
    crc: cython.uint = 0
    head: cython.uint
    block_end: cython.Py_ssize_t
    while place < end:
        block_end = min(place + _BLOCK_BYTES, end)
        crc = crc32_at(_fast_crc, _TABLE, source, place, block_end, crc)
        place = block_end
        while entries != 0 and at + _SUB_BATCH_HEAD_BYTES <= place:
            head = u32_at(source, at)
            if head < _SUB_BATCH_FLAG:
                records += 1
                at += 4 + cython.cast(cython.Py_ssize_t, head)
            else:
                records += u16_at(source, at + 1)
                at += _SUB_BATCH_HEAD_BYTES + cython.cast(cython.Py_ssize_t, u32_at(source, at + 7))
            entries -= 1
    if crc != u32_at(source, position + 40) or at > end:
        return False
    # The rest is too short for the head of a sub-batch, but may be some small entries.
    rest: cython.longlong = _records_in(source, at, end, entries)
    return rest >= 0 and records + rest == u32_at(source, position + 12)


def are_sound(
    source: cython.const_uchar[::1],
    limit: cython.Py_ssize_t,
    seed: cython.uint,
) -> tuple:
    """Check all that is checked of whole chunks, in one pass that lets other threads run.

    That is what `follow_chunks`, `check_seals` and `verify_chunks` check. They tell what is wrong
    where this one does not.

    Args:
        source: Stored bytes, from the start of a chunk's event.
        limit: Their end.
        seed: What seals begin with.

    Returns:
        (whether nothing is wrong, end of the last whole chunk, offset of the first one, offset
        behind the last one); both offsets are 0 if there is none.
    """
    position: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t
    first: cython.ulonglong = 0
    following: cython.ulonglong = 0
    is_sound: cython.bint = False
    with cython.nogil:
        # hot: no Python operation up to the end of the loop
        while True:
            size = event_size(source, position, limit)
            if size <= 0:
                is_sound = size == 0
                break
            if position == 0:
                first = following = u64_at(source, 32)
            if (
                source[position + 9] != 0
                or u32_at(source, position + 52) != 0
                or u64_at(source, position + 32) != following
                or not has_seal(_fast_crc, _TABLE, source, position, size, seed)
                or not _has_data(source, position)
            ):
                break
            following += u32_at(source, position + 12)
            if not cython.compiled:
                following &= 0xFFFFFFFFFFFFFFFF
            position += size
        # end of hot
    return is_sound, position, first, following
