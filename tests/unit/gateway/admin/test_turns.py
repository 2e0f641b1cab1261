"""How much of the event loop one turn of the management API takes, in processor time."""

import asyncio
import gc
import json
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from gateway.admin.call import Call, Facts
from gateway.admin.views import connections, streams
from gateway.broker.administration.administration import OWNER
from gateway.pending import Pending
from tests.unit.gateway.broker.access.access_rig import Client
from tests.unit.gateway.broker.administration.administration_rig import Rig
from tests.unit.gateway.stream.link_rig import Broker

T = TypeVar("T")

CONNECTIONS = 10_000
STREAMS = 200
TURN_S = 0.02


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    broker = Broker(tmp_path)
    yield Rig(broker)
    broker.close()


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """What each turn costs, in processor time of the loop's thread: others on it do not count."""
    costs: list[float] = []
    run: Callable[[asyncio.Handle], None] = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        costs.append(time.thread_time() - began)

    monkeypatch.setattr(asyncio.Handle, "_run", timed)
    # The test's own objects are many, and a look at all of them is not the API's.
    gc.collect()
    gc.disable()
    yield costs
    gc.enable()


async def listed(rig: Rig, handler: Callable[[Call], Any], query: dict[str, str]) -> bytes:
    facts = Facts("rabbit@localhost", {"version": "4.3.6"}, list, 0)

    async def awaits(coroutine: Coroutine[Pending[Any], None, T]) -> T:
        raise AssertionError(coroutine)

    answer = await handler(Call(rig.administration, OWNER, facts, awaits, {}, query))
    parts: list[bytes] = []

    async def send(message: Any) -> None:  # noqa: ANN401
        parts.append(message.get("body", b""))

    async def receive() -> Any:  # noqa: ANN401
        raise AssertionError("no body is read")

    await answer({"type": "http", "method": "GET"}, receive, send)
    await asyncio.sleep(0)
    return b"".join(parts)


@pytest.mark.parametrize("query", [{}, {"page": "3", "page_size": "500"}, {"sort": "name"}])
async def test_no_turn_takes_long_with_ten_thousand_connections(
    rig: Rig, turns: list[float], query: dict[str, str]
) -> None:
    registry = rig.administration.connections
    for number in range(CONNECTIONS):
        peer = f"127.0.0.1:{1024 + number}"
        registry.add(Client("guest", "/", peer, client_properties={"connection_name": "x" * 20}))
    await asyncio.sleep(0)
    turns.clear()

    body = await listed(rig, connections.list_connections, query)
    longest = max(turns)

    found = json.loads(body)
    count = 500 if "page" in query else CONNECTIONS
    assert len(found["items"] if "page" in query else found) == count
    assert longest < TURN_S
    assert sum(turns) < 2


async def test_streams_are_listed_in_slices(rig: Rig, turns: list[float]) -> None:
    for number in range(STREAMS):
        rig.ask("add_stream", {"name": f"s-{number}"})
    turns.clear()

    body = await listed(rig, streams.list_queues, {"columns": "name,vhost"})
    longest = max(turns)

    found = json.loads(body)
    assert {tuple(one) for one in found} == {("name", "vhost")}
    assert len(found) == STREAMS
    assert longest < TURN_S
