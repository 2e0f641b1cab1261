"""Everything is small here: tables are compacted after a few updates, holes made of little."""

from collections.abc import Iterator

import pytest

from tests.simulation.world import small_compactions, small_holes


@pytest.fixture(autouse=True)
def _small_compactions() -> Iterator[None]:
    with small_compactions(), small_holes():
        yield
