# cython: language_level=3, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""All that is checked of stored chunks, in one pass over their bytes: is anything wrong?

`gateway.log.kernel.chunks` draws a chunk, and tells what is wrong and where. This here has to keep
up with a reader: each byte is taken from memory once, and the CRC-32 is the fast one.
Cython compiles this file as it stands; uncompiled it is the reference and does the same, slowly.
"""

import cython

from gateway.log.fast_crc import FAST_CRC32, crc32
from gateway.log.kernel.sealing import CRC_TABLE

_EVENT_HEAD_BYTES = cython.declare(cython.Py_ssize_t, 8)
_SEAL_BYTES = cython.declare(cython.Py_ssize_t, 4)
_EVENT_AND_HEADER_BYTES = cython.declare(cython.Py_ssize_t, 56)
_CRC_MASK = cython.declare(cython.uint, 0xFFFFFFFF)  # a bare literal this large is a Python int
_SUB_BATCH_FLAG = cython.declare(cython.uint, 0x80000000)
_SUB_BATCH_HEAD_BYTES = cython.declare(cython.Py_ssize_t, 11)
_TABLE = cython.declare(cython.const_uint[::1], CRC_TABLE)
# Below this size a call of the fast CRC-32 costs more than it saves.
_FAST_FROM = cython.declare(cython.Py_ssize_t, 128)
# Data whose CRC-32 was taken is in the nearest cache, of 32 KiB or more, when entries are counted.
_BLOCK_BYTES = cython.declare(cython.Py_ssize_t, 16384)

if cython.compiled:
    # Null where there is none.
    _fast_crc = cython.declare(
        FastCrc,  # noqa: F821  # of the .pxd
        cython.cast(FastCrc, cython.cast(cython.size_t, FAST_CRC32)),  # noqa: F821
    )


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _u16_at(source: cython.const_uchar[::1], position: cython.Py_ssize_t) -> cython.uint:
    return (cython.cast(cython.uint, source[position]) << 8) | source[position + 1]


@cython.cfunc
@cython.nogil
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
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _u64_at(source: cython.const_uchar[::1], position: cython.Py_ssize_t) -> cython.ulonglong:
    return (cython.cast(cython.ulonglong, _u32_at(source, position)) << 32) | _u32_at(
        source, position + 4
    )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _crc32(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    before: cython.uint,
) -> cython.uint:
    """Return the CRC-32 of [position, end) behind bytes whose CRC-32 is `before`."""
    crc: cython.uint
    if not cython.compiled:
        return crc32(source[position:end], before)
    if end - position >= _FAST_FROM and _fast_crc != cython.NULL:
        return _fast_crc(before, cython.address(source[position]), end - position)
    crc = before ^ _CRC_MASK
    while position + 8 <= end:
        crc ^= (
            cython.cast(cython.uint, source[position])
            | (cython.cast(cython.uint, source[position + 1]) << 8)
            | (cython.cast(cython.uint, source[position + 2]) << 16)
            | (cython.cast(cython.uint, source[position + 3]) << 24)
        )
        crc = (
            _TABLE[1792 + (crc & 0xFF)]
            ^ _TABLE[1536 + ((crc >> 8) & 0xFF)]
            ^ _TABLE[1280 + ((crc >> 16) & 0xFF)]
            ^ _TABLE[1024 + (crc >> 24)]
            ^ _TABLE[768 + source[position + 4]]
            ^ _TABLE[512 + source[position + 5]]
            ^ _TABLE[256 + source[position + 6]]
            ^ _TABLE[cython.cast(cython.Py_ssize_t, source[position + 7])]
        )
        position += 8
    while position < end:
        crc = _TABLE[(crc ^ source[position]) & 0xFF] ^ (crc >> 8)
        position += 1
    return crc ^ _CRC_MASK


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _event_size(
    source: cython.const_uchar[::1], position: cython.Py_ssize_t, limit: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Return the size of the event at `position`; 0 if it is cut off, -1 if it is no chunk."""
    size: cython.Py_ssize_t
    if position + _EVENT_AND_HEADER_BYTES > limit:
        return 0
    size = cython.cast(cython.Py_ssize_t, _u32_at(source, position + 4))
    if (
        _u32_at(source, position) != 0
        or source[position + 8] != 0x50
        or cython.cast(cython.longlong, 48)
        + _u32_at(source, position + 44)
        + _u32_at(source, position + 48)
        > size
    ):
        return -1
    if position + _EVENT_HEAD_BYTES + size > limit:
        return 0
    return _EVENT_HEAD_BYTES + size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _has_seal(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    seed: cython.uint,
) -> cython.bint:
    """Return whether the event of `size` bytes at `position` ends with its seal."""
    rest: cython.Py_ssize_t = position + _EVENT_AND_HEADER_BYTES + _u32_at(source, position + 44)
    seal: cython.Py_ssize_t = position + size - _SEAL_BYTES
    crc: cython.uint
    if rest + _u32_at(source, position + 48) > seal:
        return False
    crc = _crc32(source, position + 8, position + 56, seed)
    return _crc32(source, rest, seal, crc) == _u32_at(source, seal)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _records_in(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    entries: cython.uint,
) -> cython.longlong:
    """Count the records of [position, end); -1 if that is not exactly so many entries."""
    head: cython.uint
    records: cython.longlong = 0
    while entries != 0:
        if position + 4 > end:
            return -1
        head = _u32_at(source, position)
        if head < _SUB_BATCH_FLAG:
            records += 1
            position += 4 + cython.cast(cython.Py_ssize_t, head)
        elif position + _SUB_BATCH_HEAD_BYTES > end:
            return -1
        else:
            records += _u16_at(source, position + 1)
            position += _SUB_BATCH_HEAD_BYTES + cython.cast(
                cython.Py_ssize_t, _u32_at(source, position + 7)
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
    end: cython.Py_ssize_t = at + _u32_at(source, position + 44)
    entries: cython.uint = _u16_at(source, position + 10)
    records: cython.longlong = 0
    crc: cython.uint = 0
    head: cython.uint
    block_end: cython.Py_ssize_t
    while place < end:
        block_end = min(place + _BLOCK_BYTES, end)
        crc = _crc32(source, place, block_end, crc)
        place = block_end
        while entries != 0 and at + _SUB_BATCH_HEAD_BYTES <= place:
            head = _u32_at(source, at)
            if head < _SUB_BATCH_FLAG:
                records += 1
                at += 4 + cython.cast(cython.Py_ssize_t, head)
            else:
                records += _u16_at(source, at + 1)
                at += _SUB_BATCH_HEAD_BYTES + cython.cast(
                    cython.Py_ssize_t, _u32_at(source, at + 7)
                )
            entries -= 1
    if crc != _u32_at(source, position + 40) or at > end:
        return False
    # The rest is too short for the head of a sub-batch, but may be some small entries.
    rest: cython.longlong = _records_in(source, at, end, entries)
    return rest >= 0 and records + rest == _u32_at(source, position + 12)


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
            size = _event_size(source, position, limit)
            if size <= 0:
                is_sound = size == 0
                break
            if position == 0:
                first = following = _u64_at(source, 32)
            if (
                source[position + 9] != 0
                or _u32_at(source, position + 52) != 0
                or _u64_at(source, position + 32) != following
                or not _has_seal(source, position, size, seed)
                or not _has_data(source, position)
            ):
                break
            following += _u32_at(source, position + 12)
            if not cython.compiled:
                following &= 0xFFFFFFFFFFFFFFFF
            position += size
        # end of hot
    return is_sound, position, first, following
