"""The management API of a running server, as clients' suites and tools use it."""

import socket
import urllib.request
from collections.abc import Iterator

import pytest

from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.client import Client, PeerGone
from tests.http_client import Api, segment
from tests.integration.administrator import ctl
from tests.integration.conftest import StartServer, managed_server
from tests.integration.server import HutchServer, ServerDidNotStart
from tests.waiting import HANG_S

STREAM = {
    "durable": True,
    "auto_delete": False,
    "arguments": {
        "x-queue-type": "stream",
        "x-max-age": "1h",
        "x-max-length-bytes": 1_000_000,
        "x-stream-max-segment-size-bytes": 500_000,
        "x-initial-cluster-size": 1,
        "x-queue-leader-locator": "balanced",
    },
}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    with managed_server(tmp_path_factory.mktemp("management")) as server:
        yield server


@pytest.fixture
def api(target: HutchServer) -> Api:
    return Api(*target.management)


def test_a_connection_is_seen_and_cut_off_without_a_close(api: Api, target: HutchServer) -> None:
    with Client.opened(*target.endpoint) as client:
        host, port = client.socket.getsockname()
        name = f"{host}:{port} -> {target.host}:{target.port}"

        (listed,) = [one for one in api.get("connections/") if one["name"] == name]
        assert listed["client_properties"]["connection_name"] == "tests"
        assert listed["user_provided_name"] == "tests"
        assert {type(value) for value in listed["client_properties"].values()} == {str}
        assert api.get(f"connections/{segment(name)}") == listed | {
            "recv_oct": listed["recv_oct"],
            "send_oct": listed["send_oct"],
        }
        assert api.get(f"stream/connections/%2F/{segment(name)}")["name"] == name

        assert api.status("DELETE", f"connections/{segment(name)}") == 204
        with pytest.raises(PeerGone):  # and no Close frame before
            client.receive()
    assert api.status("GET", f"connections/{segment(name)}") == 404
    assert api.ask("DELETE", f"connections/{segment(name)}").json == {
        "error": "Object Not Found",
        "reason": "Not Found",
    }


def test_a_stream_is_made_shown_counted_and_deleted(api: Api, target: HutchServer) -> None:
    assert api.status("PUT", "queues/%2F/made", STREAM) == 201
    assert api.status("PUT", "queues/%2F/made", STREAM) == 204
    other = api.ask("PUT", "queues/%2F/made", {"arguments": {"x-queue-type": "stream"}})
    assert (other.status, other.json["error"]) == (400, "bad_request")

    with Client.opened(*target.endpoint) as client:
        client.declare(1, "made")
        client.publish(1, dict.fromkeys(range(7), b"hello"))
        client.confirmed_ids(7)
        client.subscribe(3, "made", FIRST)
        client.delivery()

        shown = api.get("queues/%2F/made")
        assert shown["arguments"] == STREAM["arguments"]
        assert (shown["type"], shown["node"], shown["vhost"]) == ("stream", "rabbit@localhost", "/")
        assert (shown["messages"], shown["messages_ready"], shown["consumers"]) == (7, 7, 1)
        assert shown["consumer_details"][0]["consumer_tag"] == "stream.subid-3"
        (publisher,) = api.get("stream/publishers/%2F/made")
        assert (publisher["published"], publisher["confirmed"], publisher["errored"]) == (7, 7, 0)
        (consumer,) = api.get("stream/consumers/%2F/")
        assert (consumer["consumed"], consumer["offset"], consumer["offset_lag"]) == (7, 6, 0)
        assert consumer["connection_details"]["user"] == "guest"

        assert api.status("DELETE", "queues/%2F/made") == 204
        gone = [client.receive().message for _ in range(1)]
        assert gone == [m.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, "made")]
    assert api.status("DELETE", "queues/%2F/made") == 404
    assert all(queue["name"] != "made" for queue in api.get("queues"))


def test_a_super_stream_made_of_its_parts_is_one_on_the_wire(api: Api, target: HutchServer) -> None:
    exchange = {"type": "direct", "durable": True, "arguments": {"x-super-stream-enabled": True}}
    assert api.status("PUT", "exchanges/%2F/parts", exchange) == 201
    for number in range(3):
        assert api.status("PUT", f"queues/%2F/parts-{number}", STREAM) == 201
        bound = api.ask(
            "POST",
            f"bindings/%2F/e/parts/q/parts-{number}",
            {"routing_key": str(number), "arguments": {"x-stream-partition-order": str(number)}},
        )
        assert bound.status == 201
        key = bound.headers["location"].partition("/")[2]
        assert api.get(f"bindings/%2F/e/parts/q/parts-{number}/{key}")["routing_key"] == str(number)

    with Client.opened(*target.endpoint) as client:
        names = ("parts-0", "parts-1", "parts-2")
        parts = client.ask(m.StreamsReply, "partitions", m.Partitions("parts"))
        assert parts == m.StreamsReply(ResponseCode.OK, names)
        routed = client.ask(m.StreamsReply, "route", m.Route("1", "parts"))
        assert routed == m.StreamsReply(ResponseCode.OK, ("parts-1",))
    assert api.status("DELETE", "exchanges/%2F/parts") == 204
    assert api.status("DELETE", "exchanges/%2F/parts") == 404


