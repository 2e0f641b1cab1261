"""Routes on which nothing happens: they cost nothing that shows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import pytest

from compat.broker import RunningBroker
from compat.broker.processes import usage
from tests.compat.bridge import ends
from tests.integration.bridge.bridges import Bridge, route
from tests.integration.bridge.mosquitto import Mosquitto
from tests.integration.server import HutchServer
from tests.machine import is_within

IDLE_S: Final = 5.0
SHARE_MAX: Final = 0.02
"""Share of one core, for all ten routes."""

pytestmark = pytest.mark.compat


def test_ten_idle_routes_use_no_cpu_that_shows(
    rabbitmq: RunningBroker, mosquitto: Mosquitto, server: HutchServer, tmp_path: Path
) -> None:
    queues = {f"idle-{number}": "quorum" for number in range(3)}
    ends.publish(ends.amqp_uri(rabbitmq), queues, {})
    ends.store(server.endpoint, "idle", [b"one"])
    here, amqp = {"uri": ends.stream_uri(server.endpoint)}, {"uri": ends.amqp_uri(rabbitmq)}
    sources = {
        **{queue: {**amqp, "queue": queue} for queue in queues},
        **{f"topic-{n}": {"uri": mosquitto.uri, "topics": [f"idle/{n}"]} for n in range(3)},
        **{f"stream-{n}": {**here, "stream": "idle"} for n in range(2)},
    }
    routes = [
        route(name, source, {**here, "stream": f"of-{name}", "create": {}})
        for name, source in sources.items()
    ]
    routes.append(route("out", {**here, "stream": "idle"}, {**amqp, "queue": "idle-0"}))
    routes.append(route("away", {**here, "stream": "idle"}, {"uri": mosquitto.uri, "topic": "out"}))
    with Bridge(tmp_path / "bridge", routes, "--metrics", "0") as bridge:
        bridge.wait_for("carrying", len(routes))
        time.sleep(2)
        before = usage(bridge.process.pid)
        time.sleep(IDLE_S)
        after = usage(bridge.process.pid)
    assert before is not None
    assert after is not None
    assert is_within(after.cpu_s - before.cpu_s, SHARE_MAX * IDLE_S)
