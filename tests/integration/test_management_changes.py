"""What the management API changes it changes as a whole, and what it refuses changes nothing."""

import json
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.http_client import Api, basic
from tests.integration.conftest import managed_server
from tests.integration.server import HutchServer
from tests.waiting import HANG_S

ROUNDS = 10


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    with managed_server(tmp_path_factory.mktemp("changes"), "--durability", "os") as server:
        yield server


@pytest.fixture
def api(target: HutchServer) -> Api:
    return Api(*target.management)


def at_once(*changes: tuple[Api, str, object]) -> set[int]:
    """Send PUT requests from as many threads; return what they were answered."""
    ready = threading.Barrier(len(changes))
    answered: list[int] = []

    def change(api: Api, path: str, body: object) -> None:
        ready.wait()
        answered.append(api.status("PUT", path, body))

    threads = [threading.Thread(target=change, args=each) for each in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answered) == len(changes)
    return set(answered)


# Users


@pytest.mark.parametrize(
    "wrong",
    [
        {"tags": ["\ud800"]},
        {"tags": ["t" * 70_000]},
        {"tags": ["t" * 256]},
        {"tags": ["t"] * 33},
        {"tags": ",".join(f"t{number}" for number in range(33))},
        {"tags": "", "limits": {"no-such": 1}},
        {"tags": "", "limits": {"max-connections": "many"}},
        {"tags": "", "limits": 5},
        {"tags": "", "password_hash": ""},
    ],
)
def test_a_refused_change_of_a_user_changes_nothing(api: Api, wrong: dict[str, object]) -> None:
    assert api.status("PUT", "users/kept", {"password": "old", "tags": "management"}) in {201, 204}
    before = api.get("users/kept")
    assert api.status("PUT", "users/kept", {"password": "new", **wrong}) == 400
    assert api.get("users/kept") == before
    assert api.by("kept", "old").status("GET", "whoami") == 200
    assert api.status("PUT", "users/never", {"password": "new", **wrong}) == 400
    assert api.status("GET", "users/never") == 404


def test_a_hash_is_text_and_stands_alone(api: Api) -> None:
    for wrong in ({"password_hash": None}, {"password_hash": 5}, {"password": None}):
        assert api.status("PUT", "users/hashless", {**wrong, "tags": ""}) == 400, wrong
    answer = api.ask("PUT", "users/hashless", {"password": "p", "password_hash": "", "tags": ""})
    assert answer.json["reason"] == "both_password_and_password_hash_are_provided"
    assert api.status("GET", "users/hashless") == 404


def test_limits_that_come_with_a_user_are_added_to_those_it_has(api: Api) -> None:
    user = {"password": "p", "tags": "management"}
    assert api.status("PUT", "users/limited", {**user, "limits": {"max-connections": 0}}) == 201
    assert api.get("users/limited")["limits"] == {"max-connections": 0}
    assert api.status("PUT", "users/limited", {**user, "limits": {"max-channels": 3}}) == 204
    assert api.status("PUT", "users/limited", user) == 204
    assert api.get("users/limited")["limits"] == {"max-connections": 0, "max-channels": 3}


def test_two_limits_of_a_user_set_at_once_are_both_there(api: Api) -> None:
    assert api.status("PUT", "users/twice", {"password": "p", "tags": ""}) == 201
    kinds = ("max-connections", "max-channels")
    for value in range(ROUNDS):
        both = [(api, f"user-limits/twice/{kind}", {"value": value}) for kind in kinds]
        assert at_once(*both) == {204}
        assert api.get("users/twice")["limits"] == dict.fromkeys(kinds, value)
        for kind in kinds:
            assert api.status("DELETE", f"user-limits/twice/{kind}") == 204
        assert api.get("users/twice")["limits"] == {}
    assert api.status("PUT", "user-limits/twice/no-such", {"value": 1}) == 400
    assert api.status("PUT", "user-limits/nobody/max-channels", {"value": 1}) == 404


def test_a_users_limit_and_password_changed_at_once_are_both_there(api: Api) -> None:
    for number in range(ROUNDS):
        user = {"password": f"p{number}", "tags": "management"}
        limit = {"value": number}
        assert api.status("PUT", "users/both", {"password": "old", "tags": ""}) in {201, 204}
        answered = at_once(
            (api, "users/both", user), (api, "user-limits/both/max-connections", limit)
        )
        assert answered == {204}
        assert api.get("users/both")["limits"] == {"max-connections": number}
        assert api.by("both", f"p{number}").status("GET", "whoami") == 200


