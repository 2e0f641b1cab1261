"""Every route of the API and every request of administrators, with those who may ask for it.

The lists name all of them: a route or a request that is added has to be added here as well.
"""

import re
from collections.abc import Iterator
from typing import Final

import pytest

from gateway.management.http.routes import RESOURCES
from gateway.management.requests.table import ROWS
from tests.http_client import Api
from tests.integration.conftest import managed_server
from tests.integration.server import HutchServer

PASSWORD: Final = "correct horse"
TAGS: Final = {"m": "management", "p": "policymaker", "o": "monitoring", "a": "administrator"}
"""The letters of the lists."""
OWN, FOREIGN = "own", "foreign"
"""Virtual hosts: in one each user may do everything, in the other nobody may."""
NAMES: Final = {
    "stream": "s", "exchange": "e", "user": "victim", "connection": "none", "policy": "none",
    "limit": "max-connections", "component": "none", "name": "none", "node": "rabbit@localhost",
    "within": "1", "unit": "days", "pattern": "x", "port": "1", "protocol": "none", "key": "none",
    "super_stream": "none", "password": "none", "scope": "none",
}  # fmt: skip

_BY_LETTERS: Final = {
    "mpoa": (
        "GET /api/overview",
        "GET /api/whoami",
        "GET /api/version",
        "GET /api/cluster-name",
        "GET /api/feature-flags",
        "GET /api/deprecated-features",
        "GET /api/deprecated-features/used",
        "GET /api/extensions",
        "GET /api/healthchecks/node",
        "GET /api/healthchecks/node/{node}",
        "GET /api/channels",
        "GET /api/operator-policies",
        "GET /api/operator-policies/{virtual_host}",
        "GET /api/aliveness-test/{virtual_host}",
        "GET /api/health/checks/alarms",
        "GET /api/health/checks/local-alarms",
        "GET /api/health/checks/virtual-hosts",
        "GET /api/health/checks/reached-target-cluster-size",
        "GET /api/health/checks/is-in-service",
        "GET /api/health/checks/ready-to-serve-clients",
        "GET /api/health/checks/node-is-quorum-critical",
        "GET /api/health/checks/below-node-connection-limit",
        "GET /api/health/checks/certificate-expiration/{within}/{unit}",
        "GET /api/health/checks/metadata-store/initialized",
        "GET /api/health/checks/metadata-store/initialized/with-data",
        "GET /api/health/checks/quorum-queues-without-elected-leaders/all-vhosts",
        "GET /api/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/{pattern}",
        "GET /api/health/checks/quorum-queues-without-elected-leaders/vhost/{virtual_host}",
        "GET /api/health/checks/quorum-queues-without-elected-leaders/vhost/{virtual_host}/pattern/{pattern}",  # noqa: E501
        "GET /api/health/checks/port-listener/{port}",
        "GET /api/health/checks/protocol-listener/{protocol}",
        "GET /api/vhost-limits",
        "GET /api/vhost-limits/{virtual_host}",
        "GET /api/policies",
        "GET /api/policies/{virtual_host}",
        "GET /api/policies/{virtual_host}/{policy}",
        "GET /api/connections",
        "GET /api/connections/{connection}",
        "DELETE /api/connections/{connection}",
        "GET /api/connections/{connection}/channels",
        "GET /api/vhosts",
        "GET /api/vhosts/{virtual_host}",
        "GET /api/vhosts/{virtual_host}/connections",
        "GET /api/vhosts/{virtual_host}/channels",
        "GET /api/queues",
        "GET /api/queues/detailed",
        "GET /api/queues/{virtual_host}",
        "GET /api/queues/{virtual_host}/{stream}",
        "PUT /api/queues/{virtual_host}/{stream}",
        "DELETE /api/queues/{virtual_host}/{stream}",
        "POST /api/queues/{virtual_host}/{stream}/get",
        "DELETE /api/queues/{virtual_host}/{stream}/contents",
        "GET /api/queues/{virtual_host}/{stream}/bindings",
        "GET /api/exchanges",
        "GET /api/exchanges/{virtual_host}",
        "GET /api/exchanges/{virtual_host}/{exchange}",
        "PUT /api/exchanges/{virtual_host}/{exchange}",
        "DELETE /api/exchanges/{virtual_host}/{exchange}",
        "GET /api/exchanges/{virtual_host}/{exchange}/bindings/source",
        "GET /api/exchanges/{virtual_host}/{exchange}/bindings/destination",
        "POST /api/exchanges/{virtual_host}/{exchange}/publish",
        "GET /api/bindings",
        "GET /api/bindings/{virtual_host}",
        "GET /api/bindings/{virtual_host}/e/{exchange}/q/{stream}",
        "POST /api/bindings/{virtual_host}/e/{exchange}/q/{stream}",
        "GET /api/bindings/{virtual_host}/e/{exchange}/q/{stream}/{key}",
        "DELETE /api/bindings/{virtual_host}/e/{exchange}/q/{stream}/{key}",
        "GET /api/consumers",
        "GET /api/consumers/{virtual_host}",
        "GET /api/stream/connections",
        "GET /api/stream/connections/{virtual_host}",
        "GET /api/stream/connections/{virtual_host}/{connection}",
        "DELETE /api/stream/connections/{virtual_host}/{connection}",
        "GET /api/stream/connections/{virtual_host}/{connection}/publishers",
        "GET /api/stream/connections/{virtual_host}/{connection}/consumers",
        "GET /api/stream/publishers",
        "GET /api/stream/publishers/{virtual_host}",
        "GET /api/stream/publishers/{virtual_host}/{stream}",
        "GET /api/stream/consumers",
        "GET /api/stream/consumers/{virtual_host}",
        "PUT /api/stream/super-streams/{virtual_host}/{super_stream}",
        "GET /api/stream/{virtual_host}/{stream}/tracking",
        "GET /api/x/pravega/scopes",
        "GET /api/x/pravega/scopes/{scope}/streams",
        "GET /api/x/pravega/scopes/{scope}/reader-groups",
        "GET /api/x/pravega/scopes/{scope}/tables",
    ),
    "oa": (
        "GET /api/nodes",
        "GET /api/nodes/{node}",
        "GET /api/nodes/{node}/memory",
        "GET /api/auth/attempts/{node}",
        "GET /api/auth/attempts/{node}/source",
        "GET /api/connections/username/{user}",
    ),
    "a": (
        "GET /api/topic-permissions",
        "GET /api/vhosts/{virtual_host}/topic-permissions",
        "GET /api/users/{user}/topic-permissions",
        "PUT /api/parameters/{component}/{virtual_host}/{name}",
        "DELETE /api/parameters/{component}/{virtual_host}/{name}",
        "DELETE /api/auth/attempts/{node}",
        "DELETE /api/auth/attempts/{node}/source",
        "GET /api/operator-policies/{virtual_host}/{policy}",
        "PUT /api/operator-policies/{virtual_host}/{policy}",
        "DELETE /api/operator-policies/{virtual_host}/{policy}",
        "GET /api/definitions",
        "POST /api/definitions",
        "GET /api/definitions/{virtual_host}",
        "POST /api/definitions/{virtual_host}",
        "GET /api/users",
        "POST /api/users/bulk-delete",
        "GET /api/auth/hash_password/{password}",
        "GET /api/users/without-permissions",
        "GET /api/users/{user}",
        "PUT /api/users/{user}",
        "DELETE /api/users/{user}",
        "GET /api/users/{user}/permissions",
        "GET /api/permissions",
        "GET /api/permissions/{virtual_host}/{user}",
        "PUT /api/permissions/{virtual_host}/{user}",
        "DELETE /api/permissions/{virtual_host}/{user}",
        "GET /api/vhosts/{virtual_host}/permissions",
        "PUT /api/vhost-limits/{virtual_host}/{limit}",
        "DELETE /api/vhost-limits/{virtual_host}/{limit}",
        "GET /api/user-limits",
        "GET /api/user-limits/{user}",
        "PUT /api/user-limits/{user}/{limit}",
        "DELETE /api/user-limits/{user}/{limit}",
        "DELETE /api/connections/username/{user}",
        "PUT /api/vhosts/{virtual_host}",
        "DELETE /api/vhosts/{virtual_host}",
    ),
    "pa": (
        "GET /api/parameters",
        "GET /api/parameters/{component}",
        "GET /api/parameters/{component}/{virtual_host}",
        "GET /api/parameters/{component}/{virtual_host}/{name}",
        "GET /api/global-parameters",
        "PUT /api/policies/{virtual_host}/{policy}",
        "DELETE /api/policies/{virtual_host}/{policy}",
    ),
}
ROUTES: Final = {route: letters for letters, routes in _BY_LETTERS.items() for route in routes}
"""Who is let in, where the virtual host is one that it may enter and the names are its own."""

