"""Sending to a server that takes no more until its own frames are read.

A server may write confirms and read frames in one thread. If it waits for room to write, and we
wait for room to write, neither goes on. So while it takes nothing, we read what it has sent.
"""

import select
import socket
import ssl
import time
from collections.abc import Callable

_FULL = (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError)


def send_both_ways(
    connected: socket.socket,
    data: bytes | bytearray | memoryview,
    deadline: float,
    take: Callable[[], None],
) -> None:
    """Send all bytes.

    Args:
        connected: The socket; its time limit is changed.
        data: What to send.
        deadline: A moment of `time.monotonic()`.
        take: Takes what has come; it is called whenever the other side takes no more but sends.

    Raises:
        TimeoutError: Not all was sent until then.
        OSError: The connection broke.
    """
    left = memoryview(data).cast("B")
    while True:
        left = left[_send_some(connected, left) :]
        if not left:
            return
        pause_s = deadline - time.monotonic()
        if pause_s <= 0:
            raise TimeoutError(f"{len(left)} bytes could not be sent in time")
        poll = select.poll()
        poll.register(connected, select.POLLIN | select.POLLOUT)
        if any(event & select.POLLIN for _, event in poll.poll(pause_s * 1000)):
            take()


def _send_some(connected: socket.socket, data: memoryview) -> int:
    connected.settimeout(0)
    try:
        return connected.send(data)
    except _FULL:
        return 0
