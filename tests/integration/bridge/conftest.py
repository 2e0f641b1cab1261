"""Fixtures of the bridge's tests: the other brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.broker.fixture import rabbitmq
from tests.integration.bridge.mosquitto import Mosquitto

__all__ = ["mosquitto", "rabbitmq"]


@pytest.fixture(scope="module")
def mosquitto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    """A broker of MQTT for the tests of a module."""
    with Mosquitto(tmp_path_factory.mktemp("mosquitto") / "data") as broker:
        yield broker