SEEN_IN_ALL: Final = {
    "GET /api/health/checks/quorum-queues-without-elected-leaders/vhost/{virtual_host}": "mpo",
    "GET /api/health/checks/quorum-queues-without-elected-leaders/vhost/{virtual_host}/pattern/{pattern}": "mpo",  # noqa: E501
    "GET /api/vhost-limits/{virtual_host}": "o",
    "GET /api/vhosts/{virtual_host}/connections": "o",
    "GET /api/consumers/{virtual_host}": "o",
    "GET /api/stream/connections/{virtual_host}": "o",
    "GET /api/stream/publishers/{virtual_host}": "o",
    "GET /api/stream/publishers/{virtual_host}/{stream}": "o",
    "GET /api/stream/consumers/{virtual_host}": "o",
}
"""What is seen in every virtual host by others than administrators."""

REQUESTS: Final = {
    "monitoring": {
        "list_users",
        "list_permissions",
        "list_auth_attempts",
        "members",
        "list_vhosts",
        "list_connections",
        "status",
        "list_streams",
        "status_of_stream",
        "list_stages",
        "list_sinks",
        "list_publishers",
        "list_consumers",
        "list_groups",
        "list_group_consumers",
        "list_super_streams",
        "list_exchanges",
        "list_bindings",
        "list_policies",
        "list_operator_policies",
        "list_scopes",
        "list_scope_streams",
        "list_reader_groups",
    },
    "administrator": {
        "add_user",
        "put_user",
        "change_password",
        "set_user_tags",
        "delete_user",
        "delete_users",
        "set_user_limits",
        "set_permissions",
        "clear_permissions",
        "reset_auth_attempts",
        "add_vhost",
        "put_vhost",
        "delete_vhost",
        "set_vhost_limits",
        "close_connections",
        "set_alarm",
        "takeover",
        "forget_member",
        "clear_alarm",
        "drain",
        "revive",
        "stop_app",
        "start_app",
        "set_consumer_update_timeout",
        "truncate_stream",
        "restart_stream",
        "add_partitions",
        "forget_sink",
        "set_operator_policy",
        "clear_operator_policy",
        "import_definitions",
        "export_definitions",
    },
    "management": {
        "add_stream",
        "delete_stream",
        "add_super_stream",
        "delete_super_stream",
        "add_exchange",
        "delete_exchange",
        "bind",
        "unbind",
        "publish",
        "list_tracking",
    },
    "policymaker": {
        "set_policy",
        "clear_policy",
    },
}
"""By the tag that each takes."""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    with managed_server(tmp_path_factory.mktemp("matrix"), "--durability", "os") as server:
        yield server


