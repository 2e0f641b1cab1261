"""Tables are compacted after a few updates."""

from collections.abc import Iterator

import pytest

from tests.simulation.world import small_compactions


@pytest.fixture(autouse=True, scope="module")
def _small_compactions() -> Iterator[None]:
    with small_compactions():
        yield
