"""Timeouts of the generator on a blocking socket."""

import socket
import struct
from typing import Final

WAIT_LIMIT_S: Final = 60


def limit_waiting(waiting: socket.socket) -> None:
    """Make a socket block in the kernel, for a minute at most.

    Python's own time-outs cost a `poll` before every read, which latencies would show.
    After the minute a read raises BlockingIOError.
    """
    waiting.settimeout(None)
    limit = struct.pack("@ll", WAIT_LIMIT_S, 0)
    waiting.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    waiting.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
