"""Lists and objects as a query asks for them, and bindings by their keys."""

from collections.abc import Iterator

import pytest

from hutch.stream.offsets import FIRST
from tests.client import Client, PeerGone
from tests.http_client import Api, segment
from tests.integration.conftest import managed_server
from tests.integration.server import HutchServer

STREAM = {"arguments": {"x-queue-type": "stream", "x-max-age": "1h"}}
OUT_OF_RANGE = "Page out of range, page: {} page size: {}, len: {}"


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    with managed_server(tmp_path_factory.mktemp("lists")) as server:
        api = Api(*server.management)
        for name in ("one", "three", "two"):
            assert api.status("PUT", f"queues/%2F/{name}", STREAM) == 201
        yield server


@pytest.fixture
def api(target: HutchServer) -> Api:
    return Api(*target.management)


# Columns


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("queues/%2F/one?columns=name,vhost", {"name": "one", "vhost": "/"}),
        (
            "queues/%2F/one?columns=name,arguments.x-queue-type",
            {"name": "one", "arguments": {"x-queue-type": "stream"}},
        ),
        (
            "queues/%2F/one?columns=arguments,arguments.x-queue-type",
            STREAM,
        ),
        (
            "queues/%2F/one?columns=arguments.x-queue-type,arguments",
            STREAM,
        ),
        ("queues/%2F/one?columns=name.x,nothing,nothing.x", {}),
        (
            "queues?columns=arguments.x-max-age&name=t",
            2 * [{"arguments": {"x-max-age": "1h"}}],
        ),
        ("whoami?columns=name", {"name": "guest"}),
        ("users/guest?columns=tags", {"tags": ["administrator"]}),
        ("vhosts/%2F?columns=name", {"name": "/"}),
        ("exchanges/%2F/amq.topic?columns=type", {"type": "topic"}),
        ("permissions/%2F/guest?columns=write", {"write": ".*"}),
        ("bindings/%2F/e/amq.default/q/one/one?columns=routing_key", {"routing_key": "one"}),
        ("overview?columns=object_totals.queues", {"object_totals": {"queues": 3}}),
        ("overview?columns=listeners.protocol", {"listeners": 2 * [{}]}),
        ("nodes?columns=running", [{"running": True}]),
        ("nodes/rabbit@localhost?columns=running", {"running": True}),
    ],
)
def test_columns_narrow_what_is_shown_down_to_fields_of_fields(
    api: Api, path: str, found: object
) -> None:
    shown = api.get(path)
    if "listeners" in path:
        assert {one["protocol"] for one in shown["listeners"]} == {"http", "stream"}
    else:
        assert shown == found


# Pages


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("queues?page=4&page_size=1", OUT_OF_RANGE.format(4, 1, 3)),
        ("queues?page=999", OUT_OF_RANGE.format(999, 100, 3)),
        ("queues?page=2&name=nobody", OUT_OF_RANGE.format(2, 100, 0)),
        ("queues?page=3&page_size=1&sort=name&name=t", OUT_OF_RANGE.format(3, 1, 2)),
        ("channels?page=2", OUT_OF_RANGE.format(2, 100, 0)),
    ],
)
def test_a_page_behind_the_last_is_refused(api: Api, query: str, reason: str) -> None:
    answer = api.ask("GET", query)

    assert answer.status == 400
    assert answer.json == {"error": "page_out_of_range", "reason": reason}


def test_of_a_field_given_twice_the_first_counts(api: Api) -> None:
    first = api.get("queues?page=1&page_size=2&page=2")
    assert (first["page"], [one["name"] for one in first["items"]]) == (1, ["one", "three"])


@pytest.mark.parametrize("page", ["x", "", "1.0", "%201", "9999999999"])
def test_a_page_that_is_no_number_is_refused(api: Api, page: str) -> None:
    answer = api.ask("GET", f"queues?page={page}")

    assert answer.status == 400
    assert answer.json == {"error": "bad_request", "reason": "Pagination parameters are invalid"}


