# cython: language_level=3, boundscheck=False
"""Writes to a file, without the cost of a call of the os module."""

import os

import cython

if cython.compiled:
    from cython.cimports.cpython.buffer import PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
    from cython.cimports.libc.errno import EINTR, errno
    from cython.cimports.posix.unistd import pwrite

_KEPT_LOCK_BYTES = cython.declare(cython.Py_ssize_t, 64 * 1024)


@cython.cfunc  # compiled only
@cython.exceptval(-1)
def _write(
    fileno: cython.int, data: cython.p_char, size: cython.Py_ssize_t, position: cython.longlong
) -> cython.Py_ssize_t:
    """Write once; return how much was written."""
    written: cython.Py_ssize_t = 0
    number: cython.int = EINTR
    while number == EINTR:
        if size > _KEPT_LOCK_BYTES:
            with cython.nogil:
                written = pwrite(fileno, data, size, position)
        # hot: no Python operation
        else:
            written = pwrite(fileno, data, size, position)
        if written >= 0:
            return written
        # end of hot
        number = errno
    raise OSError(number, os.strerror(number))


def write_all(
    fileno: cython.int,
    data: object,
    position: cython.longlong,
    piece_bytes: cython.Py_ssize_t = 1 << 30,
) -> cython.int:
    """Write all of `data` at a position of a file; other threads run meanwhile if it is much.

    Args:
        fileno: Of the file.
        data: Bytes in any object that has them in a row.
        position: Bytes.
        piece_bytes: How much the system is given at once; it may take less.

    Raises:
        OSError: Not all was written.
    """
    done: cython.Py_ssize_t = 0
    if cython.compiled:
        view = cython.declare(Py_buffer)  # noqa: F821 - a type of C
        PyObject_GetBuffer(data, cython.address(view), PyBUF_SIMPLE)
        try:
            while done < view.len:
                done += _write(
                    fileno,
                    cython.cast(cython.p_char, view.buf) + done,
                    min(view.len - done, piece_bytes),
                    position + done,
                )
        finally:
            PyBuffer_Release(cython.address(view))
        return 0
    rest = memoryview(data).cast("B")
    while done < len(rest):
        done += os.pwrite(fileno, rest[done : done + piece_bytes], position + done)
    return 0
