import pytest

from tests.unit.gateway.management.requests.administration_rig import Rig
from tests.unit.gateway.stream.link_rig import Broker


@pytest.fixture
def rig(broker: Broker) -> Rig:
    return Rig(broker)
