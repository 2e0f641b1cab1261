# cython: language_level=3, boundscheck=False
"""Sends and receives on a socket that never waits, without the cost of the socket module."""

import os

import cython

if cython.compiled:
    from cython.cimports.cpython.buffer import PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING
    from cython.cimports.libc.errno import EAGAIN, EINTR, errno
    from cython.cimports.posix.unistd import read, write


def send_bytes(fileno: cython.int, data: bytes) -> cython.Py_ssize_t:
    """Send as much of `data` as the socket takes now.

    Args:
        fileno: A connected socket that does not block.
        data: Bytes. The interpreter's lock is kept meanwhile, so not many.

    Returns:
        How many were sent; -1 if the socket takes nothing now.

    Raises:
        OSError: The connection is broken.
    """
    sent: cython.Py_ssize_t = 0
    if cython.compiled:
        place: cython.p_char = PyBytes_AS_STRING(data)
        size: cython.Py_ssize_t = len(data)
        # hot: no Python operation
        sent = write(fileno, place, size)
        if sent >= 0:
            return sent
        # end of hot
        number: cython.int = errno
        if number in {EAGAIN, EINTR}:
            return -1
        raise OSError(number, os.strerror(number))
    try:
        sent = os.write(fileno, data)
    except BlockingIOError:
        sent = -1
    return sent


def receive_into(fileno: cython.int, place: memoryview) -> cython.Py_ssize_t:
    """Read the bytes that have come, as many as fit.

    Args:
        fileno: A connected socket that does not block.
        place: Room for at least one byte.

    Returns:
        How many bytes were read, 0 if the peer sends no more; -1 if nothing has come.

    Raises:
        OSError: The connection is broken.
    """
    size: cython.Py_ssize_t = 0
    if cython.compiled:
        view = cython.declare(Py_buffer)  # noqa: F821 (Cython knows it)
        PyObject_GetBuffer(place, cython.address(view), PyBUF_WRITABLE)
        with cython.nogil:
            size = read(fileno, view.buf, view.len)
        number: cython.int = errno
        PyBuffer_Release(cython.address(view))
        if size >= 0:
            return size
        if number in {EAGAIN, EINTR}:
            return -1
        raise OSError(number, os.strerror(number))
    try:
        size = os.readv(fileno, [place])
    except BlockingIOError:
        size = -1
    return size
