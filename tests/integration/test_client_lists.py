"""Publishers, consumers, groups and tracking of a running server, listed as RabbitMQ's tools do."""

from __future__ import annotations

from typing import Any

from hutch.stream import messages as m
from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.http_client import Api, eventually
from tests.integration.administrator import ctl
from tests.integration.server import HutchServer

GROUP = {"single-active-consumer": "true", "name": "group"}


def columns(rows: list[dict[str, Any]], *names: str) -> list[tuple[object, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_who_uses_a_stream_is_listed_with_figures(server: HutchServer) -> None:
    with (
        Client.opened(*server.endpoint) as one,
        Client.opened(*server.endpoint) as active,
        Client.opened(*server.endpoint) as waiting,
    ):
        one.create("orders", {"stream-max-segment-size-bytes": "1000"})
        one.declare(7, "orders", "ref")
        one.publish(7, {1: b"a" * 900, 2: b"b" * 900, 3: b"c" * 900})
        one.confirmed_ids(3)
        one.send_request("store_offset", m.StoreOffset("app", "orders", 1))
        one.subscribe(3, "orders", FIRST, credit=10, properties={"name": "plain"})
        one.records(3, subscription_id=3)
        active.subscribe(1, "orders", FIRST, properties=GROUP)
        active.next_of("consumer_update")
        waiting.subscribe(2, "orders", FIRST, properties=GROUP)

        publishers = ctl(server, "list_stream_publishers")
        consumers = ctl(server, "list_stream_consumers")
        [stream] = ctl(server, "list_streams")

        figures = ("messages_published", "messages_confirmed", "messages_errored")
        assert columns(publishers, "publisher_id", "stream", "reference", *figures) == [
            (7, "orders", "ref", 3, 3, 0)
        ]
        # One that waits has nothing to catch up with until it is its turn.
        shown = ("subscription_id", "messages_consumed", "offset", "offset_lag")
        assert columns(consumers, *shown) == [(3, 3, 2, 0), (1, 0, 0, 0), (2, 0, 0, 0)]
        assert [each["activity_status"] for each in consumers][::2] == ["up", "waiting"]
        groups = ctl(server, "list_stream_consumer_groups")
        assert columns(groups, "stream", "reference", "partition_index", "consumers") == [
            ("orders", "group", -1, 2)
        ]
        assert 2_700 < stream["message_bytes"] < 4_000
        assert stream["segments"] in (3, 4)
        queue = Api(*server.management).get("queues/%2F/orders")
        assert {name: queue[name] for name in ("message_bytes", "segments")} == {
            name: stream[name] for name in ("message_bytes", "segments")
        }
        kept = {("writer", "ref", 3), ("offset", "app", 1)}
        assert eventually(
            lambda: set(columns(tracking(server), "type", "name", "tracking_value")) == kept
        )
    assert ctl(server, "list_stream_consumers", "-p", "/") == []


def tracking(server: HutchServer) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = ctl(server, "list_stream_tracking", "orders")
    return rows