def test_who_makes_a_virtual_host_may_use_it(api: Api, target: HutchServer) -> None:
    assert api.status("PUT", "vhosts/mine") == 201
    assert api.status("PUT", "vhosts/mine") == 204
    with Client.opened(*target.endpoint, virtual_host="mine") as client:
        client.create("s")
        assert [one["name"] for one in api.get("queues/mine")] == ["s"]
        assert api.status("DELETE", "vhosts/mine") == 204
        client.wait_until_gone()
    assert api.status("GET", "vhosts/mine") == 404
    assert api.status("GET", "queues/mine") == 404


def test_what_is_published_over_http_is_read_over_the_wire(api: Api, target: HutchServer) -> None:
    assert api.status("PUT", "queues/%2F/posted", STREAM) == 201
    message = {
        "properties": {"content_type": "text/plain", "headers": {"k": "v"}},
        "routing_key": "posted",
        "payload": "hello",
        "payload_encoding": "string",
    }
    path = "exchanges/%2f/amq.default/publish"
    assert api.ask("POST", path, message).json == {"routed": True}
    assert api.ask("POST", path, message | {"routing_key": "nowhere"}).json == {"routed": False}
    large = message | {"payload": "x" * 900_000}
    assert api.ask("POST", path, large).json == {"routed": True}
    for wrong in ({"payload_encoding": "x"}, {"payload": 5}, {"properties": {"priority": "7"}}):
        answer = api.ask("POST", path, message | wrong)
        assert (answer.status, answer.json["error"]) == (400, "bad_request"), wrong
    with Client.opened(*target.endpoint) as client:
        client.subscribe(1, "posted", FIRST, credit=10)
        records: list[bytes] = []
        while len(records) < 2:
            records += client.delivery().chunk.records()
    assert records[0].endswith(b"\x00Su\xa0\x05hello")
    assert records[1].endswith(b"x" * 900_000)


def test_tracking_tells_stored_offsets_and_last_ids(api: Api, target: HutchServer) -> None:
    assert api.status("PUT", "queues/%2F/tracked", STREAM) == 201
    with Client.opened(*target.endpoint) as client:
        client.declare(1, "tracked", "named")
        client.publish(1, {41: b"x"})
        client.confirmed_ids(1)
        client.send_request("store_offset", m.StoreOffset("reader", "tracked", 17))
        client.request("query_offset", m.QueryOffset("reader", "tracked"))
        both = {"writers": {"named": 41}, "offsets": {"reader": 17}}
        assert api.get("stream/%2F/tracked/tracking") == both
        assert api.get("stream/%2F/tracked/tracking?type=offset") == {"offsets": {"reader": 17}}
        assert api.get("stream/%2F/tracked/tracking?type=writer") == {"writers": {"named": 41}}


def test_definitions_are_exported_without_names_that_are_not_utf8(
    api: Api, target: HutchServer
) -> None:
    client = Client.opened(*target.endpoint)
    client.create("a\udcffb")
    client.disconnect()
    names = [queue["name"] for queue in api.get("queues")]

    exported = [queue["name"] for queue in api.get("definitions")["queues"]]

    assert exported == [name for name in names if name != "a\ufffdb"]
    assert r"reason=stream 'a\udcffb' in virtual host '/' is left out" in target.logs
    assert api.status("DELETE", "queues/%2F/a%FFb") == 204
    assert [queue["name"] for queue in api.get("queues")] == exported


def test_definitions_go_out_and_come_in(api: Api) -> None:
    assert api.status("PUT", "queues/%2F/defined", STREAM) == 201
    exported = api.get("definitions")
    assert any(queue["name"] == "defined" for queue in exported["queues"])
    assert api.status("DELETE", "queues/%2F/defined") == 204
    assert api.status("POST", "definitions", exported) == 204
    assert api.get("queues/%2F/defined")["arguments"] == STREAM["arguments"]
    wrong = api.ask("POST", "definitions", {"users": [{}]})
    assert (wrong.status, wrong.json["error"]) == (400, "bad_request")


@pytest.mark.parametrize(
    ("section", "entry"),
    [
        ("queues", {"name": "lost", "vhost": "/", "durable": True, "arguments": {}}),
        ("exchanges", {"name": "lost", "vhost": "/", "type": "headers"}),
        (
            "policies",
            {"name": "lost", "vhost": "/", "pattern": "(a", "definition": {"max-age": "1h"}},
        ),
        ("topic_permissions", {"user": "lost", "vhost": "/", "exchange": "amq.topic"}),
        ("bindings", {"source": "lost", "vhost": "/", "destination": "lost"}),
    ],
)
def test_definitions_that_cannot_all_be_imported_are_refused_whole(
    api: Api, section: str, entry: dict[str, object]
) -> None:
    stream = {"name": "beside", "vhost": "/", "type": "stream", "durable": True}
    content: dict[str, list[dict[str, object]]] = {"queues": [stream]}
    content[section] = [*content.get(section, []), entry]

    refused = api.ask("POST", "definitions", content)

    assert (refused.status, refused.json["error"]) == (400, "bad_request")
    assert "'lost" in refused.json["reason"]
    assert api.status("GET", "queues/%2F/beside") == 404


