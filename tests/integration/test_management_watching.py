"""Which lists have pages, what monitoring sees, and what a stranger to a virtual host learns."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from gateway.broker.access.passwords import Algorithm, PasswordHash
from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.http_client import Api
from tests.integration.administrator import ctl
from tests.integration.conftest import managed_server
from tests.integration.server import HutchServer


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    with managed_server(tmp_path_factory.mktemp("watching"), "--durability", "os") as server:
        api = Api(*server.management)
        for tag in ("monitoring", "management"):
            assert api.status("PUT", f"users/{tag}", {"password": "p", "tags": tag}) == 201
        assert api.status("PUT", "queues/%2F/one", {}) == 201
        assert api.status("PUT", "vhosts/hidden", {}) == 201
        assert api.status("PUT", "vhost-limits/%2F/max-queues", {"value": 99}) == 204
        yield server


@pytest.fixture
def api(target: HutchServer) -> Api:
    return Api(*target.management)


@pytest.mark.parametrize(
    "path",
    [
        *("bindings", "bindings/%2F", "queues/%2F/one/bindings", "bindings/%2F/e/amq.topic/q/one"),
        *(
            "exchanges/%2F/amq.topic/bindings/source",
            "exchanges/%2F/amq.topic/bindings/destination",
        ),
        *("permissions", "users/guest/permissions", "vhosts/%2F/permissions"),
        *("policies", "policies/%2F", "parameters", "global-parameters", "operator-policies"),
        *("vhost-limits", "vhost-limits/%2F", "user-limits", "user-limits/guest", "nodes"),
        *("consumers", "consumers/%2F", "stream/consumers", "stream/publishers"),
        *("topic-permissions", "feature-flags"),
    ],
)
def test_lists_without_pages_are_whole_whatever_page_is_asked(api: Api, path: str) -> None:
    names = ("page=1&page_size=1", "page=99", "name=nothing", "page=1&name=[&use_regex=true")
    whole = [set(each) for each in api.get(path)]
    assert isinstance(api.get(path), list)
    for query in names:
        found = api.get(f"{path}?{query}")
        assert isinstance(found, list), query
        assert [set(each) for each in found] == whole


@pytest.mark.parametrize("path", ["queues", "exchanges", "users", "vhosts", "connections"])
def test_lists_with_pages_have_them(api: Api, path: str) -> None:
    assert api.get(f"{path}?page=1")["page"] == 1


def test_monitoring_sees_every_virtual_host_and_its_limits(api: Api) -> None:
    watching, managing = api.by("monitoring", "p"), api.by("management", "p")
    assert watching.get("vhosts") == api.get("vhosts")
    assert managing.get("vhosts") == []
    limit = {"vhost": "/", "value": {"max-queues": 99}}
    assert watching.get("vhost-limits") == watching.get("vhost-limits/%2F") == [limit]
    assert watching.get("vhost-limits/hidden") == managing.get("vhost-limits") == []
    for path in ("stream/publishers/%2F/one", "stream/publishers/%2F", "stream/consumers/%2F"):
        assert watching.get(path) == []
        assert managing.status("GET", path) == 404
    assert managing.status("GET", "vhost-limits/%2F") == 404
    for path in ("vhost-limits/none", "stream/publishers/%2F/none", "stream/publishers/none/one"):
        assert watching.status("GET", path) == 404
    for path in ("queues/%2F", "queues/%2F/one", "exchanges/%2F", "policies/%2F"):
        assert watching.status("GET", path) == 404, "what is in one takes a permission"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "exchanges/{}/amq.foo", {"type": "direct"}),
        ("PUT", "exchanges/{}/amq.direct", {"type": "direct"}),
        ("PUT", "exchanges/{}/foo", {"type": 5}),
        ("DELETE", "exchanges/{}/amq.direct", None),
        ("PUT", "queues/{}/amq.foo", {}),
        ("PUT", "queues/{}/foo", {"durable": False}),
        ("DELETE", "queues/{}/foo", None),
        ("POST", "bindings/{}/e/amq.default/q/foo", {}),
        ("POST", "bindings/{}/e/foo/q/foo", {"routing_key": 5}),
        ("PUT", "stream/super-streams/{}/foo", {}),
        ("POST", "exchanges/{}/foo/publish", {}),
        ("GET", "vhosts/{}", None),
        ("GET", "stream/{}/foo/tracking", None),
    ],
)
def test_a_hidden_virtual_host_is_like_none(api: Api, method: str, path: str, body: object) -> None:
    for user in ("management", "monitoring"):
        who = api.by(user, "p")
        hidden = who.ask(method, path.format("hidden"), body)
        none = who.ask(method, path.format("none"), body)
        assert (hidden.status, hidden.body) == (none.status, none.body)
        assert hidden.status == 404


MEMORY: Final = "nodes/rabbit@localhost/memory"


def test_a_node_tells_the_memory_that_it_takes(api: Api) -> None:
    memory = api.get(MEMORY)["memory"]
    parts = [size for size in memory.values() if isinstance(size, int)]
    assert sum(parts) == memory["total"][memory["strategy"]] > 1_000_000


def test_the_oldest_check_of_a_node_tells_of_alarms(target: HutchServer, api: Api) -> None:
    paths = ("healthchecks/node", "healthchecks/node/rabbit@localhost")
    assert [api.get(path) for path in paths] == [{"status": "ok"}] * 2
    ctl(target, "set_alarm", "memory")
    try:
        reason = "resource alarm(s) in effect:[{resource_limit,memory,rabbit@localhost}]"
        for path in paths:
            answer = api.ask("GET", path)
            assert (answer.status, answer.json["reason"]) == (503, reason)
    finally:
        ctl(target, "clear_alarm", "memory")
    assert api.status("GET", "healthchecks/node/none") == api.status("GET", "nodes/none/memory")


def test_detailed_queues_have_their_consumers(target: HutchServer, api: Api) -> None:
    with Client.opened(target.host, target.port) as client:
        client.subscribe(0, "one", FIRST)
        for path in ("queues/detailed", "queues", "queues/%2F", "queues/detailed?sort=consumers"):
            (queue,) = api.get(path)
            assert (queue["name"], queue["consumers"]) == ("one", 1), path
            assert queue["readers"] == {"rabbit@localhost": 1}
    assert api.get("queues/detailed?page=1")["items"][0]["name"] == "one"


@pytest.mark.parametrize("path", ["extensions", "deprecated-features", "deprecated-features/used"])
def test_lists_of_what_only_rabbitmq_has_are_empty(api: Api, path: str) -> None:
    assert api.by("management", "p").get(path) == []


def test_a_password_is_hashed_for_administrators(api: Api) -> None:
    hashed = api.get("auth/hash_password/p%2Fw%C3%A9")["ok"]
    assert PasswordHash.parse(hashed, Algorithm.SHA256).matches("p/wé".encode())
    raw = api.get("auth/hash_password/%FF%0A")["ok"]
    assert PasswordHash.parse(raw).matches(b"\xff\n")
    for user in ("monitoring", "management"):
        assert api.by(user, "p").status("GET", "auth/hash_password/x") == 401
        expected = 200 if user == "monitoring" else 401
        assert api.by(user, "p").status("GET", MEMORY) == expected


def test_no_line_of_the_log_has_the_password_of_a_path(tmp_path: Path) -> None:
    with managed_server(tmp_path, "--durability", "os", "--log-level", "debug") as server:
        api = Api(*server.management)
        secret = "auth/hash_password/hidden%20word"
        assert api.status("GET", secret) == 200
        assert api.by("guest", "wrong").status("GET", secret) == 401
        assert api.status("DELETE", secret) == 405
        assert api.status("GET", f"{secret}/more") == 404
        assert api.status("GET", f"{secret}?x=%zz") == 400
    assert "hidden" not in server.logs
