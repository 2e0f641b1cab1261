# cython: language_level=3, boundscheck=False
"""The loop of a thread that syncs files, and takes no part in the interpreter meanwhile.

    request | i32 descriptor          answer | i32 0, or the system's number of what failed

Both in the machine's byte order, through a pipe each. Compiled, the thread never holds the
interpreter's lock: neither the loop that asks nor the thread that answers waits for it.
"""

import os
import sys

import cython

if cython.compiled:
    from cython.cimports.libc.errno import EINTR, errno
    from cython.cimports.posix.unistd import fdatasync, read, write

NUMBER_BYTES = 4


def sync_on_request(requests: cython.int, answers: cython.int) -> None:
    """Sync the file of each descriptor that is read, and write how it went; a thread's whole life.

    Args:
        requests: Descriptor to read from; the loop ends when its other end is closed.
        answers: Descriptor to write to.
    """
    fileno: cython.int = 0
    answer: cython.int = 0
    count: cython.Py_ssize_t = 0
    if cython.compiled:
        with cython.nogil:
            # hot: nothing of Python
            while True:
                count = read(requests, cython.address(fileno), 4)
                if count < 0 and errno == EINTR:
                    continue
                if count != 4:
                    break
                answer = 0
                while fdatasync(fileno) != 0:
                    answer = errno
                    if answer != EINTR:
                        break
                    answer = 0
                while write(answers, cython.address(answer), 4) < 0 and errno == EINTR:
                    pass
            # end of hot
        return
    while len(request := os.read(requests, NUMBER_BYTES)) == NUMBER_BYTES:
        fileno = int.from_bytes(request, sys.byteorder, signed=True)
        answer = 0
        try:
            os.fdatasync(fileno)
        except OSError as error:
            answer = error.errno or -1
        os.write(answers, answer.to_bytes(NUMBER_BYTES, sys.byteorder, signed=True))
