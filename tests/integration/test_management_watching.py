"""Which lists have pages, what monitoring sees, and what a stranger to a virtual host learns."""

from collections.abc import Iterator

import pytest

from tests.http_client import Api
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
