"""The loopback address of IPv6: whether the machine has it, and a port that is taken there."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from gateway.network.listening import bind_all


def has_ipv6() -> bool:
    """Return whether ::1 can be listened on."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6: Final = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")


@contextmanager
def taken_at_ipv6() -> Iterator[int]:
    """Yield a port at which another listens on ::1, and nothing on 127.0.0.1.

    The port is held on 127.0.0.1 too: the system would hand it out there to any process.
    """
    held, taken = bind_all("localhost", 0)
    with held, taken:
        taken.listen()
        yield int(taken.getsockname()[1])
