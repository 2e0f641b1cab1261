# cython: language_level=3, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""The head and the seal of a chunk that is about to be stored, in one pass.

Cython compiles this file as it stands; uncompiled it is the reference and does the same, slowly.
`hutch.formats.chunk` draws a chunk.
"""

from array import array

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import (
        PyByteArray_AS_STRING,
        PyByteArray_FromStringAndSize,
    )
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.hutch.bytes import crc32_in
else:
    from hutch.bytes import crc32_in

_EVENT_HEAD_BYTES = cython.declare(cython.Py_ssize_t, 8)
_SEAL_BYTES = cython.declare(cython.Py_ssize_t, 4)
_DATA_POSITION = cython.declare(cython.Py_ssize_t, 56)
_U32_MASK = cython.declare(cython.uint, 0xFFFFFFFF)  # a bare literal this large is a Python int


def _crc_table() -> array:
    """Return eight tables of 256 for CRC-32 (IEEE, reflected 0xEDB88320), behind one another."""
    table = []
    for value in range(256):
        crc = value
        for _ in range(8):
            crc = (crc >> 1) ^ (0xEDB88320 if crc & 1 else 0)
        table.append(crc)
    for row in range(1, 8):
        table.extend(
            (previous >> 8) ^ table[previous & 0xFF]
            for previous in table[(row - 1) * 256 : row * 256]
        )
    return array("I", table)


CRC_TABLE = _crc_table()
_TABLE = cython.declare(cython.const_uint[::1], CRC_TABLE)


@cython.cfunc
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
def _put_u64(
    target: cython.p_uchar, position: cython.Py_ssize_t, number: cython.ulonglong
) -> cython.void:
    _put_u32(target, position, cython.cast(cython.uint, number >> 32))
    _put_u32(target, position + 4, cython.cast(cython.uint, number & _U32_MASK))


def unfilled(size: cython.Py_ssize_t) -> bytearray:
    """Return a bytearray with any content: to fill it with zeros costs as much as to use it."""
    if cython.compiled:
        return PyByteArray_FromStringAndSize(cython.NULL, size)
    return bytearray(size)


def copy_of(buffer: bytearray, begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> bytes:
    """Return the bytes in [begin, end) of a buffer, which has them all."""
    if cython.compiled:
        return PyBytes_FromStringAndSize(PyByteArray_AS_STRING(buffer) + begin, end - begin)
    return bytes(buffer[begin:end])


def seal_chunk(
    buffer: bytearray,
    data_end: cython.Py_ssize_t,
    event_end: cython.Py_ssize_t,
    entries: cython.uint,
    records: cython.uint,
    timestamp_ms: cython.longlong,
    epoch: cython.ulonglong,
    chunk_id: cython.ulonglong,
    crc: cython.longlong,
    trailer_bytes: cython.uint,
    seed: cython.uint,
) -> cython.int:
    """Write the head and the seal of an event whose data and trailer are in their places.

    Args:
        buffer: The event, from its front.
        data_end: End of the data, which begins at 56.
        event_end: End of the event, with its seal.
        entries: As the header has it; so are the next four.
        records: See there.
        timestamp_ms: See there.
        epoch: See there.
        chunk_id: See there.
        crc: CRC-32 of the data; -1 to have it computed, which is slow for much of it.
        trailer_bytes: Bytes of publisher sequences behind the data.
        seed: What the seal begins with.
    """
    target: cython.p_uchar = buffer
    seal_at: cython.Py_ssize_t = event_end - _SEAL_BYTES
    seal: cython.uint
    if not cython.compiled:
        timestamp_ms &= 0xFFFFFFFFFFFFFFFF  # two's complement
    # hot: no Python operation
    if crc < 0:
        crc = crc32_in(_TABLE, target, _DATA_POSITION, data_end, 0)
    _put_u32(target, 0, 0)
    _put_u32(target, 4, cython.cast(cython.uint, event_end - _EVENT_HEAD_BYTES))
    target[8] = 0x50
    target[9] = 0
    target[10] = entries >> 8
    target[11] = entries & 0xFF
    _put_u32(target, 12, records)
    _put_u64(target, 16, cython.cast(cython.ulonglong, timestamp_ms))
    _put_u64(target, 24, epoch)
    _put_u64(target, 32, chunk_id)
    _put_u32(target, 40, cython.cast(cython.uint, crc))
    _put_u32(target, 44, cython.cast(cython.uint, data_end - _DATA_POSITION))
    _put_u32(target, 48, trailer_bytes)
    _put_u32(target, 52, 0)
    seal = crc32_in(_TABLE, target, _EVENT_HEAD_BYTES, _DATA_POSITION, seed)
    seal = crc32_in(_TABLE, target, data_end, seal_at, seal)
    _put_u32(target, seal_at, seal)
    # end of hot
    return 0
