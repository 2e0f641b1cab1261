"""Events that take long to look into: no turn of the server's loop does, and no memory stays."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import bson
import pytest

from tests.chunks import GZIP, LZ4, SNAPPY, ZSTD, Entry, SubBatch
from tests.client import Client
from tests.integration.costs import Costs, amount
from tests.integration.mewbase.conftest import StartMewbase, installed, port_of
from tests.integration.server import HutchServer
from tests.integration.turns import Turns
from tests.machine import is_within
from tests.mewbase_client import MewbaseClient
from tests.waiting import wait_until

MIB: Final = 1 << 20
TURN_S_MAX: Final = 0.05
SUBSCRIPTIONS: Final = amount(20, 5)
MANY_RECORDS: Final = amount(65_000, 6_500)
KEPT_BYTES_MAX: Final = 200 * MIB
CLOSED_S: Final = 10
PROJECTIONS: Final = """
[[projections]]
name = "replace"
channel = "channel1"
binder = "last"
id = "id"

[[projections]]
name = "sum"
channel = "channel2"
binder = "sums"
id = "id"
mode = "add"
path = "n"
quantity = "n"
"""
SLOW: Final = """
[[projections]]
name = "slow"
channel = "channel1"
binder = "slow"
id = "id"
mode = "python"
function = "count"
"""
FUNCTIONS: Final = """
import os, pathlib, time

def count(document, event):
    folder = pathlib.Path(os.environ["PROJECTING"])
    (folder / "begun").touch()
    while not (folder / "go on").exists():
        time.sleep(0.01)
    return {"id": event["id"], "events": (document or {"events": 0})["events"] + 1}
"""


@pytest.fixture
def server(start_mewbase: StartMewbase, tmp_path: Path) -> HutchServer:
    path = tmp_path / "projections.toml"
    path.write_text(PROJECTIONS)
    return start_mewbase("--durability", "os", HUTCH_MEWBASE__PROJECTIONS_FILE=str(path))


def connected(stack: ExitStack, server: HutchServer) -> MewbaseClient:
    client = stack.enter_context(MewbaseClient(port_of(server)))
    client.connect()
    return client


@contextmanager
def watched(server: HutchServer) -> Iterator[Callable[[], MewbaseClient]]:
    """Give what connects clients; check the server's turns, and what it keeps of them."""
    before = server.rss_bytes()
    with Turns(server) as turns:
        with ExitStack() as stack:
            yield lambda: connected(stack, server)
        wait_until(lambda: server.rss_bytes() - before < KEPT_BYTES_MAX, CLOSED_S)
        assert is_within(turns.longest_s, TURN_S_MAX)


def publish(server: HutchServer, channel: str, entries: Sequence[Entry]) -> None:
    """Publish records as a stream client does."""
    with Client.opened(*server.endpoint, user="mew", password="base") as client:
        client.declare(1, channel)
        for number, entry in enumerate(entries, 1):
            client.publish(1, {number: entry})
        client.confirmed_ids(len(entries))


def fields(count: int) -> dict[str, Any]:
    return dict.fromkeys(f"{number:05}" for number in range(count))


def take(client: MewbaseClient, count: int) -> list[int]:
    """Take so many events, acknowledge each, and return their positions."""
    found: list[int] = []
    for _ in range(count):
        event = client.must("RECEV")
        client.send("ACKEV", subID=event["subID"], pos=event["pos"])
        found.append(event["pos"])
    return found


def test_messages_of_many_sections_are_passed_over(server: HutchServer) -> None:
    many = b"\0Su\xa0\0" * 196_000
    described = b"\0Sw" + b"\0\x40" * 490_000 + b"\x40"
    listed = b"\0Ss\xd0" + (980_004).to_bytes(4) + (980_000).to_bytes(4) + b"\x40" * 980_000
    with watched(server) as connect:
        publish(server, "channel1", [*[many] * 20, described, listed + b"\0Su\xa0\1x", b"end"])
        client = connect()
        client.subscribe("channel1", startPos=0)
        assert [client.must("RECEV")["event"]["data"] for _ in range(2)] == [b"x", b"end"]
    begun = "events are passed over channel=channel1 events=1 first=0 reason=it has more than 64"
    assert begun in server.stderr
    wait_until(lambda: "events make no document projection=replace" in server.stderr)


@pytest.mark.parametrize(
    ("matcher", "around"),
    [
        ({"nope": 1}, []),
        (
            {f"a.b.c.x{number:03}": None for number in range(500)}
            | {"a.b.c": {"nope": 1}, "a": {"b.c": {"nope": 1}}, "a.b": {"c": {"nope": 1}}},
            ["c", "b", "a"],
        ),
    ],
    ids=["one key", "many paths"],
)
def test_matchers_look_into_large_events(
    server: HutchServer, matcher: dict[str, Any], around: list[str]
) -> None:
    def within(event: dict[str, Any]) -> dict[str, Any]:
        for name in around:
            event = {name: event}
        return event

    with watched(server) as connect:
        client = connect()
        for _ in range(5):
            client.publish("channel1", within(fields(115_000)))
        client.publish("channel1", within({"nope": 1}))
        clients = [connect() for _ in range(5)]
        for each in clients:
            for _ in range(SUBSCRIPTIONS):
                each.send("SUBSCRIBE", channel="channel1", rID=1, startPos=0, matcher=matcher)
        for each in clients:
            answers = [each.receive() for _ in range(2 * SUBSCRIPTIONS)]
            found = [fields["pos"] for kind, fields in answers if kind == "RECEV"]
            assert found == [5] * SUBSCRIPTIONS


