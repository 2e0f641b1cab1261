# cython: language_level=3, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""The bytes of a journal that every commit writes: an append's record, and the frame around it.

Cython compiles this file as it stands; uncompiled it is the reference and does the same, slowly.
`store.local.commit.records` draws both, and reads them.
"""

import struct

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcpy

_APPEND = struct.Struct("<IBBHQQQQQ16sq")
_CHECKED_HEAD = struct.Struct("<QQQII")

_APPEND_BYTES = cython.declare(cython.Py_ssize_t, 72)
_CHECKED_HEAD_BYTES = cython.declare(cython.Py_ssize_t, 32)
_KIND_APPEND = cython.declare(cython.uint, 2)


@cython.cfunc  # compiled only
@cython.inline
@cython.exceptval(check=False)
def _put(
    target: cython.p_uchar,
    position: cython.Py_ssize_t,
    number: cython.ulonglong,
    size: cython.Py_ssize_t,
) -> cython.void:
    """Write a number of `size` bytes, the lowest byte first."""
    place: cython.Py_ssize_t
    for place in range(size):
        target[position + place] = cython.cast(cython.uchar, (number >> (8 * place)) & 0xFF)


def append_record(
    size: cython.uint,
    flags: cython.uint,
    segment: cython.ulonglong,
    file: cython.ulonglong,
    position: cython.ulonglong,
    data_bytes: cython.ulonglong,
    data_hash: cython.ulonglong,
    writer: bytes,
    event_number: cython.longlong,
) -> bytes:
    """Return the record of an append; `size` is its own, with the data that may follow it.

    Args:
        size: Bytes.
        flags: As `store.local.commit.records` has them.
        segment: Its number.
        file: Number of the data file.
        position: The data's, in the segment.
        data_bytes: Size of the data.
        data_hash: Its xxh3, 0 if it follows.
        writer: 16 bytes.
        event_number: The writer's.
    """
    if cython.compiled:
        record: bytes = PyBytes_FromStringAndSize(cython.NULL, _APPEND_BYTES)
        target: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(record))
        writer_bytes: cython.p_char = PyBytes_AS_STRING(writer)
        # hot: no Python operation
        _put(target, 0, size, 4)
        _put(target, 4, _KIND_APPEND, 1)
        _put(target, 5, flags, 1)
        _put(target, 6, 0, 2)
        _put(target, 8, segment, 8)
        _put(target, 16, file, 8)
        _put(target, 24, position, 8)
        _put(target, 32, data_bytes, 8)
        _put(target, 40, data_hash, 8)
        memcpy(target + 48, writer_bytes, 16)
        _put(target, 64, cython.cast(cython.ulonglong, event_number), 8)
        # end of hot
        return record
    numbers = (size, 2, flags, 0, segment, file, position, data_bytes, data_hash)
    return _APPEND.pack(*numbers, writer, event_number)


def checked_part(
    sequence: cython.ulonglong,
    at_ms: cython.ulonglong,
    synced: cython.ulonglong,
    body: bytes,
    count: cython.uint,
) -> bytes:
    """Return a frame from behind its checksum on: the rest of its head, then its changes.

    Args:
        sequence: Of the frame.
        at_ms: Time of its changes.
        synced: Frames below it were durable.
        body: The changes, behind one another.
        count: Number of them.
    """
    size: cython.Py_ssize_t = len(body)
    if cython.compiled:
        part: bytes = PyBytes_FromStringAndSize(cython.NULL, _CHECKED_HEAD_BYTES + size)
        target: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(part))
        _put(target, 0, sequence, 8)
        _put(target, 8, at_ms, 8)
        _put(target, 16, synced, 8)
        _put(target, 24, size, 4)
        _put(target, 28, count, 4)
        memcpy(target + _CHECKED_HEAD_BYTES, PyBytes_AS_STRING(body), size)
        return part
    return _CHECKED_HEAD.pack(sequence, at_ms, synced, size, count) + body


def behind_checksum(checksum: cython.ulonglong, part: bytes) -> bytes:
    """Return a whole frame: the checksum of a part, and the part."""
    size: cython.Py_ssize_t = len(part)
    if cython.compiled:
        frame: bytes = PyBytes_FromStringAndSize(cython.NULL, 8 + size)
        target: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(frame))
        _put(target, 0, checksum, 8)
        memcpy(target + 8, PyBytes_AS_STRING(part), size)
        return frame
    return checksum.to_bytes(8, "little") + part
