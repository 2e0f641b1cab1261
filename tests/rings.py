"""Objects in rings, which only the collector could free; see `gateway.serving.collector`."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_rings() -> Iterator[None]:
    """Check that what the block makes and lets go goes without the collector."""
    gc.collect()
    gc.freeze()  # what is there is none of the block's
    gc.disable()
    try:
        yield
        assert gc.collect() == 0
    finally:
        gc.enable()
        gc.unfreeze()
