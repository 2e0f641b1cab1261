"""The stock Node client `rabbitmq-stream-js-client` against a running server."""

from __future__ import annotations

import time

import pytest

from tests.integration.clients.conftest import NewNodeClient
from tests.integration.clients.messages import bodies
from tests.integration.clients.node import Json, NodeClient, NodeError
from tests.integration.conftest import StartServer
from tests.waiting import HANG_S

FIRST = {"type": "first"}


def publish(node: NodeClient, stream: str, count: int, *, first: int = 0) -> None:
    """Publish the records and see all of them confirmed, by a publisher of its own."""
    node.call("declare", publisher="p", stream=stream)
    answer = node.call("publish", publisher="p", first=first, count=count)
    assert answer["errors"] == []
    assert answer["confirmed"] == count
    node.call("closePublisher", publisher="p")


def read(
    node: NodeClient, stream: str, count: int, offset: Json = FIRST, name: str = "c"
) -> list[tuple[int, bytes]]:
    """Read from the offset until `count` records are there, and a little longer."""
    node.call("subscribe", consumer=name, stream=stream, offset=offset)
    return node.take(name, count)


def test_a_stream_exists_from_create_to_delete(node: NodeClient, stream: str) -> None:
    assert node.call("metadata", stream=stream)["code"] == 2
    node.call("create", stream=stream, arguments={"max-length-bytes": 1_000_000_000})
    assert node.call("metadata", stream=stream)["code"] == 1
    with pytest.raises(NodeError, match="code 17"):
        node.call("create", stream=stream, arguments={"max-length-bytes": 5_000_000})
    node.call("delete", stream=stream)
    assert node.call("metadata", stream=stream)["code"] == 2
    with pytest.raises(NodeError, match="code 2"):
        node.call("delete", stream=stream)


def test_one_record_is_confirmed_and_read_back(node: NodeClient, stream: str) -> None:
    node.call("create", stream=stream)
    publish(node, stream, 1)
    assert read(node, stream, 1) == [(0, bodies(1)[0])]


def test_a_batch_is_confirmed_and_read_back(node: NodeClient, stream: str) -> None:
    node.call("create", stream=stream)
    publish(node, stream, 5_000)
    assert read(node, stream, 5_000) == list(enumerate(bodies(5_000)))


@pytest.mark.parametrize("gzip", [False, True], ids=["plain", "gzip"])
def test_a_sub_entry_is_confirmed_and_read_back(
    node: NodeClient, stream: str, *, gzip: bool
) -> None:
    # One at a time: this client reads only the first sub-entry of a chunk.
    node.call("create", stream=stream)
    node.call("declare", publisher="p", stream=stream)
    for first in (0, 50, 100):
        answer = node.call("publishSubEntry", publisher="p", first=first, count=50, gzip=gzip)
        assert answer == {"confirmed": 1, "ids": ["0"], "errors": []}
    assert [record for _, record in read(node, stream, 150)] == bodies(150)
    stats = node.call("stats", stream=stream)
    assert stats["committedChunkId"] == "100", "offsets count records, not sub-entries"


def test_reading_starts_where_the_subscription_says(node: NodeClient, stream: str) -> None:
    node.call("create", stream=stream)
    publish(node, stream, 100)
    time.sleep(0.05)
    between_ms = int(time.time() * 1000)
    time.sleep(0.05)
    publish(node, stream, 1, first=100)
    expected = list(enumerate(bodies(101)))

    assert read(node, stream, 101, FIRST, "first") == expected
    assert read(node, stream, 1, {"type": "last"}, "last") == expected[100:]
    assert read(node, stream, 41, {"type": "offset", "value": 60}, "offset") == expected[60:]
    timestamp = {"type": "timestamp", "value": between_ms}
    assert read(node, stream, 1, timestamp, "timestamp") == expected[100:]

    node.call("subscribe", consumer="next", stream=stream, offset={"type": "next"})
    publish(node, stream, 10, first=101)
    assert node.take("next", 10) == list(enumerate(bodies(111)))[101:]


