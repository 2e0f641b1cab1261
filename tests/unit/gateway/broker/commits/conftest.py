from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.gateway.broker.commits.staging_rig import StagingRig
from tests.unit.gateway.stream.link_rig import Broker


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[StagingRig]:
    rig = StagingRig(Broker(tmp_path), tmp_path)
    yield rig
    rig.broker.close()
