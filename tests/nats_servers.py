"""Servers of NATS JetStream for tests, which are skipped where there is no nats-server."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat import nats_servers
from compat.nats_servers import Unavailable


class NatsServers(nats_servers.NatsServers):
    """One server, or three of one cluster; the test is skipped where there are none."""

    def __init__(self, folder: Path, count: int = 1, *, has_login: bool = False) -> None:
        try:
            super().__init__(folder, count, has_login=has_login)
        except Unavailable as error:
            pytest.skip(str(error))
