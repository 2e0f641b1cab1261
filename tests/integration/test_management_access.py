"""Who may do what, asked in three ways: over the wire, over HTTP, and as commands are judged.

One function judges all three; this shows that each way asks it the same question.
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gateway.management.administration import Actor, Role
from gateway.management.errors import AdministrationError, NotAllowed
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.client import Client
from tests.http_client import Api
from tests.integration.conftest import external_endpoint
from tests.integration.server import HutchServer
from tests.unit.gateway.management.requests.administration_rig import Rig
from tests.unit.gateway.stream.link_rig import Broker

RIGHTS = ("configure", "write", "read")
PATTERNS = ("", "^own", ".*")
PASSWORD = "correct horse"


class Doing(NamedTuple):
    """One thing to do, in each of the three ways, to a name that may be the user's or not."""

    wire: Callable[[Client, str], int]
    http: tuple[str, str, object]
    command: tuple[str, dict[str, object]]


DOINGS = {
    "create a stream": Doing(
        lambda client, name: client.code_of("create_stream", m.CreateStream(f"{name}-new", {})),
        ("PUT", "queues/%2F/{}-new", {"arguments": {"x-queue-type": "stream"}}),
        ("add_stream", {"name": "{}-new"}),
    ),
    "delete a stream": Doing(
        lambda client, name: client.code_of("delete_stream", m.DeleteStream(f"{name}-none")),
        ("DELETE", "queues/%2F/{}-none", None),
        ("delete_stream", {"name": "{}-none"}),
    ),
    "create a super stream": Doing(
        lambda client, name: client.code_of(
            "create_super_stream",
            m.CreateSuperStream(f"{name}-super", (f"{name}-super-0",), ("0",), {}),
        ),
        ("PUT", "stream/super-streams/%2F/{}-super", {"partitions": 1}),
        ("add_super_stream", {"name": "{}-super", "partitions": 1}),
    ),
}


def users() -> list[tuple[str, dict[str, str]]]:
    return [
        (f"u{number}", dict(zip(RIGHTS, patterns, strict=True)))
        for number, patterns in enumerate(itertools.product(PATTERNS, repeat=3))
    ]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    if external_endpoint() is not None:
        pytest.skip("needs a server with a management API")
    data = tmp_path_factory.mktemp("access") / "data"
    with HutchServer(data, "--durability", "os") as server:
        api = Api(*server.management)
        for name, patterns in users():
            body = {"password": PASSWORD, "tags": "management"}
            assert api.status("PUT", f"users/{name}", body) == 201
            assert api.status("PUT", f"permissions/%2F/{name}", patterns) == 201
        yield server


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    yield broker
    broker.close()


def clean(api: Api, name: str) -> None:
    for path in ("queues/%2F/{}-new", "queues/%2F/{}-super-0", "exchanges/%2F/{}-super"):
        api.status("DELETE", path.format(name))


def allowed_as_command(rig: Rig, doing: Doing, user: str, name: str) -> bool:
    request, template = doing.command
    arguments = {
        key: value.format(name) if isinstance(value, str) else value
        for key, value in template.items()
    }
    actor = Actor(user, frozenset({Role.MANAGEMENT}), frozenset({"/"}))
    try:
        rig.ask(request, arguments, actor=actor)
    except NotAllowed:
        return False
    except AdministrationError:
        return True  # it was let in, and failed for another reason
    return True


@pytest.mark.parametrize("what", DOINGS)
def test_wire_http_and_commands_agree(what: str, target: HutchServer, broker: Broker) -> None:
    doing, root, rig = DOINGS[what], Api(*target.management), Rig(broker)
    seen: dict[bool, int] = {True: 0, False: 0}
    for user, patterns in users():
        place = {"user": user, "virtual_host": "/"}
        rig.ask("add_user", {"name": user, "password_hash": "", "tags": ["management"]})
        rig.ask("set_permissions", place | patterns)
        with Client.opened(*target.endpoint, user=user, password=PASSWORD) as client:
            for name in (f"own-{user}", f"foreign-{user}"):
                over_wire = doing.wire(client, name) != ResponseCode.ACCESS_REFUSED
                clean(root, name)
                method, path, body = doing.http
                status = root.by(user, PASSWORD).status(method, path.format(name), body)
                clean(root, name)
                case = (user, patterns, name)
                assert (status != 401) is over_wire, (case, status)
                assert allowed_as_command(rig, doing, user, name) is over_wire, case
                seen[over_wire] += 1
    assert min(seen.values()) > 0, seen