def test_queries_look_into_large_documents(server: HutchServer) -> None:
    with watched(server) as connect:
        client = connect()
        for number in range(5):
            client.publish("channel1", {"id": str(number)} | fields(114_000))
        for number in range(100):
            client.send("QUERY", queryID=number, binder="last", matcher={"nope": 1})
        found = [client.must("QUERYRESULT") for _ in range(100)]
        assert all(each["ok"] and each["result"] is None for each in found)


def test_queries_come_to_large_documents_behind_many_small_ones(server: HutchServer) -> None:
    with watched(server) as connect:
        client = connect()
        for number in range(700):
            client.publish("channel1", {"id": f"{number:03}"})
        for number in range(700, 800):
            client.publish("channel1", {"id": f"{number:03}", "d": bytes(900_000)})
        for number in range(20):
            client.send("QUERY", queryID=number, binder="last", matcher={"nope": 1})
        for number in range(700, 800):  # queries keep them as they were
            client.send("PUB", channel="channel1", event={"id": f"{number:03}"}, rID=number)
        kinds = [client.receive()[0] for _ in range(120)]
        assert sorted(kinds) == ["QUERYRESULT"] * 20 + ["RESPONSE"] * 100


def packed(codec: int, records: int) -> SubBatch:
    """Return a sub-batch of 64 MiB of zeros."""
    return SubBatch.of([bytes(64 * MIB // records - 4)] * records, codec)


@pytest.mark.parametrize("connections", [1, 5])
def test_small_sub_batches_that_hold_much_are_opened_for_many(
    server: HutchServer, connections: int
) -> None:
    large = packed(ZSTD, 640)
    assert len(large.body) < 10_000
    with watched(server) as connect:
        publish(server, "channel2", [large] * 10)
        clients = [connect() for _ in range(connections)]
        for client in clients:
            for _ in range(20 // connections):
                client.send("SUBSCRIBE", channel="channel2", rID=1, startPos=6_380)
        for client in clients:
            kinds = [client.receive()[0] for _ in range(21 * 20 // connections)]
            assert kinds.count("RECEV") == 20 * 20 // connections


def test_sub_batches_of_every_codec_do_not_hold_up_others(server: HutchServer) -> None:
    entries = [packed(codec, 64) for codec in (GZIP, LZ4, ZSTD)]
    # Those that do not shrink so much have to fit into a frame.
    entries.append(SubBatch.of([bytes(MIB // 2)] * 20, SNAPPY))
    with watched(server) as connect:
        publish(server, "channel2", [*entries, packed(ZSTD, MANY_RECORDS)])
        client = connect()
        client.subscribe("channel2", startPos=0)
        count = MANY_RECORDS + 3 * 64 + 20
        assert take(client, count) == [*range(count)]


def test_to_acknowledge_large_events_one_by_one_opens_no_sub_batch_again(
    server: HutchServer,
) -> None:
    publish(server, "channel2", [packed(GZIP, 64)])

    def cost(first: int) -> float:
        client = connected(stack, server)
        with Costs(server, is_judged=False) as costs:
            client.subscribe("channel2", startPos=first)
            assert take(client, 64 - first) == [*range(first, 64)]
        return costs.seen.all_s

    with ExitStack() as stack:
        last_s, all_s = (min(cost(first), cost(first)) for first in (63, 0))
    assert all_s < 5 * last_s


def test_clients_that_take_nothing_keep_no_sub_batch_open(server: HutchServer) -> None:
    with watched(server) as connect:
        publish(server, "channel2", [packed(ZSTD, 64)] * 4)
        for _ in range(8):
            connect().send("SUBSCRIBE", channel="channel2", rID=1, startPos=0)
        client = connect()
        client.subscribe("channel2", startPos=0)
        assert take(client, 64) == [*range(64)]


def test_a_client_that_takes_little_makes_way_for_others(
    start_mewbase: StartMewbase,
) -> None:
    server = start_mewbase(HUTCH_MEWBASE__SUB_BATCHES_BYTES_MAX=str(64 * MIB))
    publish(server, "channel1", [packed(ZSTD, 640)])
    with ExitStack() as stack:
        slow, client = connected(stack, server), connected(stack, server)
        slow.subscribe("channel1", startPos=0)
        taken = take(slow, 1)
        client.send("SUBSCRIBE", channel="channel1", rID=1, startPos=0)
        client.must("SUBRESPONSE")
        while not select.select([client.socket], [], [], 0.01)[0]:
            assert len(taken) < 640, "the other one waits until all is taken"
            taken += take(slow, 1)
        assert take(client, 640) == [*range(640)]
        taken += take(slow, 640 - len(taken))
        assert taken == [*range(640)]


def test_a_slow_projection_makes_way_for_others(
    start_mewbase: StartMewbase, tmp_path: Path
) -> None:
    path = tmp_path / "projections.toml"
    path.write_text(SLOW)
    server = start_mewbase(
        HUTCH_MEWBASE__SUB_BATCHES_BYTES_MAX=str(64 * MIB),
        HUTCH_MEWBASE__PROJECTIONS_FILE=str(path),
        PYTHONPATH=installed(tmp_path / "packages", FUNCTIONS, "count"),
        PROJECTING=str(tmp_path),
    )
    event = bson.encode({"id": "a", "d": bytes(100_000)})
    publish(server, "channel1", [SubBatch.of([event] * 640, ZSTD)])
    wait_until((tmp_path / "begun").exists)
    publish(server, "channel2", [packed(ZSTD, 640)])
    with ExitStack() as stack:
        client = connected(stack, server)
        client.subscribe("channel2", startPos=0)
        assert take(client, 640) == [*range(640)]
        (tmp_path / "go on").touch()
        client.send("QUERY", queryID=1, binder="slow", docID="a")
        assert client.must("QUERYRESULT")["result"] == {"id": "a", "events": 640}
