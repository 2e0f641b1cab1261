"""Whether this machine has the loopback address of IPv6."""

from __future__ import annotations

import socket
from typing import Final

import pytest


def has_ipv6() -> bool:
    """Return whether ::1 can be listened on."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6: Final = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")