# Virtual hosts


def test_two_limits_of_a_virtual_host_set_at_once_are_both_there(api: Api) -> None:
    assert api.status("PUT", "vhosts/twice", {}) == 201
    kinds = ("max-connections", "max-queues")
    for value in range(ROUNDS):
        both = [(api, f"vhost-limits/twice/{kind}", {"value": value}) for kind in kinds]
        assert at_once(*both) == {204}
        assert api.get("vhost-limits/twice") == [
            {"vhost": "twice", "value": dict.fromkeys(kinds, value)}
        ]
        for kind in kinds:
            assert api.status("DELETE", f"vhost-limits/twice/{kind}") == 204
        assert api.get("vhost-limits/twice") == []
    assert api.status("PUT", "vhost-limits/twice/no-such", {"value": 1}) == 400


def test_a_virtual_host_put_again_is_as_it_was_put_last(api: Api) -> None:
    def told() -> list[object]:
        host = api.get("vhosts/again")
        return [host[name] for name in ("description", "tags", "default_queue_type")]

    assert api.status("PUT", "vhosts/again", {"description": "a", "tags": "x"}) == 201
    assert told() == ["a", ["x"], "stream"]
    other = {"description": "b", "tags": "y, z", "default_queue_type": "quorum"}
    assert api.status("PUT", "vhosts/again", other) == 204
    assert told() == ["b", ["y", "z"], "quorum"]
    for wrong in (
        {"default_queue_type": "no-such"},
        {"tracing": "foo"},
        {"tags": ["\ud800"]},
        {"description": "\ud800"},
    ):
        assert api.status("PUT", "vhosts/again", {"description": "c", **wrong}) == 400, wrong
    assert told() == ["b", ["y", "z"], "quorum"]
    assert api.status("PUT", "vhosts/again", {}) == 204
    assert told() == ["", [], "stream"]
    assert api.get("permissions/again/guest")["configure"] == ".*"


# Passwords


def test_a_password_is_kept_as_every_other_way_keeps_it(api: Api) -> None:
    assert api.status("PUT", "users/kept-well", {"password": "p", "tags": "management"}) == 201
    shown = api.get("users/kept-well")
    assert shown["hashing_algorithm"] == "hutch_password_hashing_argon2id"
    assert shown["password_hash"].startswith("$argon2id$")
    assert api.by("kept-well", "p").status("GET", "whoami") == 200
    assert api.by("kept-well", "q").status("GET", "whoami") == 401
    costly = shown["password_hash"].replace("m=19456,t=2,p=1", "m=262144,t=16,p=1")
    for wrong in ({"password_hash": costly}, {"password": "\ud800"}):
        assert api.status("PUT", "users/costly", {"tags": "", **wrong}) == 400
    api.status("DELETE", "users/kept-well")


# A body takes its time


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (None, 201),
        (("PUT", {"tags": "management", "password": "pass"}), 401),
        (("PUT", {"tags": "administrator", "password": "another"}), 401),
        (("DELETE", None), 401),
    ],
)
def test_a_request_is_judged_by_what_its_user_may_when_its_body_has_come(
    api: Api, change: tuple[str, object] | None, status: int
) -> None:
    assert api.status("PUT", "users/slow", {"tags": "administrator", "password": "pass"}) == 201
    body = json.dumps({"tags": "administrator", "password": "mine"}).encode()
    head = (
        f"PUT /api/users/accomplice HTTP/1.1\r\nHost: {api.host}\r\nConnection: close\r\n"
        f"Authorization: {basic('slow', 'pass')}\r\nExpect: 100-continue\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((api.host, api.port), timeout=HANG_S) as connection:
        connection.sendall(head.encode())
        assert connection.recv(1024).startswith(b"HTTP/1.1 100"), "its user is known by now"
        if change is not None:
            method, said = change
            assert api.status(method, "users/slow", said) == 204
        connection.sendall(body)
        assert connection.recv(65_536).startswith(f"HTTP/1.1 {status} ".encode())
    assert api.status("GET", "users/accomplice") == (200 if status == 201 else 404)
    api.status("DELETE", "users/accomplice")
    api.status("DELETE", "users/slow")
