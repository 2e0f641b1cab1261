"""Checklist 24 in short: damaged frames over many connections. `make network-fuzz` is long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.conftest import external_endpoint
from tests.integration.network_fuzz import (
    Attack,
    Count,
    fuzz,
    victim,
)

pytestmark = pytest.mark.slow


def test_damaged_frames_over_many_connections_harm_nobody_and_leave_no_memory_behind(
    tmp_path: Path,
) -> None:
    if external_endpoint() is not None:
        pytest.skip("needs a server whose memory can be watched")
    count = Count()
    with victim(tmp_path) as server:
        with Attack(server, Count(rounds=1_000_000), 32) as warm:
            for _ in warm.send(4_000):
                pass
        for _ in fuzz(server, count, frames=20_000, connections=32):
            pass

    assert count.frames >= 20_000
    assert count.is_good, f"a turn of {count.longest_turn_s:.3f} s"
    assert count.ended > 100, "what is wrong ends connections"
