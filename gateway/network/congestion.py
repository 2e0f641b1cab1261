"""Congestion control of a connection: none that guesses, where both ends are one machine.

Between machines it is the system's choice. Within one machine there is no congestion to guess,
and a guess has a price: an algorithm that paces (BBR) sets a timer for every few packets, and a
socket that was ever paced stays paced. So a listening socket gets an algorithm that does not pace.
The sockets that it accepts inherit it; a connection from another machine gets the system's choice
back.
"""

import contextlib
import socket
from typing import Final

_TCP_CONGESTION: Final = getattr(socket, "TCP_CONGESTION", -1)
_WITHOUT_PACING: Final = b"reno"
_NAME_BYTES_MAX: Final = 16


def begin(listening: socket.socket) -> None:
    """Let connections that are accepted begin without pacing."""
    with contextlib.suppress(OSError):
        listening.setsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, _WITHOUT_PACING)


def restore(connected: socket.socket) -> None:
    """Leave a connection from another machine to the system's choice."""
    with contextlib.suppress(OSError), socket.socket(connected.family) as fresh:
        chosen = fresh.getsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, _NAME_BYTES_MAX)
        connected.setsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, chosen)
