"""The pytest fixture `rabbitmq`: one reference broker for the whole test run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from compat.broker.running import RunningBroker
from compat.broker.ways import REQUIRE_VARIABLE, BrokerUnavailable, obtain


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[RunningBroker]:
    """Yield a running RabbitMQ 4.3; skip with the reasons where there is no way to one.

    With HUTCH_REQUIRE_ALL=1, as in continuous integration, having none is a failure.
    """
    try:
        broker = obtain()
    except BrokerUnavailable as error:
        if os.environ.get(REQUIRE_VARIABLE) == "1":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
    yield broker
    broker.stop()