@pytest.mark.parametrize(
    "query", ["page=0", "page=-1", "page=1&page_size=0", "page_size=501&page=1"]
)
def test_pages_begin_with_1_and_have_500_things_at_most(api: Api, query: str) -> None:
    answer = api.ask("GET", f"queues?{query}")

    assert (answer.status, answer.json["error"]) == (400, "invalid_pagination_parameters")


@pytest.mark.parametrize("path", ["channels", "stream/connections", "connections"])
def test_the_first_page_is_there_though_it_is_empty(api: Api, path: str) -> None:
    assert api.get(f"{path}?page=1") == {
        "items": [],
        "item_count": 0,
        "filtered_count": 0,
        "total_count": 0,
        "page": 1,
        "page_count": 0,
        "page_size": 100,
    }


def test_the_last_page_has_the_rest(api: Api) -> None:
    page = api.get("queues?page=2&page_size=2&columns=name")

    assert page["items"] == [{"name": "two"}]
    assert (page["page_count"], page["item_count"], page["total_count"]) == (2, 1, 3)


# Bindings


def test_every_binding_has_a_key_of_its_own_by_which_it_is_found_and_deleted(api: Api) -> None:
    place = "bindings/%2F/e/keys/q/one"
    keys = {"": "~", "~": "%7E", "%7E": "%257E", "k~5": "k%7E5", "a/b c~ä": "a%2Fb%20c%7E%C3%A4"}
    assert api.status("PUT", "exchanges/%2F/keys", {"type": "topic"}) == 201
    for routing_key, key in keys.items():
        made = api.ask("POST", place, {"routing_key": routing_key})
        assert (made.status, made.headers["location"]) == (201, f"one/{segment(key)}")

    assert {one["routing_key"]: one["properties_key"] for one in api.get(place)} == keys
    for routing_key, key in keys.items():
        assert api.get(f"{place}/{segment(key)}")["routing_key"] == routing_key
    assert api.status("DELETE", f"{place}/~") == 204
    assert api.status("DELETE", f"{place}/~") == 404  # and not the key that is a tilde
    assert api.status("DELETE", f"{place}/%257E") == 204
    left = {one["routing_key"] for one in api.get(place)}
    assert left == keys.keys() - {"", "~"}
    assert api.status("DELETE", "exchanges/%2F/keys") == 204


def test_bindings_that_differ_in_arguments_alone_have_keys_too(api: Api) -> None:
    place = "bindings/%2F/e/amq.direct/q/one"
    for arguments in ({}, {"a": 1}, {"a": 2}):
        assert api.status("POST", place, {"routing_key": "~", "arguments": arguments}) == 201

    keys = {one["properties_key"]: one["arguments"] for one in api.get(place)}
    assert len(keys) == 3
    for key, arguments in keys.items():
        assert api.get(f"{place}/{segment(key)}")["arguments"] == arguments
        assert api.status("DELETE", f"{place}/{segment(key)}") == 204
    assert api.get(place) == []


# Numbers


def test_the_overview_counts_consumers(api: Api, target: HutchServer) -> None:
    assert api.get("overview")["object_totals"]["consumers"] == 0
    with Client.opened(*target.endpoint) as client:
        for subscription in (1, 2):
            client.subscribe(subscription, "one", FIRST)
        assert api.get("overview")["object_totals"]["consumers"] == 2
        assert api.get("overview")["object_totals"]["connections"] == 1


# What belongs to somebody


@pytest.fixture
def plain(api: Api) -> Iterator[Api]:
    """Return the API as a user without a tag of power sees it."""
    assert api.status("PUT", "users/plain", {"password": "p", "tags": "management"}) == 201
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    assert api.status("PUT", "permissions/%2F/plain", everything) == 201
    yield api.by("plain", "p")
    assert api.status("DELETE", "users/plain") == 204


