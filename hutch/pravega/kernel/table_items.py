# cython: language_level=3, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""Lists of a table's keys and entries, in one pass over their bytes.

Cython compiles this file as it stands; uncompiled it is the reference and does the same, slowly.

    key      | 12 + n i32 | n i32 | n bytes | version i64
    entry    | key | 4 + n i32 | n i32 | n bytes

All numbers are big-endian. A list that has anything else, an empty key among them, is left to the
caller, which knows what may be and what is wrong with it.
"""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize

_BAD = cython.declare(cython.Py_ssize_t, -1)
_HEAD_BYTES = cython.declare(cython.Py_ssize_t, 8)
_VERSION_BYTES = cython.declare(cython.Py_ssize_t, 8)
_KEY_SIZE = cython.declare(cython.Py_ssize_t, 12)
_VALUE_SIZE = cython.declare(cython.Py_ssize_t, 4)

_new_tuple = tuple.__new__  # past the Python function that makes a named tuple


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _i32_at(source: cython.const_uchar[::1], position: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return an i32; a negative one as -1, which no size can be."""
    if source[position] & 0x80:
        return _BAD
    return (
        (cython.cast(cython.Py_ssize_t, source[position]) << 24)
        | (cython.cast(cython.Py_ssize_t, source[position + 1]) << 16)
        | (cython.cast(cython.Py_ssize_t, source[position + 2]) << 8)
        | source[position + 3]
    )


@cython.cfunc
@cython.inline
def _version_at(source: cython.const_uchar[::1], position: cython.Py_ssize_t) -> cython.longlong:
    if not cython.compiled:
        return int.from_bytes(source[position : position + 8], signed=True)
    # hot: eight bytes of each item
    number: cython.ulonglong = 0
    place: cython.Py_ssize_t
    for place in range(8):
        number = (number << 8) | source[position + place]
    # end of hot
    return cython.cast(cython.longlong, number)


@cython.cfunc
@cython.inline
def _bytes_of(
    source: cython.const_uchar[::1], start: cython.Py_ssize_t, size: cython.Py_ssize_t
) -> bytes:
    """Return bytes from a place on. Compiled slices do the same, but take half a microsecond."""
    if cython.compiled:
        return PyBytes_FromStringAndSize(
            cython.cast(cython.p_const_char, cython.address(source[start])), size
        )
    return bytes(source[start : start + size])


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _size_at(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    beside: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Return the size of the item behind two sizes; -1 if they do not agree or it is cut."""
    if position + _HEAD_BYTES > end:
        return _BAD
    size: cython.Py_ssize_t = _i32_at(source, position + 4)
    if size < 0 or size > end - position - _HEAD_BYTES:
        return _BAD
    if _i32_at(source, position) != beside + size:
        return _BAD
    return size


def keys(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    make_key: type,
) -> tuple[list, int] | None:
    """Read keys; return them and the position behind them, None if the caller is to do it."""
    end: cython.Py_ssize_t = source.shape[0] if cython.compiled else len(source)
    size: cython.Py_ssize_t
    found: list = []
    for _ in range(count):
        size = _size_at(source, position, end, _KEY_SIZE)
        if size <= 0 or size + _VERSION_BYTES > end - position - _HEAD_BYTES:
            return None
        position += _HEAD_BYTES
        key = _bytes_of(source, position, size)
        position += size
        found.append(_new_tuple(make_key, (key, _version_at(source, position))))
        position += _VERSION_BYTES
    return found, position


def entries(
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    make_key: type,
    make_entry: type,
) -> tuple[list, int] | None:
    """Read entries; return them and the position behind them, None if the caller is to do it."""
    end: cython.Py_ssize_t = source.shape[0] if cython.compiled else len(source)
    size: cython.Py_ssize_t
    found: list = []
    for _ in range(count):
        size = _size_at(source, position, end, _KEY_SIZE)
        if size <= 0 or size + _VERSION_BYTES > end - position - _HEAD_BYTES:
            return None
        position += _HEAD_BYTES
        key = _bytes_of(source, position, size)
        position += size
        key = _new_tuple(make_key, (key, _version_at(source, position)))
        position += _VERSION_BYTES
        size = _size_at(source, position, end, _VALUE_SIZE)
        if size < 0:
            return None
        position += _HEAD_BYTES
        value = _bytes_of(source, position, size) if size else b""
        found.append(_new_tuple(make_entry, (key, value)))
        position += size
    return found, position
