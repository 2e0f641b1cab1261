"""Binders across restarts and `kill -9`: each is its channel, folded."""

from __future__ import annotations

import os
import random
import threading
import time
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from tests.http_client import Api, eventually
from tests.integration.administrator import ctl
from tests.integration.mewbase.conftest import StartMewbase, installed, port_of
from tests.integration.server import HutchServer
from tests.mewbase_client import MewbaseClient

KILLS: Final = int(os.environ.get("HUTCH_MEWBASE_KILLS", "10"))
SEED: Final = int(os.environ.get("HUTCH_TEST_SEED") or "20260101")
IDS: Final = 20
ALARMS: Final = "health/checks/alarms"
PROJECTIONS: Final = """
[[projections]]
name = "replace"
channel = "channel1"
binder = "last"
id = "id"

[[projections]]
name = "merge"
channel = "channel1"
binder = "merged"
id = "id"
mode = "merge"

[[projections]]
name = "add1"
channel = "channel1"
binder = "sums"
id = "id"
mode = "add"
path = "of.{kind}"
quantity = "n"

[[projections]]
name = "add2"
channel = "channel2"
binder = "sums"
id = "id"
mode = "add"
path = "of.{kind}"
quantity = "n"

[[projections]]
name = "python"
channel = "channel1"
binder = "counted"
id = "id"
mode = "python"
function = "count_events"
"""
FUNCTIONS: Final = """
def count_events(document, event):
    if event["n"] == 13:
        raise ValueError("thirteen")
    return {"id": event["id"], "events": (document or {"events": 0})["events"] + 1}

async def fail(*_):
    raise RuntimeError("broken")

def break_the_server(document, event):
    from gateway.mewbase.binders.binder import Binder
    Binder.change = fail
    return event
"""

pytestmark = pytest.mark.timeout(60 + 15 * KILLS)


@pytest.fixture
def start_binders(start_mewbase: StartMewbase, tmp_path: Path) -> StartMewbase:
    path = tmp_path / "projections.toml"
    path.write_text(PROJECTIONS)

    def start(*arguments: str, **settings: str) -> HutchServer:
        return start_mewbase(
            *arguments,
            HUTCH_MEWBASE__PROJECTIONS_FILE=str(path),
            PYTHONPATH=installed(
                tmp_path / "packages", FUNCTIONS, "count_events", "break_the_server"
            ),
            **settings,
        )

    return start


def documents(port: int, binder: str) -> dict[str, dict[str, Any]]:
    """Return the documents of a binder."""
    found: dict[str, dict[str, Any]] = {}
    with MewbaseClient(port) as client:
        client.connect()
        client.send("QUERY", queryID=1, binder=binder, matcher={})
        while True:
            fields = client.must("QUERYRESULT")
            assert fields["ok"], fields
            if fields["result"] is not None:
                assert fields["result"]["id"] not in found
                found[fields["result"]["id"]] = fields["result"]
            if fields["last"]:
                return found
            client.send("QUERYACK", queryID=1, bytes=0)


def events(port: int, channel: str) -> list[dict[str, Any]]:
    """Return the events of a channel, but for those of this function."""
    with MewbaseClient(port) as client:
        client.connect()
        end = {"id": None, "end": time.monotonic_ns()}
        client.publish(channel, end)
        number = client.subscribe(channel, startPos=0)
        found: list[dict[str, Any]] = []
        while not found or found[-1] != end:
            fields = client.must("RECEV")
            client.send("ACKEV", subID=number, pos=fields["pos"], bytes=0)
            found.append(fields["event"])
    return [event for event in found if "end" not in event]