def test_definitions_that_are_adapted_or_say_nothing_are_imported(
    api: Api, target: HutchServer
) -> None:
    adapted = {"name": "adapted", "vhost": "/", "type": "stream", "durable": False}
    parameter = {"name": "internal_cluster_id", "value": "x"}
    large = {"name": "large", "vhost": "/", "type": "stream", "arguments": {}}
    large["arguments"] = {"x-max-length-bytes": 10**30}

    content = {"queues": [adapted, large], "global_parameters": [parameter]}
    assert api.status("POST", "definitions", content) == 204
    nothings: list[dict[str, object] | None] = [None, {}, {"queues": []}, {"bindings": []}]
    for nothing in nothings:
        assert api.status("POST", "definitions", nothing) == 204
        assert api.status("POST", "definitions/%2F", nothing) == 204

    assert "definition adapted kind=stream virtual_host='/' name='adapted'" in target.logs
    exported = api.get("definitions")
    assert api.status("DELETE", "queues/%2F/adapted") == 204
    assert api.status("DELETE", "queues/%2F/large") == 204
    assert api.status("POST", "definitions", exported) == 204
    assert api.get("definitions") == exported
    for name in ("adapted", "large"):
        assert api.status("DELETE", f"queues/%2F/{name}") == 204


def test_definitions_of_one_virtual_host_need_it_and_leave_what_they_do_not_say(api: Api) -> None:
    missing = api.ask("POST", "definitions/typo", {"queues": []})
    assert (missing.status, missing.json) == (
        404,
        {"error": "not_found", "reason": "vhost_not_found"},
    )
    assert api.status("GET", "vhosts/typo") == 404
    assert api.status("PUT", "vhosts/described", {"description": "about", "tags": "a"}) == 201
    assert api.status("PUT", "vhost-limits/described/max-queues", {"value": 5}) == 204

    content = {"queues": [{"name": "log", "type": "stream", "durable": True}]}
    assert api.status("POST", "definitions/described", content) == 204

    assert api.get("vhosts/described")["description"] == "about"
    assert api.get("vhost-limits/described") == [{"vhost": "described", "value": {"max-queues": 5}}]
    assert api.status("GET", "queues/described/log") == 200
    assert api.status("DELETE", "vhosts/described") == 204


def test_a_port_that_was_asked_for_must_be_free_and_the_usual_one_need_not(
    start_server: StartServer,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServerDidNotStart) as failure:
            start_server("--management-port", str(port))
        assert failure.value.exit_code == 2
        assert f"--management-port: cannot listen on 127.0.0.1:{port}" in failure.value.output


def test_a_browser_at_the_front_door_reads_one_line_without_logging_in(
    start_server: StartServer,
) -> None:
    server = start_server()
    with urllib.request.urlopen(
        f"http://127.0.0.1:{server.management.port}/", timeout=HANG_S
    ) as page:
        text = page.read().decode()
        assert page.headers["Content-Type"].startswith("text/plain")

    assert text.count("\n") == 1
    assert "/api/overview" in text


def counts(api: Api) -> tuple[dict[str, int], int, int]:
    """Messages of each stream as the lists have them, in all, and of the virtual host."""
    lists = [api.get(path) for path in ("queues", "queues/detailed", "queues?page=1&sort=messages")]
    lists[-1] = lists[-1]["items"]
    each, *others = [{queue["name"]: queue["messages"] for queue in listed} for listed in lists]
    assert others == [each, each]
    totals = api.get("overview")["queue_totals"]["messages"], api.get("vhosts/%2F")["messages"]
    return each, *totals


def test_streams_that_were_not_used_since_the_start_are_counted(start_server: StartServer) -> None:
    server = start_server("--durability", "os")
    with Client.opened(*server.endpoint) as client:
        for number, (name, count) in enumerate({"none": 0, "some": 7, "cut": 5}.items()):
            client.create(name)
            client.declare(number, name)
            for each in range(count):
                client.publish(number, {each: b"hello"})
                client.confirmed_ids(1)
    ctl(server, "truncate_stream", "cut", "--before-offset", "3")
    expected = {"none": 0, "some": 7, "cut": 2}, 9, 9
    assert counts(Api(*server.management)) == expected
    for stop in (server.terminate, server.kill):
        stop()
        server.start()
        assert counts(Api(*server.management)) == expected
        assert counts(Api(*server.management)) == expected
