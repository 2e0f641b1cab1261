"""Documents out of binders: cases 66 to 75 of the protocol's conformance."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import bson
import pytest
from bson.raw_bson import RawBSONDocument

from tests.http_client import eventually
from tests.integration.administrator import ctl
from tests.integration.mewbase.conftest import StartMewbase, port_of
from tests.integration.server import HutchServer
from tests.mewbase_client import MewbaseClient

ALL: dict[str, Any] = {"binder": "binder1", "matcher": {}}
PROJECTION = """
[[projections]]
name = "projection1"
channel = "channel2"
binder = "binder1"
id = "id"
"""


@pytest.fixture
def start_binder1(start_mewbase: StartMewbase, tmp_path: Path) -> StartMewbase:
    """Start a server whose binder1 has the events of channel2 by their field `id`."""
    path = tmp_path / "projections.toml"
    path.write_text(PROJECTION)

    def start(*arguments: str, **settings: str) -> HutchServer:
        return start_mewbase(*arguments, HUTCH_MEWBASE__PROJECTIONS_FILE=str(path), **settings)

    return start


@pytest.fixture
def server(start_binder1: StartMewbase) -> HutchServer:
    return start_binder1("--durability", "os")


def put(client: MewbaseClient, *events: dict[str, Any]) -> None:
    for number, event in enumerate(events):
        client.send("PUB", channel="channel2", event=event, rID=number)
    for _ in events:
        assert client.must("RESPONSE")["ok"] is True


def results(
    client: MewbaseClient, count: int | None = None, query: int = 3
) -> list[dict[str, Any] | None]:
    """Return the results of a query up to the last one, or so many, none of which is the last."""
    found: list[dict[str, Any] | None] = []
    while len(found) != count:
        fields = client.must("QUERYRESULT")
        assert (fields["queryID"], fields["ok"]) == (query, True)
        found.append(fields["result"])
        if fields["last"]:
            assert count is None
            break
    return found


def ask(client: MewbaseClient, **fields: object) -> list[dict[str, Any] | None]:
    """Send a query to binder1; return its results."""
    client.send("QUERY", **({"queryID": 3, "binder": "binder1"} | fields))
    return results(client)


def ids(found: list[dict[str, Any] | None]) -> list[str]:
    return [document["id"] for document in found if document is not None]


def large(number: int, size: int = 500_000) -> dict[str, Any]:
    return {"id": f"id-{number:05}", "data": bytes(size)}


def test_case_66_an_empty_binder_has_one_result_which_is_null(client: MewbaseClient) -> None:
    client.send("QUERY", queryID=3, rID=4, **ALL)
    kind, fields = client.receive()
    assert kind == "QUERYRESULT"
    assert fields == {"queryID": 3, "ok": True, "result": None, "last": True}
    assert client.is_silent()


def test_case_67_results_come_in_the_order_of_their_keys(client: MewbaseClient) -> None:
    events: list[dict[str, Any]] = [{"id": f"id-{n:05}", "n": n} for n in range(100)]
    random.Random(5).shuffle(events)
    put(client, *events)
    assert ask(client, matcher={}) == sorted(events, key=lambda event: event["id"])
    assert client.is_silent()


def test_keys_of_any_length_are_sorted_by_their_bytes(client: MewbaseClient) -> None:
    names = ["", "ä", "a", "aa", "Z", "b" * 300, "b", "10", "9"]
    put(client, *({"id": name} for name in names))
    assert ids(ask(client, matcher={})) == sorted(filter(None, names), key=str.encode)


def test_case_68_a_matcher_holds_back_the_last_match(client: MewbaseClient) -> None:
    put(client, *({"id": str(number), "v": number % 5} for number in range(5)))
    assert ask(client, matcher={"v": 2}) == [{"id": "2", "v": 2}]
    assert ask(client, matcher={"v": 9}) == [None]


def test_case_69_one_document_is_found_by_its_id(client: MewbaseClient) -> None:
    put(client, {"id": "a", "n": 1}, {"id": 7, "n": 2})
    assert ask(client, docID="a") == [{"id": "a", "n": 1}]
    assert ask(client, docID="a", matcher={"n": 5}) == [{"id": "a", "n": 1}]
    assert ask(client, docID="7") == [{"id": 7, "n": 2}]
    assert ask(client, docID="b") == [None]
    assert ask(client, docID="b" * 1024) == [None]


def test_case_70_queries_at_a_time_have_each_their_own_end(client: MewbaseClient) -> None:
    put(client, *({"id": f"{number:03}"} for number in range(300)))
    for query in (1, 2):
        client.send("QUERY", queryID=query, **ALL)
    counts = {1: 0, 2: 0}
    ended: set[int] = set()
    while len(ended) < 2:
        fields = client.must("QUERYRESULT")
        assert fields["queryID"] not in ended
        counts[fields["queryID"]] += 1
        if fields["last"]:
            ended.add(fields["queryID"])
    assert counts == {1: 300, 2: 300}
    client.send("QUERY", queryID=1, **ALL)  # the number is free again
    assert len(results(client, query=1)) == 300


@pytest.mark.parametrize("fields", [{"bytes": 500_100}, {}, {"bytes": -1}])
def test_case_71_results_stop_at_the_window_until_they_are_acknowledged(
    client: MewbaseClient, fields: dict[str, int]
) -> None:
    put(client, *(large(number) for number in range(30)))
    client.send("QUERY", queryID=3, **ALL)
    found = results(client, 9)  # the frame that takes them above 4 MiB
    assert client.is_silent(1.0)
    put(client, {"id": "another"})
    while len(found) < 30:
        client.send("QUERYACK", queryID=3, **fields)
        while len(found) < 30 and not client.is_silent(0.05):
            found += results(client, 1) if len(found) < 29 else results(client)
    assert ids(found) == [f"id-{number:05}" for number in range(30)]


def test_results_that_are_small_come_by_their_bytes_whatever_their_number(
    client: MewbaseClient,
) -> None:
    put(client, *({"id": f"{number:05}"} for number in range(1_500)))
    client.send("QUERY", queryID=3, **ALL)
    assert len(results(client)) == 1_500


def test_case_72_a_query_sees_the_documents_as_they_were_at_its_start(
    client: MewbaseClient, other: MewbaseClient
) -> None:
    put(client, *(large(number) for number in range(20)))
    client.send("QUERY", queryID=3, **ALL)
    found = results(client, 9)
    for number in (15, 0, 19, 15):
        put(other, {"id": f"id-{number:05}", "new": True})
    put(other, {"id": "id-00010x"}, {"id": "id-00010x", "new": True})
    assert ask(other, docID="id-00015") == [{"id": "id-00015", "new": True}]
    for _ in range(9):
        client.send("QUERYACK", queryID=3)
    found += results(client, 9)
    for _ in range(9):
        client.send("QUERYACK", queryID=3)
    found += results(client)
    assert found == [large(number) for number in range(20)]
    assert len(ask(client, matcher={"new": True})) == 4


def test_a_query_ends_when_too_much_changes_before_it_comes_there(
    start_binder1: StartMewbase,
) -> None:
    server = start_binder1("--durability", "os", HUTCH_MEWBASE__QUERY_KEPT_BYTES_MAX="1000000")
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        put(client, *(large(number) for number in range(20)))
        client.send("QUERY", queryID=3, **ALL)
        results(client, 9)
        put_only = [{"id": f"id-{number:05}"} for number in range(13, 20)]
        for number, event in enumerate(put_only):
            client.send("PUB", channel="channel2", event=event, rID=number)
        kinds = [client.receive() for _ in range(len(put_only) + 1)]
        (failed,) = [fields for kind, fields in kinds if kind == "QUERYRESULT"]
        assert (failed["ok"], failed["errCode"], failed["last"]) == (False, 100, True)
        assert "mewbase.query_kept_bytes_max" in failed["errMsg"]
        client.send("QUERYACK", queryID=3)
        assert ids(ask(client, docID="id-00019")) == ["id-00019"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"binder": "nosuch", "matcher": {}}, 103),
        ({"matcher": {}}, 103),
        ({"binder": "binder1"}, 104),
        ({"binder": "binder1", "matcher": None, "docID": None}, 104),
        ({"binder": "binder1", "matcher": {"$gt": 1}}, 104),
        ({"binder": "binder1", "matcher": [1]}, 104),
        ({"binder": "binder1", "docID": 7}, 104),
        ({"binder": "binder1", "docID": "x" * 1025}, 104),
        ({"binder": 1, "matcher": {}}, 104),
    ],
)
def test_case_73_a_query_that_is_refused_has_one_result(
    client: MewbaseClient, fields: dict[str, object], code: int
) -> None:
    client.send("QUERY", queryID=3, rID=9, **fields)
    answer = client.must("QUERYRESULT")
    assert answer.pop("errMsg")
    assert answer == {"queryID": 3, "ok": False, "errCode": code, "result": None, "last": True}
    assert ask(client, matcher={}) == [None]
    client.send("QUERY", rID=9, **ALL)
    assert client.must("RESPONSE")["errCode"] == 104
    assert client.is_ended()


def test_case_74_an_acknowledgement_of_no_query_is_ignored(client: MewbaseClient) -> None:
    client.send("QUERYACK", queryID=99)
    assert ask(client, matcher={}) == [None]
    client.send("QUERYACK", queryID=3, bytes=5)
    assert client.is_silent()
    client.publish("channel1", {})


def test_case_75_an_event_is_applied_once_and_documents_outlive_the_server(
    start_binder1: StartMewbase,
) -> None:
    server = start_binder1()
    for stop in (server.terminate, server.kill):
        with MewbaseClient(port_of(server)) as client:
            client.connect()
            put(client, {"id": "a", "n": 1}, {"id": "b", "n": 1}, {"id": "a", "n": 2})
            assert ask(client, matcher={}) == [{"id": "a", "n": 2}, {"id": "b", "n": 1}]
        stop()
        server.restart()
        with MewbaseClient(port_of(server)) as client:
            client.connect()
            assert ask(client, matcher={}) == [{"id": "a", "n": 2}, {"id": "b", "n": 1}]


# Beyond the conformance


def test_the_form_of_the_page_has_a_response_before_the_results(
    stranger: MewbaseClient,
) -> None:
    assert stranger.ask("CONNECT", version="1.0", username="mew", password="base")["ok"] is True
    stranger.send("QUERY", queryID=3, **ALL)
    assert stranger.must("QUERYRESPONSE") == {"queryID": 3, "ok": True}
    assert results(stranger) == [None]
    stranger.send("QUERY", queryID=3, binder="binder1", docID="x")
    assert stranger.must("QUERYRESPONSE") == {"queryID": 3, "ok": True}
    assert results(stranger) == [None]
    for fields, code in (({"binder": "x", "matcher": {}}, "103"), ({"binder": 5}, "104")):
        stranger.send("QUERY", queryID=4, **fields)
        for kind in ("QUERYRESPONSE", "QUERYRESULT"):
            answer = stranger.must(kind)
            assert (answer["queryID"], answer["ok"], answer["errCode"]) == (4, False, code)


@pytest.mark.parametrize(("wanted", "authInfo"), [("always", True), ("never", False)])
def test_a_setting_says_whether_there_is_a_response(
    start_binder1: StartMewbase,
    wanted: str,
    authInfo: bool,  # noqa: FBT001, N803
) -> None:
    server = start_binder1("--durability", "os", HUTCH_MEWBASE__QUERY_RESPONSE=wanted)
    with MewbaseClient(port_of(server)) as client:
        client.ask("CONNECT", version="1.0", **({"authInfo": None} if authInfo else {}))
        client.send("QUERY", queryID=3, **ALL)
        if wanted == "always":
            assert client.must("QUERYRESPONSE")["ok"] is True
        assert results(client) == [None]


def test_a_query_needs_the_right_to_read_the_binder(
    server: HutchServer, client: MewbaseClient
) -> None:
    ctl(server, "set_permissions", "mew", ".*", ".*", "channel.*")
    client.send("QUERY", queryID=3, **ALL)
    answer = client.must("QUERYRESULT")
    assert (answer["ok"], answer["errCode"], answer["last"]) == (False, 2, True)


def test_a_connection_has_so_many_queries_open(
    start_binder1: StartMewbase,
) -> None:
    server = start_binder1("--durability", "os", HUTCH_MEWBASE__QUERIES_MAX="2")
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        put(client, *(large(number) for number in range(10)))
        for query in (1, 2):
            client.send("QUERY", queryID=query, **ALL)
            assert len(results(client, 9, query)) == 9
        for query in (2, 3):  # one is open, and one is too many
            client.send("QUERY", queryID=query, **ALL)
            answer = client.must("QUERYRESULT")
            assert (answer["queryID"], answer["ok"], answer["errCode"]) == (query, False, 104)


def test_events_of_any_bytes_are_documents_as_they_are(client: MewbaseClient) -> None:
    event = bson.encode({"id": "x", "n": bson.Int64(1), "d": bson.Decimal128("1.10")})
    put(client, RawBSONDocument(event))  # type: ignore[arg-type]
    ask(client, docID="x")
    assert event in client.raw


def test_a_query_of_a_connection_that_ends_leaves_nothing(
    server: HutchServer, client: MewbaseClient
) -> None:
    put(client, *(large(number) for number in range(10)))
    before = server.rss_bytes()
    for _ in range(20):
        with MewbaseClient(port_of(server)) as other:
            other.connect()
            other.send("QUERY", queryID=3, **ALL)
            results(other, 1)
    put(client, large(3))
    assert eventually(lambda: server.rss_bytes() < before + 64 * 1024 * 1024)
    assert len(ask(client, matcher={"id": "id-00003"})) == 1
