"""A log in a directory of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.gateway.log.log_rig import LogRig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[LogRig]:
    rig = LogRig(tmp_path)
    yield rig
    rig.close()
