"""The collector of a server: what it looks at again, and what not."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import chain, repeat

import pytest

from gateway.serving.collector import Collector

MS = 1_000_000


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds, callbacks = gc.get_threshold(), list(gc.callbacks)
    gc.disable()  # only what a test asks for is looked at
    yield
    gc.enable()
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = callbacks
    gc.unfreeze()


def began(*clock_ns: int) -> int:
    """Begin with a clock that shows these times, then the last; return what is frozen then."""
    Collector(chain(clock_ns, repeat(clock_ns[-1])).__next__).start()
    return gc.get_freeze_count()


def test_what_there_is_at_the_start_is_frozen() -> None:
    before = gc.get_freeze_count()
    kept = [[each] for each in range(10_000)]
    assert began(0) > before + len(kept) - 1_000  # what others have frozen may go meanwhile


def test_what_survives_a_long_full_collection_is_frozen_and_goes_with_its_last_use() -> None:
    before = began(0, 6 * MS)
    kept = [[each] for each in range(10_000)]
    gc.collect()
    assert gc.get_freeze_count() > before + len(kept) - 1_000
    del kept
    assert gc.get_freeze_count() < before + 1_000


@pytest.mark.parametrize(("took_ns", "generation"), [(4 * MS, 2), (50 * MS, 1)])
def test_after_a_short_or_a_partial_collection_nothing_is_frozen(
    took_ns: int, generation: int
) -> None:
    before = began(0, took_ns)
    kept = [[each] for each in range(1_000)]
    gc.collect(generation)
    assert gc.get_freeze_count() <= before  # what others have frozen may go meanwhile
    assert kept


def test_rings_are_still_found_after_a_freeze() -> None:
    began(0, 6 * MS, 7 * MS)
    gc.collect()
    ring: list[object] = []
    ring.append(ring)
    del ring
    assert gc.collect() >= 1