@pytest.fixture(scope="module")
def users(target: HutchServer) -> dict[str, Api]:
    """Users by their letter; `-` has no tag, and `` is nobody."""
    root = Api(*target.management)
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    for host in (OWN, FOREIGN):
        assert root.status("PUT", f"vhosts/{host}") == 201
        assert root.status("PUT", f"queues/{host}/s", {}) == 201
        assert root.status("PUT", f"exchanges/{host}/e", {"type": "direct"}) == 201
    apis = {"": Api(root.host, root.port, None)}
    for letter, tag in {**TAGS, "-": ""}.items():
        name = f"user-{tag or 'plain'}"
        assert root.status("PUT", f"users/{name}", {"password": PASSWORD, "tags": tag}) == 201
        assert root.status("PUT", f"permissions/{OWN}/{name}", everything) == 201
        apis[letter] = root.by(name, PASSWORD)
    return apis


@pytest.fixture(autouse=True)
def restored(request: pytest.FixtureRequest, target: HutchServer) -> None:
    """Have the stream and the exchange there again that another test has deleted."""
    if "users" in request.fixturenames:
        request.getfixturevalue("users")
        root = Api(*target.management)
        for host in (OWN, FOREIGN):
            assert root.status("PUT", f"queues/{host}/s", {}) in {201, 204}
            assert root.status("PUT", f"exchanges/{host}/e", {"type": "direct"}) in {201, 204}


def filled_in(method: str, path: str, host: str) -> str:
    """Return what the client asks for; no virtual host is deleted, since others are to use it."""
    is_deletion = (method, path) == ("DELETE", "/api/vhosts/{virtual_host}")
    names = {"virtual_host": "none" if is_deletion else host, **NAMES}
    return re.sub(r"\{(\w+)\}", lambda match: names[match[1]], path.removeprefix("/api/"))


def let_in(users: dict[str, Api], method: str, path: str, host: str) -> str:
    """Return the letters of those who are not told that they may not."""
    filled = filled_in(method, path, host)
    statuses = {
        letter: api.status(method, filled, {} if method in {"PUT", "POST"} else None)
        for letter, api in users.items()
    }
    assert statuses[""] == statuses["-"] == 401, (method, path, statuses)
    assert 500 not in statuses.values(), (method, path, statuses)
    return "".join(letter for letter in TAGS if statuses[letter] != 401)


def test_the_list_names_every_route_and_method() -> None:
    routes = {
        f"{method} {resource.path}"
        for resource in RESOURCES
        for method in resource.handlers
        if method != "HEAD"
    }
    assert routes == ROUTES.keys()


@pytest.mark.parametrize("route", ROUTES)
def test_a_route_lets_in_whom_the_list_names(users: dict[str, Api], route: str) -> None:
    method, path = route.split(" ")
    assert let_in(users, method, path, OWN) == ROUTES[route]


@pytest.mark.parametrize("route", [route for route in ROUTES if "{virtual_host}" in route])
def test_a_virtual_host_of_others_is_not_there_for_those_who_may_not_enter_it(
    users: dict[str, Api], route: str
) -> None:
    method, path = route.split(" ")
    filled = filled_in(method, path, FOREIGN)
    body: object = {} if method in {"PUT", "POST"} else None
    for letter in "mpo":
        status = users[letter].status(method, filled, body)
        assert (status not in {401, 404}) is (letter in SEEN_IN_ALL.get(route, "")), (route, letter)


def test_the_list_names_every_request_of_administrators() -> None:
    found: dict[str, set[str]] = {}
    for name, row in ROWS.items():
        found.setdefault(row.role.value, set()).add(name)
    assert found == REQUESTS
