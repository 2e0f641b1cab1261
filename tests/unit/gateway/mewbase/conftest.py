"""mewbase's protocol on a broker of the test's own, with the channel `c`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.gateway.mewbase.channel_rig import ChannelClient, ChannelRig
from tests.unit.gateway.stream.link_rig import Broker


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[ChannelRig]:
    """Return the parts that all connections share."""
    broker = Broker(tmp_path, anonymous="guest")
    broker.store_rig.run(broker.streams.create("c", {}))
    yield ChannelRig(broker)
    broker.close()


@pytest.fixture
def client(rig: ChannelRig) -> ChannelClient:
    """Return a client that has logged in."""
    return rig.guest()
