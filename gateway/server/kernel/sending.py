# cython: language_level=3, boundscheck=False
"""Sends on a socket that never waits, without the cost of a call of the socket module."""

import os

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING
    from cython.cimports.libc.errno import EAGAIN, EINTR, errno
    from cython.cimports.posix.unistd import write


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
