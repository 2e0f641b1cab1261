"""Waiting for what another process or thread does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

HANG_S: Final = 100.0
"""Time after which what is waited for hangs; on a busy machine it may come late.

It is below the limit of a whole test (`timeout` in pyproject.toml), so that a test can say what did
not come.
"""


def wait_until(holds: Callable[[], object], within_s: float = HANG_S) -> None:
    """Look until something is true. Raises AssertionError if it is not in time."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {within_s} s"
        time.sleep(0.01)
