"""Requests that carry a list: what they cost grows with the list, and no turn is long.

The requests are those of the protocol's tables: one that is missing here fails a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.commands import COMMANDS, CommandSender
from hutch.pravega.layout import WireMessage, layout_of
from hutch.pravega.wire_types import Items, KeyAndValue, TableKey
from tests.integration.costs import Costs, check_growth
from tests.integration.server import StoreProcess
from tests.pravega_client import WireClient

_numbers = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    folder: Path = tmp_path_factory.mktemp("lists")
    with StoreProcess(folder / "data", "--durability", "os") as server:
        yield server
        server.terminate()
        assert "Traceback" not in server.logs


@pytest.fixture
def client(server: StoreProcess) -> Iterator[WireClient]:
    with WireClient(*server.store) as client:
        client.hello()
        yield client


def lists_of(message: type[WireMessage]) -> dict[str, int]:
    """Return the most items of each list of a message."""
    fields = layout_of(message).fields
    return {name: wire.most for name, wire in fields if isinstance(wire, Items)}


WITH_LISTS: Final = [
    row.message for row in COMMANDS if row.sender & CommandSender.CLIENT and lists_of(row.message)
]

# A request of each kind with so many items, after what it needs.


def new_name() -> str:
    return f"scope/stream{next(_numbers)}/0.#epoch.0"


def table(client: WireClient, items: int) -> str:
    """Make a table with as many entries."""
    name = new_name()
    client.ask(t.CreateTableSegment(1, name, ""), m.SegmentCreated)
    if items:
        entries = tuple(KeyAndValue(key, b"value") for key in keys(items))
        client.ask(t.UpdateTableEntries(1, name, "", entries), t.TableEntriesUpdated)
    return name


def keys(items: int) -> tuple[TableKey, ...]:
    return tuple(TableKey(b"key %d" % number) for number in range(items))


def segment(client: WireClient) -> str:
    name = new_name()
    client.create(name)
    return name


def update(client: WireClient, items: int) -> WireMessage:
    entries = tuple(KeyAndValue(key, b"new") for key in keys(items))
    return t.UpdateTableEntries(1, table(client, min(items, 5_000)), "", entries)


def remove(client: WireClient, items: int) -> WireMessage:
    return t.RemoveTableKeys(1, table(client, min(items, 10_000)), "", keys(items))


def read(client: WireClient, items: int) -> WireMessage:
    return t.ReadTable(1, table(client, min(items, 10_000)), "", keys(items))


def merge(client: WireClient, items: int) -> WireMessage:
    updates = (m.AttributeUpdate(UUID(int=1 << 80 | each), 2, 1, 0) for each in range(items))
    return m.MergeSegments(1, segment(client), segment(client), "", tuple(updates))


def merge_in_batch(client: WireClient, items: int) -> WireMessage:
    sources = tuple(segment(client) for _ in range(items))
    return m.MergeSegmentsBatch(1, segment(client), sources, "")


REQUESTS: Final[dict[type[WireMessage], Callable[[WireClient, int], WireMessage]]] = {
    m.MergeSegments: merge,
    m.MergeSegmentsBatch: merge_in_batch,
    t.UpdateTableEntries: update,
    t.RemoveTableKeys: remove,
    t.ReadTable: read,
}


def test_every_request_with_a_list_is_tried_here() -> None:
    assert set(REQUESTS) == set(WITH_LISTS)
    assert all(len(lists_of(message)) == 1 for message in WITH_LISTS)


@pytest.mark.parametrize("message", WITH_LISTS, ids=lambda message: message.__name__)
def test_a_list_twice_as_long_costs_twice_as_much_and_no_turn_is_long(
    server: StoreProcess, client: WireClient, message: type[WireMessage]
) -> None:
    (most,) = lists_of(message).values()

    def cost(items: int) -> Costs:
        request = REQUESTS[message](client, items)
        with Costs(server, is_judged=False) as costs:
            client.send(request)
            assert not isinstance(client.receive(), e.ErrorMessage)
        return costs

    check_growth(cost, most)


@pytest.mark.parametrize("message", WITH_LISTS, ids=lambda message: message.__name__)
def test_a_list_that_is_too_long_is_refused_and_the_connection_goes_on(
    server: StoreProcess, client: WireClient, message: type[WireMessage]
) -> None:
    (most,) = lists_of(message).values()
    request = REQUESTS[message](client, most + 1)
    with Costs(server):
        refused = client.ask(request, e.ErrorMessage)
    assert f"a list of {most + 1} items is above {most}" in refused.message
    assert refused.request_id == 1
    client.ask(m.KeepAlive(), m.KeepAlive)