def folded(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what each binder must have, by the events of both channels."""
    last: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    sums: dict[str, Any] = {}
    counted: dict[str, Any] = {}
    for event in one:
        name = event["id"]
        last[name] = event
        merged[name] = merged.get(name, {}) | event
        if event["n"] != 13:
            events = counted.get(name, {"events": 0})["events"] + 1
            counted[name] = {"id": name, "events": events}
    for event in one + other:
        document = sums.setdefault(event["id"], {"id": event["id"], "of": {}})
        document["of"][event["kind"]] = document["of"].get(event["kind"], 0) + event["n"]
    return {"last": last, "merged": merged, "sums": sums, "counted": counted}


def check(server: HutchServer) -> dict[str, Any]:
    """Compare each binder with its channels; return what they have."""
    port = port_of(server)
    expected = folded(events(port, "channel1"), events(port, "channel2"))
    # A query waits a second at most for projections that are behind.
    for binder, content in expected.items():
        assert eventually(lambda: documents(port, binder) == content), binder  # noqa: B023
    return expected


def event_of(number: int) -> dict[str, Any]:
    chance = random.Random(number)
    kind = chance.choice(["a", "b", "c.d"])
    return {
        "id": f"{chance.randrange(IDS)}",
        "n": chance.randrange(20),
        "kind": kind,
        f"field{chance.randrange(5)}": number,
    }


def publish(port: int, channel: str, numbers: count[int]) -> None:
    """Publish without waiting for each answer, until the connection ends."""
    try:
        with MewbaseClient(port) as client:
            client.connect()
            for number in numbers:
                client.send("PUB", channel=channel, event=event_of(number), rID=number)
                if number % 20 == 0:
                    for _ in range(20):
                        client.receive()
    except (EOFError, ConnectionError):
        return


def test_kill_9_leaves_every_binder_equal_to_its_channel_folded_anew(
    start_binders: StartMewbase,
) -> None:
    chance = random.Random(SEED)
    server = start_binders()
    numbers = count(1)
    for _ in range(KILLS):
        port = port_of(server)
        threads = [
            threading.Thread(target=publish, args=(port, channel, numbers))
            for channel in ("channel1", "channel2")
        ]
        for thread in threads:
            thread.start()
        time.sleep(chance.uniform(0.02, 0.15))
        server.kill()
        for thread in threads:
            thread.join()
        server.restart()
    assert len(check(server)["sums"]) == IDS


def test_a_stop_and_a_start_change_nothing(start_binders: StartMewbase) -> None:
    server = start_binders()
    numbers = count(1)
    for _ in range(3):
        with MewbaseClient(port_of(server)) as client:
            client.connect()
            for number in [next(numbers) for _ in range(50)]:
                client.publish("channel1", event_of(number))
        server.terminate()
        server.restart()
        check(server)


def test_what_makes_no_document_is_logged_and_passed_over(start_binders: StartMewbase) -> None:
    server = start_binders("--durability", "os")
    wrong: dict[str, dict[str, object]]
    wrong = {"channel1": {"id": "a", "n": "x", "kind": "k"}, "channel2": {"x": 1}}
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        for channel, event in wrong.items():
            client.publish(channel, event)
            client.publish(channel, {"id": "a", "n": 13, "kind": 1})
    assert documents(port_of(server), "sums") == {"a": {"id": "a", "of": {"1": 26}}}
    assert documents(port_of(server), "counted") == {"a": {"id": "a", "events": 1}}
    for projection, number, reason in (
        ("python", 1, "the function raised ValueError('thirteen')"),
        ("add1", 1, "the quantity is no number"),
        ("add2", 2, "it has no field 'id' with a text or a whole number"),
    ):
        server.wait_for_log(
            f"events make no document projection={projection} channel=channel{number} events=1 "
        )
        server.wait_for_log(f"reason={reason}")


def test_a_projection_that_has_ended_is_told_to_everyone(
    start_binders: StartMewbase, tmp_path: Path
) -> None:
    server = start_binders("--durability", "os", "--management-port", "0")
    api = Api(*server.management, ("mew", "base"))
    assert (ctl(server, "status")["ended"], api.status("GET", ALARMS)) == ([], HTTPStatus.OK)
    server.kill()
    text = PROJECTIONS.replace('"count_events"', '"break_the_server"')
    (tmp_path / "projections.toml").write_text(text)
    server.restart()
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        client.publish("channel1", {"id": "a", "n": 1, "kind": "k"})
        server.wait_for_log("projection has ended projection=python channel=channel1")
        wanted: list[dict[str, object]] = [{"docID": "a"}, {"matcher": {}}]
        for matcher in wanted:
            client.send("QUERY", queryID=1, binder="counted", **matcher)
            answer = client.must("QUERYRESULT")
            assert (answer["ok"], answer["errCode"], answer["last"]) == (False, 100, True)
            assert answer["errMsg"].startswith("the projection 'python' of the binder has ended")
    ended = ["projection 'python': RuntimeError('broken')"]
    assert set(ended) <= set(ctl(server, "status")["ended"])
    api = Api(*server.management, ("mew", "base"))
    assert api.status("GET", ALARMS) == HTTPStatus.SERVICE_UNAVAILABLE
    server._output_path("stderr").write_text("")  # of all tests, this one wants a traceback


def test_a_channel_that_is_made_anew_is_folded_from_its_beginning(
    start_binders: StartMewbase,
) -> None:
    server = start_binders("--durability", "os")
    port = port_of(server)
    with MewbaseClient(port) as client:
        client.connect()
        for number in range(5):
            client.publish("channel1", {"id": "a", "n": number, "kind": "k"})
        assert documents(port, "counted")["a"]["events"] == 5
        ctl(server, "delete_stream", "channel1", "--force")
        ctl(server, "add_stream", "channel1")
        client.publish("channel1", {"id": "a", "n": 1, "kind": "k"})
        assert eventually(lambda: documents(port, "counted")["a"]["events"] == 6)
        assert documents(port, "last") == {"a": {"id": "a", "n": 1, "kind": "k"}}


def test_a_projection_that_begins_now_leaves_out_what_was_before(
    start_mewbase: StartMewbase, tmp_path: Path
) -> None:
    server = start_mewbase("--durability", "os")
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        client.publish("channel1", {"id": "a"})
    server.terminate()
    path = tmp_path / "projections.toml"
    name = '[[projections]]\nname = "p"\nchannel = "channel1"\nbinder = "b"\nid = "id"\n'
    path.write_text(name + 'from = "now"\n')
    server.environment = {
        **(server.environment or {}),
        "HUTCH_MEWBASE__PROJECTIONS_FILE": str(path),
    }
    server.restart()
    for number in range(2):
        with MewbaseClient(port_of(server)) as client:
            client.connect()
            client.publish("channel1", {"id": f"b{number}"})
        assert documents(port_of(server), "b").keys() == {f"b{n}" for n in range(number + 1)}
        server.terminate()
        server.restart()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "there may be tables [[projections]], and nothing else"),
        (PROJECTIONS, "no installed package has an entry point 'count_events'"),
        (
            PROJECTIONS.replace("of.{kind}", "...").replace('"id"', '".id"'),
            "projection 1: `id` is '.id', and has to be the name of a field",
        ),
        (PROJECTIONS.replace("of.{kind}", "..."), "projection 4: `path` is '...', and has to be"),
    ],
)
def test_a_file_that_cannot_be_used_stops_the_start(
    start_mewbase: StartMewbase, tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "projections.toml"
    path.write_text(text)
    with pytest.raises(Exception, match="HUTCH_MEWBASE__PROJECTIONS_FILE") as caught:
        start_mewbase(HUTCH_MEWBASE__PROJECTIONS_FILE=str(path))
    assert words in str(caught.value)
