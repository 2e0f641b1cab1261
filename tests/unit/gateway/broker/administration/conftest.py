import pytest

from tests.unit.gateway.broker.administration.administration_rig import Rig
from tests.unit.gateway.stream.link_rig import Broker


@pytest.fixture
def rig(broker: Broker) -> Rig:
    return Rig(broker)