def test_a_stored_offset_is_queried_back(node: NodeClient, stream: str) -> None:
    node.call("create", stream=stream)
    publish(node, stream, 100)
    with pytest.raises(NodeError, match="code 19"):
        node.call("query", stream=stream, reference="app")
    node.call("subscribe", consumer="c", stream=stream, offset=FIRST, reference="app")
    node.take("c", 100)
    for offset in (42, 99, 7):
        node.call("store", consumer="c", offset=offset)
        deadline = time.monotonic() + HANG_S
        # Stored on the consumer's connection, queried on another: not at once.
        while node_offset(node, stream) != str(offset):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def node_offset(node: NodeClient, stream: str) -> str | None:
    """What the server answers for the reference, None if it has none."""
    try:
        return str(node.call("query", stream=stream, reference="app"))
    except NodeError:
        return None


def test_ids_sent_again_are_confirmed_but_stored_once(node: NodeClient, stream: str) -> None:
    node.call("create", stream=stream)
    assert node.call("declare", publisher="p", stream=stream, reference="w")["sequence"] == "0"
    for first, count in ((0, 100), (50, 100), (0, 10)):
        answer = node.call("publish", publisher="p", first=first, count=count, firstId=first + 1)
        assert answer["errors"] == []
        assert answer["confirmed"] == count
    assert node.call("sequence", publisher="p") == "150"
    assert read(node, stream, 150) == list(enumerate(bodies(150)))

    node.call("closePublisher", publisher="p")
    again = node.call("declare", publisher="p", stream=stream, reference="w")
    assert again["sequence"] == "150"
    # Without ids of ours the client goes on after what it was told.
    assert node.call("publish", publisher="p", first=150, count=1)["ids"] == ["151"]


def test_deleting_a_stream_is_told_to_who_uses_it(
    new_node_client: NewNodeClient, node: NodeClient, stream: str
) -> None:
    node.call("create", stream=stream)
    publish(node, stream, 10)
    assert len(read(node, stream, 10)) == 10
    other = new_node_client(node.endpoint)
    other.call("delete", stream=stream)
    wait_for_event(node, {"event": "metadata_update", "code": 6, "stream": stream})


def wait_for_event(node: NodeClient, event: dict[str, object]) -> None:
    """Wait until the client has reported this event."""
    deadline = time.monotonic() + HANG_S
    while event not in node.call("events"):
        assert time.monotonic() < deadline, node.call("events")
        time.sleep(0.02)


def test_the_client_comes_back_after_a_kill_and_nothing_is_missing(
    start_server: StartServer, new_node_client: NewNodeClient, stream: str
) -> None:
    server = start_server()
    node = new_node_client(server.endpoint)
    node.call("create", stream=stream)
    node.call("declare", publisher="p", stream=stream, reference="w")
    node.call("publish", publisher="p", count=2_000)
    node.call("subscribe", consumer="c", stream=stream, offset=FIRST)
    node.take("c", 2_000)

    server.kill()
    server.restart()
    # The client's own way back; it waits five seconds first.
    node.call("restart")

    # The same publisher and consumer, declared again by the client itself.
    assert node.call("publish", publisher="p", first=2_000, count=2_000)["confirmed"] == 2_000
    records = node.take("c", 4_000)
    # This client asks for the chunk it read last once more; what it sees twice must be the same.
    assert dict(records) == dict(enumerate(bodies(4_000)))
    assert read(node, stream, 4_000, FIRST, "all") == list(enumerate(bodies(4_000)))


def test_a_client_is_told_of_a_stop_and_finds_everything_when_it_connects_again(
    start_server: StartServer, new_node_client: NewNodeClient, stream: str
) -> None:
    server = start_server()
    node = new_node_client(server.endpoint)
    node.call("create", stream=stream)
    publish(node, stream, 2_000)
    assert len(read(node, stream, 2_000)) == 2_000
    server.terminate()
    wait_for_event(node, {"event": "connection_closed", "hadError": False})
    server.restart()
    node = new_node_client(server.endpoint)
    publish(node, stream, 2_000, first=2_000)
    assert read(node, stream, 4_000) == list(enumerate(bodies(4_000)))


def test_a_hundred_thousand_records_each_way(node: NodeClient, stream: str) -> None:
    node.call("create", stream=stream)
    publish(node, stream, 100_000)
    assert read(node, stream, 100_000) == list(enumerate(bodies(100_000)))