def test_users_see_their_own_limits_and_nobody_elses(api: Api, plain: Api) -> None:
    limit = {"user": "plain", "value": {"max-connections": 9}}
    assert api.status("PUT", "user-limits/plain/max-connections", {"value": 9}) == 204

    assert plain.get("user-limits/plain") == api.get("user-limits/plain") == [limit]
    for path in ("user-limits", "user-limits/guest", "user-limits/nobody"):
        assert plain.status("GET", path) == 401
    assert api.status("GET", "user-limits/nobody") == 404


def test_the_connections_of_a_user_are_listed_and_ended(
    api: Api, plain: Api, target: HutchServer
) -> None:
    path = "connections/username/"
    with (
        Client.opened(*target.endpoint) as guest,
        Client.opened(*target.endpoint, user="plain", password="p") as first,
        Client.opened(*target.endpoint, user="plain", password="p") as second,
    ):
        assert {one["user"] for one in api.get(path + "plain")} == {"plain"}
        assert len(plain.get(path + "plain")) == len(api.get(path + "plain")) == 2
        (name,) = [one["name"] for one in api.get(path + "guest")]
        assert api.get(f"connections/{segment(name)}/channels") == []
        for method in ("GET", "DELETE"):
            assert plain.status(method, path + "guest") == 401

        assert plain.status("DELETE", path + "plain") == 204
        for client in (first, second):
            with pytest.raises(PeerGone):
                client.receive()
        assert len(api.get(path + "guest")) == 1
        assert api.status("DELETE", path + "guest") == 204
        with pytest.raises(PeerGone):
            guest.receive()
    assert api.get(path + "plain") == api.get(path + "nobody") == []
    assert api.status("DELETE", path + "nobody") == 204
    assert api.status("GET", "connections/nobody/channels") == 404


@pytest.mark.parametrize(
    ("path", "of_plain"),
    [
        ("parameters", 401),
        ("parameters/shovel", 401),
        ("parameters/shovel/%2F", 401),
        ("global-parameters", 401),
        ("topic-permissions", 401),
        ("users/guest/topic-permissions", 401),
        ("vhosts/%2F/topic-permissions", 401),
        ("operator-policies", 200),
        ("operator-policies/%2F", 200),
        ("parameters/operator_policy", 401),
        ("channels", 200),
        ("vhosts/%2F/channels", 200),
    ],
)
def test_of_what_is_not_there_the_list_is_empty(
    api: Api, plain: Api, path: str, of_plain: int
) -> None:
    assert api.get(path) == []
    assert plain.status("GET", path) == of_plain
    for absent in (path.replace("%2F", "none"), path.replace("guest", "none")):
        assert absent == path or api.status("GET", absent) == 404


def test_limits_of_virtual_hosts_are_parameters(api: Api) -> None:
    assert api.status("PUT", "vhost-limits/%2F/max-connections", {"value": 99}) == 204
    (kept,) = api.get("parameters")
    assert kept == {
        "vhost": "/",
        "component": "vhost-limits",
        "name": "limits",
        "value": {"max-connections": 99},
    }
    assert api.get("parameters/vhost-limits/%2F") == [kept]
    assert api.get("parameters/shovel") == []
    assert api.status("DELETE", "vhost-limits/%2F/max-connections") == 204


# Figures


def test_a_node_tells_what_it_has_of_everything(api: Api, target: HutchServer) -> None:
    with Client.opened(*target.endpoint):
        (node,) = api.get("nodes")

    assert 10_000_000 < node["mem_used"] < node["mem_limit"]
    assert node["disk_free"] > node["disk_free_limit"] == 0
    assert 10 < node["fd_used"] < node["fd_total"]
    assert 1 == node["sockets_used"] < node["sockets_total"]
    assert node["processors"] >= 1
    assert node["db_dir"] == str(target.data_dir)
    assert {node[name] for name in ("run_queue", "proc_used", "gc_num", "io_read_bytes")} == {0}
    assert node["mem_used_details"] == node["fd_used_details"] == {"rate": 0.0}
    assert api.get("nodes/rabbit@localhost").keys() == node.keys()


