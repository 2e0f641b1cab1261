"""A broker on a store of the test's own, and a link to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.gateway.stream.link_rig import Broker, LinkRig


@pytest.fixture
def broker(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker; settings of it may come as a parameter."""
    broker = Broker(tmp_path, **getattr(request, "param", {}))
    yield broker
    broker.close()


@pytest.fixture
def client(broker: Broker) -> LinkRig:
    """A link that is open, with the stream `s`."""
    client = broker.link()
    client.create("s")
    return client
