"""Waiting between two measurements, until the disk and the servers have nothing left to do."""

import os
import time
from collections.abc import Sequence
from typing import Final

from compat.bench.servers import Server
from compat.bench.usage import cpu_seconds, tree_of

# A server is quiet when it uses less than this of one core.
QUIET_SHARE: Final = 0.05
QUIET_LOOK_S: Final = 0.25
QUIET_LIMIT_S: Final = 20.0


def await_quiet(servers: Sequence[Server]) -> None:
    """Let the disk take what was written, and wait until no server is busy any more."""
    os.sync()
    deadline = time.monotonic() + QUIET_LIMIT_S
    pids = tree_of([pid for server in servers for pid in server.pids])
    while time.monotonic() < deadline:
        before = cpu_seconds(pids)
        time.sleep(QUIET_LOOK_S)
        if cpu_seconds(pids) - before < QUIET_SHARE * QUIET_LOOK_S:
            return