def test_sums_of_messages_are_those_of_the_open_streams(api: Api, target: HutchServer) -> None:
    def counts(shown: dict[str, object]) -> dict[str, object]:
        return {name: shown[name] for name in expected}

    with Client.opened(*target.endpoint) as client:
        client.declare(1, "three")
        client.publish(1, dict.fromkeys(range(5), b"x"))
        client.confirmed_ids(5)
    expected: dict[str, object] = {
        "messages": 5,
        "messages_ready": 5,
        "messages_unacknowledged": 0,
        "messages_details": {"rate": 0.0},
    }

    assert counts(api.get("vhosts/%2F")) == counts(api.get("vhosts")[0]) == expected
    overview = api.get("overview")
    assert counts(overview["queue_totals"]) == expected
    assert (
        overview["churn_rates"]["connection_created"] == overview["statistics_db_event_queue"] == 0
    )
    assert overview["erlang_version"] == ""


def test_an_operators_policy_stands_beside_the_other(api: Api, plain: Api) -> None:
    path = "operator-policies/%2F/most"
    policy = {"pattern": "^tw", "definition": {"max-length-bytes": 4000}, "apply-to": "all"}
    assert api.status("PUT", "policies/%2F/own", policy | {"definition": {"max-age": "1D"}}) == 201

    assert api.status("PUT", path, policy) == 201
    assert api.status("PUT", path, policy) == 204

    kept = {"vhost": "/", "name": "most", "priority": 0, **policy}
    assert api.get(path) == kept
    assert api.get("operator-policies") == api.get("operator-policies/%2F") == [kept]
    (parameter,) = api.get("parameters/operator_policy/%2F")
    assert (parameter["name"], parameter["value"]) == ("most", policy | {"priority": 0})
    exported = api.get("definitions")["parameters"]
    assert [one for one in exported if one["component"] == "operator_policy"] == [parameter]
    shown = api.get("queues/%2F/two")
    assert (shown["policy"], shown["operator_policy"]) == ("own", "most")
    assert shown["effective_policy_definition"] == {"max-age": "1D", "max-length-bytes": 4000}
    for field, wrong in (("definition", {"max-age": "1D"}), ("definition", {}), ("priority", "x")):
        assert api.status("PUT", path, policy | {field: wrong}) == 400
    assert api.status("PUT", path, {"pattern": "x"}) == 400
    assert plain.status("GET", path) == plain.status("PUT", path, policy) == 401
    assert plain.status("DELETE", path) == 401
    assert plain.status("GET", "operator-policies") == 200
    assert api.status("DELETE", path) == 204
    assert api.status("DELETE", path) == api.status("GET", path) == 404
    assert api.status("DELETE", "policies/%2F/own") == 204


def test_a_queue_names_the_policy_that_counts(api: Api) -> None:
    definition = {"max-age": "7D"}
    policy = {"pattern": "^tw", "definition": definition, "apply-to": "streams"}
    assert api.status("PUT", "policies/%2F/kept", policy) == 201

    shown = {one["name"]: one for one in api.get("queues")}
    assert shown["two"]["policy"] == "kept"
    assert shown["two"]["effective_policy_definition"] == definition
    assert (shown["one"]["policy"], shown["one"]["effective_policy_definition"]) == (None, {})
    assert api.status("DELETE", "policies/%2F/kept") == 204


def test_what_only_erlang_counts_is_0(api: Api, target: HutchServer) -> None:
    with Client.opened(*target.endpoint) as client:
        client.subscribe(1, "one", FIRST)
        (connection,) = api.get("connections")
        queue = api.get("queues/%2F/one")

    numbers = {connection[name] for name in ("recv_cnt", "send_cnt", "reductions")}
    assert numbers == {queue["memory"], queue["reductions"]} == {0}
    assert queue["readers"] == {"rabbit@localhost": 1}
    assert (queue["internal_owner"], queue["reductions_details"]) == (False, {"rate": 0.0})
