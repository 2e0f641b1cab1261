"""Three servers of JetStream, and clusters of Hutch on them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from tests.integration.cluster.members import Cluster
from tests.nats_servers import NatsServers

_NAMES: Final = count(1)


@pytest.fixture(scope="session")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServers]:
    """Three servers, which all run when a test ends."""
    with NatsServers(tmp_path_factory.mktemp("nats") / "three", 3) as servers:
        yield servers


@pytest.fixture
def cluster(nats: NatsServers, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster without members, on a log that is not there yet."""
    cluster = Cluster(tmp_path, nats, f"cluster-{next(_NAMES)}")
    yield cluster
    cluster.close()
