import pytest

from tests.unit.gateway.broker.access.access_rig import AccessRig


@pytest.fixture
def rig() -> AccessRig:
    return AccessRig()