@pytest.mark.parametrize("tag", ["", "management", "policymaker", "monitoring", "administrator"])
def test_tags_open_what_rabbitmq_says(tag: str, target: HutchServer) -> None:
    root = Api(*target.management)
    name = f"tag-{tag or 'none'}"
    assert root.status("PUT", f"users/{name}", {"password": PASSWORD, "tags": tag}) == 201
    mine = root.by(name, PASSWORD)
    is_admin, is_monitor = tag == "administrator", tag in {"monitoring", "administrator"}
    for path, may in (
        ("whoami", bool(tag)),
        ("overview", bool(tag)),
        ("nodes", is_monitor),
        ("users", is_admin),
        ("permissions", is_admin),
        ("definitions", is_admin),
        ("queues", bool(tag)),
    ):
        assert mine.status("GET", path) == (200 if may else 401), path
    assert mine.status("GET", "queues/%2F") == (200 if is_admin else 404 if tag else 401)
    assert mine.status("PUT", f"vhosts/{name}") == (201 if is_admin else 401)
    policy = {"pattern": "^x", "definition": {"max-age": "1h"}}
    assert mine.status("PUT", "policies/%2F/p", policy) in ({201, 204} if is_admin else {401, 404})
    assert mine.status("DELETE", f"users/{name}") == (204 if is_admin else 401)
    root.status("DELETE", f"users/{name}")


def test_who_may_write_to_an_exchange_publishes_over_http_to_whatever_it_leads_to(
    target: HutchServer,
) -> None:
    root = Api(*target.management)
    assert root.status("PUT", "users/posts", {"password": PASSWORD, "tags": "management"}) == 201
    mine = root.by("posts", PASSWORD)
    assert root.status("PUT", "queues/%2F/letters", {}) == 201
    message = {
        "routing_key": "letters", "payload": "x", "payload_encoding": "string", "properties": {}
    }  # fmt: skip
    for write, may in (("^amq[.]default$", True), ("^(|letters)$", False), ("", False)):
        patterns = {"configure": "", "write": write, "read": ""}
        assert root.status("PUT", "permissions/%2F/posts", patterns) in {201, 204}
        answer = mine.ask("POST", "exchanges/%2F/amq.default/publish", message)
        assert answer.status == (200 if may else 401), write
    for path in ("users/posts", "queues/%2F/letters"):
        assert root.status("DELETE", path) == 204


def test_a_monitor_sees_all_connections_and_others_their_own(target: HutchServer) -> None:
    root = Api(*target.management)
    for name, tag in (("sees-own", "management"), ("sees-all", "monitoring")):
        assert root.status("PUT", f"users/{name}", {"password": PASSWORD, "tags": tag}) == 201
        everything = dict.fromkeys(RIGHTS, ".*")
        assert root.status("PUT", f"permissions/%2F/{name}", everything) == 201
    with (
        Client.opened(*target.endpoint) as guest,
        Client.opened(*target.endpoint, user="sees-own", password=PASSWORD),
    ):
        own, every = root.by("sees-own", PASSWORD), root.by("sees-all", PASSWORD)
        assert {one["user"] for one in own.get("connections")} == {"sees-own"}
        assert {one["user"] for one in every.get("connections")} == {"guest", "sees-own"}
        host, port = guest.socket.getsockname()
        name = f"{host}%3A{port}%20-%3E%20{target.host}%3A{target.port}"
        assert own.status("GET", f"connections/{name}") == 401
        assert own.status("DELETE", f"connections/{name}") == 401
        assert every.status("DELETE", f"connections/{name}") == 401
        assert every.status("GET", f"connections/{name}") == 200
        assert root.status("DELETE", f"connections/{name}") == 204
