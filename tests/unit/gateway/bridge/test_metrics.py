"""Metrics and health of the routes, over real HTTP."""

import http.client
import json
import re
import socket
import time
from collections.abc import Iterator

import pytest

from gateway.bridge.lane import Lane
from gateway.bridge.metrics import Metrics
from tests.unit.gateway.bridge.bridge_rig import route
from tests.waiting import HANG_S


@pytest.fixture
def lanes() -> list[Lane]:
    return [Lane(route(name=name), waits=False, until_empty=False) for name in ("one", "two")]


@pytest.fixture
def page(lanes: list[Lane]) -> Iterator[Metrics]:
    made = Metrics(lanes, "127.0.0.1", 0)
    yield made
    made.close()


def ask(page: Metrics, path: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=HANG_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read().decode()
    finally:
        connection.close()


def values(text: str) -> dict[str, float]:
    found = re.findall(r"^(\w+\{.*\}) (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found}


def test_all_is_well_when_every_route_is_connected(lanes: list[Lane], page: Metrics) -> None:
    for lane in lanes:
        lane.counts.is_connected = True

    status, kind, body = ask(page, "/health")

    assert (status, kind) == (200, "application/json")
    assert json.loads(body) == {"status": "ok", "not_connected": []}


def test_a_route_without_its_ends_is_named(lanes: list[Lane], page: Metrics) -> None:
    lanes[0].counts.is_connected = True

    status, _, body = ask(page, "/health")

    assert status == 503
    assert json.loads(body) == {"status": "failed", "not_connected": ["two"]}


def test_metrics_show_what_each_route_has_done(lanes: list[Lane], page: Metrics) -> None:
    counts = lanes[0].counts
    counts.taken, counts.delivered, counts.repeated, counts.refused = 7, 5, 2, 1
    counts.under_way, counts.waiting, counts.is_connected = 3, 9, True
    counts.last_at = time.monotonic() - 60

    status, kind, body = ask(page, "/metrics")
    found = values(body)

    assert status == 200
    assert kind.startswith("text/plain")
    seconds = found.pop('hutch_bridge_last_message_seconds{route="one"}')
    assert 60 <= seconds < 60 + HANG_S
    assert found == {
        'hutch_bridge_taken_messages_total{route="one"}': 7,
        'hutch_bridge_delivered_messages_total{route="one"}': 5,
        'hutch_bridge_repeated_messages_total{route="one"}': 2,
        'hutch_bridge_refused_messages_total{route="one"}': 1,
        'hutch_bridge_under_way{route="one"}': 3,
        'hutch_bridge_waiting{route="one"}': 9,
        'hutch_bridge_connected{route="one"}': 1,
        'hutch_bridge_taken_messages_total{route="two"}': 0,
        'hutch_bridge_delivered_messages_total{route="two"}': 0,
        'hutch_bridge_repeated_messages_total{route="two"}': 0,
        'hutch_bridge_refused_messages_total{route="two"}': 0,
        'hutch_bridge_under_way{route="two"}': 0,
        'hutch_bridge_connected{route="two"}': 0,
    }


def test_every_metric_has_its_help_and_type(page: Metrics) -> None:
    _, _, body = ask(page, "/metrics")

    names = re.findall(r"^# TYPE (\w+) (counter|gauge)$", body, re.MULTILINE)
    assert [name for name, _ in names] == re.findall(r"^# HELP (\w+) \w", body, re.MULTILINE)
    assert len(names) == 8


def test_a_client_that_says_nothing_holds_up_neither_others_nor_the_end(
    lanes: list[Lane],
) -> None:
    page = Metrics(lanes, "127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", page.port)):
        assert ask(page, "/metrics")[0] == 200

        page.close()

    with pytest.raises(ConnectionRefusedError):
        ask(page, "/health")


def test_a_request_is_no_line_of_a_log(page: Metrics, capfd: pytest.CaptureFixture[str]) -> None:
    ask(page, "/metrics")
    ask(page, "/health")

    assert capfd.readouterr() == ("", "")


def test_a_port_that_is_taken_is_an_error(lanes: list[Lane], page: Metrics) -> None:
    with pytest.raises(OSError, match="Address already in use"):
        Metrics(lanes, "127.0.0.1", page.port)
