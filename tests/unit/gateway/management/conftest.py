import pytest

from tests.unit.gateway.management.requests.administration_rig import Rig
from tests.unit.gateway.stream.conftest import broker
from tests.unit.gateway.stream.link_rig import Broker

__all__ = ["broker"]


@pytest.fixture
def rig(broker: Broker) -> Rig:
    return Rig(broker)
