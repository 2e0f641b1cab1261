# cython: language_level=3, boundscheck=False, cdivision=True
"""Readings of the system's clocks, without the cost of a call of the time module."""

import time

import cython

if cython.compiled:
    from cython.cimports.posix.time import clock_gettime, timespec


def clock_ms(clock: cython.int) -> cython.longlong:
    """Read a clock.

    Args:
        clock: Its number, as `time.CLOCK_REALTIME`.

    Returns:
        Its time in milliseconds.
    """
    if cython.compiled:
        now = cython.declare(timespec)
        # hot: no Python operation
        clock_gettime(clock, cython.address(now))
        seconds: cython.longlong = now.tv_sec
        nanoseconds: cython.longlong = now.tv_nsec
        return seconds * 1000 + nanoseconds // 1_000_000
        # end of hot
    return time.clock_gettime_ns(clock) // 1_000_000
