"""One rig a test and implementation."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.harness import Rig
from tests.conformance.implementations import IMPLEMENTATIONS, Implementation
from tests.folders import on_disk

__all__ = ["on_disk"]


@pytest.fixture(params=IMPLEMENTATIONS, ids=lambda each: each.name)
def implementation(request: pytest.FixtureRequest) -> Implementation:
    each = request.param
    assert isinstance(each, Implementation)
    return each


@pytest.fixture
def rig(implementation: Implementation, tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(lambda loop: implementation.open(loop, tmp_path))
    yield rig
    rig.close()
    assert rig.violations == []
