"""Waiting for what another process or thread does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

# Generous: what is waited for comes at once on a quiet machine.
WITHIN_S: Final = 20.0


def wait_until(holds: Callable[[], object], within_s: float = WITHIN_S) -> None:
    """Look until something is true. Raises AssertionError if it is not in time."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {within_s} s"
        time.sleep(0.01)
