"""How much of a long list the management API makes in one turn of the event loop."""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

from gateway.management.administration import OWNER
from gateway.management.http.answers import PAIRS, SLICE, SLICE_CHARACTERS, in_slices
from gateway.management.http.call import ApiCall, ServerFacts
from gateway.management.http.routes import ApiMethod
from gateway.management.http.views import connections, streams
from gateway.pending import Pending
from gateway.stream.properties import ONE_BYTES_MAX
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.unit.gateway.broker.access.access_rig import Client
from tests.unit.gateway.management.requests.administration_rig import Rig
from tests.unit.gateway.stream.link_rig import Broker

T = TypeVar("T")

CONNECTIONS = 10_000
STREAMS = 200


class Turns:
    """Counts how many things are shown in each turn."""

    def __init__(self) -> None:
        self.shown = [0]

    def watch(self, patch: pytest.MonkeyPatch, module: object, view: str) -> None:
        """Count what this function of the module shows."""
        shows = getattr(module, view)

        def counted(*given: object) -> object:
            self.shown[-1] += 1
            return shows(*given)

        patch.setattr(module, view, counted)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    broker = Broker(tmp_path)
    yield Rig(broker)
    broker.close()


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    turns = Turns()
    run: Callable[[asyncio.Handle], None] = asyncio.Handle._run

    def counted(handle: asyncio.Handle) -> None:
        turns.shown.append(0)
        run(handle)

    monkeypatch.setattr(asyncio.Handle, "_run", counted)
    turns.watch(monkeypatch, connections, "connection_view")
    turns.watch(monkeypatch, streams, "queue_view")
    turns.watch(monkeypatch, connections, "_queue_consumer_view")
    return turns


async def listed(
    rig: Rig,
    handler: Callable[[ApiCall], Any],
    query: dict[str, str],
    path: Mapping[str, str] | None = None,
) -> list[bytes]:
    """Return the parts of the answer's body."""
    facts = ServerFacts("rabbit@localhost", list)

    async def awaits(coroutine: Coroutine[Pending[Any], None, T]) -> T:
        return rig.broker.store_rig.run(coroutine)

    call = ApiCall(rig.administration, OWNER, facts, awaits, path or {}, query)
    answer = await ApiMethod(handler)(call)
    parts: list[bytes] = []

    async def send(message: Any) -> None:  # noqa: ANN401
        parts.append(message.get("body", b""))

    async def receive() -> Any:  # noqa: ANN401
        raise AssertionError("no body is read")

    await answer({"type": "http", "method": "GET"}, receive, send)
    return parts


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({}, CONNECTIONS),
        ({"page": "3", "page_size": "500"}, 500),
        ({"page": "20", "page_size": "500", "sort": "name"}, 500),
        ({"sort": "name"}, CONNECTIONS),
        ({"name": "127", "use_regex": "true", "columns": "name"}, CONNECTIONS),
    ],
)
async def test_a_turn_shows_one_slice_of_ten_thousand_connections(
    rig: Rig, turns: Turns, query: dict[str, str], count: int
) -> None:
    registry = rig.administration.connections
    for number in range(CONNECTIONS):
        peer = f"127.0.0.1:{1024 + number}"
        registry.add(Client("guest", "/", peer, client_properties={"connection_name": "x" * 20}))

    parts = await listed(rig, connections.list_connections, query)

    found = json.loads(b"".join(parts))
    items = found["items"] if "page" in query else found
    assert len(items) == count
    assert sum(turns.shown) >= count
    assert max(turns.shown) == SLICE
    assert max(map(len, parts)) < 2 * SLICE * len(json.dumps(items[0]))


async def test_a_turn_shows_one_slice_of_the_streams(rig: Rig, turns: Turns) -> None:
    for number in range(STREAMS):
        rig.ask("add_stream", {"name": f"s-{number}"})

    parts = await listed(rig, streams.list_queues, {"columns": "name,vhost"})

    found = json.loads(b"".join(parts))
    assert {tuple(one) for one in found} == {("name", "vhost")}
    assert len(found) == sum(turns.shown) == STREAMS
    assert max(turns.shown) == SLICE


QUEUE = {"virtual_host": "/", "stream": "s"}


@pytest.mark.parametrize("query", [{}, {"columns": "consumer_details.arguments,name"}])
@pytest.mark.parametrize("size", [10, ONE_BYTES_MAX - 100])
async def test_a_turn_shows_some_of_the_consumers_of_a_stream(
    rig: Rig, turns: Turns, query: dict[str, str], size: int
) -> None:
    rig.ask("add_stream", {"name": "s"})
    properties = {"filter.0": "v" * size}
    clients = [rig.broker.link() for _ in range(8)]
    for client in clients:
        for number in range(16):
            subscription = m.Subscribe(number, "s", FIRST, 1, properties)
            assert client.code("subscribe", subscription) == ResponseCode.OK

    parts = await listed(rig, streams.get_queue, query, QUEUE)

    found = json.loads(b"".join(parts))
    assert [one["arguments"] for one in found["consumer_details"]] == [properties] * 128
    assert found["name"] == "s"
    assert len(found) == 2 if query else found["consumers"] == 128
    # The first turn also shows the stream itself; of large ones the second passes the bound.
    assert max(turns.shown) <= (SLICE if size < SLICE else 2) + 1
    assert max(map(len, parts)) < 2 * SLICE_CHARACTERS + ONE_BYTES_MAX


async def test_a_turn_shows_some_of_the_stored_offsets(rig: Rig, turns: Turns) -> None:
    rig.ask("add_stream", {"name": "s"})
    client = rig.broker.link()
    for number in range(3 * PAIRS + 1):
        client.tell("store_offset", m.StoreOffset(f"reference-{number}", "s", number))

    parts = await listed(rig, streams.get_tracking, {}, QUEUE)

    offsets = json.loads(b"".join(parts))["offsets"]
    assert offsets == {f"reference-{number}": number for number in range(3 * PAIRS + 1)}
    assert max(part.count(b"reference-") for part in parts) == PAIRS
    assert turns.shown == [0] * len(turns.shown)


async def test_what_is_empty_is_json_too(rig: Rig) -> None:
    rig.ask("add_stream", {"name": "s"})
    assert json.loads(b"".join(await listed(rig, streams.get_tracking, {}, QUEUE))) == {
        "offsets": {}, "writers": {}
    }  # fmt: skip
    queue = json.loads(b"".join(await listed(rig, streams.get_queue, {}, QUEUE)))
    assert queue["consumer_details"] == []


async def test_a_turn_looks_at_one_name_if_that_takes_long() -> None:
    looks: list[int] = []
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    async for number in in_slices(range(SLICE)):
        time.sleep(0.006)  # noqa: ASYNC251  # as a pattern does
        looks.append(number)
    counting.cancel()

    assert looks == list(range(SLICE))
    assert turns >= SLICE - 1
