"""What the management API will not guess: conditions, queries, lines and values."""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.http_client import Api, basic
from tests.integration.conftest import managed_server
from tests.integration.server import HutchServer

AUTHORIZED: Final = f"Host: localhost\r\nAuthorization: {basic('guest', 'guest')}\r\n".encode()
MANY: Final = "&".join(f"a{number}=1" for number in range(32))


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    with managed_server(tmp_path_factory.mktemp("strict"), "--durability", "os") as server:
        yield server


@pytest.fixture
def api(target: HutchServer) -> Api:
    return Api(*target.management)


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


# Conditions

OBJECTS: Final[tuple[tuple[str, dict[str, object]], ...]] = (
    ("queues/%2F/there", {}),
    ("exchanges/%2F/there", {"type": "direct"}),
    ("users/there", {"password": "p", "tags": ""}),
    ("vhosts/there", {}),
    ("policies/%2F/there", {"pattern": "^$", "definition": {"max-age": "1h"}}),
)


@pytest.mark.parametrize(("path", "body"), OBJECTS)
def test_what_is_there_is_changed_only_if_the_conditions_hold(
    api: Api, path: str, body: dict[str, object]
) -> None:
    assert api.ask("PUT", path, body, {"If-Match": "*"}).status == 412, "it is not there"
    assert api.status("GET", path) == 404
    assert api.ask("PUT", path, body, {"If-None-Match": "*"}).status == 201
    before = api.get(path)
    for condition in ({"If-Match": '"x"'}, {"If-None-Match": "*"}, {"If-None-Match": '"x"'}):
        for method, sent in (("PUT", body), ("DELETE", None)):
            answer = api.ask(method, path, sent, condition)
            assert (answer.status, answer.body) == (412, b""), (method, condition)
    assert api.get(path) == before
    assert api.ask("PUT", path, body, {"If-Match": "*"}).status == 204
    assert api.ask("DELETE", path, headers={"If-Match": "*"}).status == 204
    assert api.ask("DELETE", path, headers={"If-Match": "*"}).status == 412
    assert api.ask("DELETE", path, headers={"If-None-Match": "*"}).status == 404


def test_conditions_are_judged_after_who_asks(api: Api) -> None:
    condition = {"If-None-Match": "*"}
    assert api.by("guest", "wrong").ask("PUT", "queues/%2F/x", {}, condition).status == 401
    assert api.status("PUT", "users/curious", {"password": "p", "tags": "management"}) == 201
    curious = api.by("curious", "p")
    for path in ("users/guest", "users/nobody"):
        assert curious.ask("PUT", path, {}, condition).status == 401
    for path in ("queues/%2F/x", "queues/none/x"):
        assert curious.ask("PUT", path, {}, condition).status == 404
    assert api.status("DELETE", "users/curious") == 204


def test_a_post_is_not_done_if_there_shall_be_nothing(api: Api) -> None:
    before = api.get("definitions")
    body = {"users": [{"name": "posted", "password_hash": "", "tags": ""}]}
    for condition in ({"If-None-Match": "*"}, {"If-Match": '"x"'}):
        assert api.ask("POST", "definitions", body, condition).status == 412
    assert api.get("definitions") == before


# Queries


@pytest.mark.parametrize("more", [MANY, "x=%zz", "x=%", "x=%4"])
def test_a_query_that_is_not_read_is_refused_with_all_of_it(api: Api, more: str) -> None:
    assert api.status("PUT", "queues/%2F/held", {}) == 201
    message = {
        "properties": {},
        "routing_key": "held",
        "payload": "x",
        "payload_encoding": "string",
    }
    assert api.status("POST", "exchanges/%2F/amq.default/publish", message) == 200
    answer = api.ask("DELETE", f"queues/%2F/held?if-empty=true&{more}")
    assert answer.status == 400
    assert "query" in answer.json["reason"]
    assert api.status("GET", "queues/%2F/held") == 200
    assert api.status("DELETE", "queues/%2F/held?x=%41&" + "&".join(["y=1"] * 31)) == 204


def test_a_query_that_is_no_ascii_is_refused(api: Api) -> None:
    request = b"GET /api/queues?columns=name&x=\xff HTTP/1.1\r\n" + AUTHORIZED + b"\r\n"
    assert status_of(api.raw(request)) == 400


# Lines


@pytest.mark.parametrize(
    "header",
    [
        AUTHORIZED.splitlines(keepends=True)[1],
        b"If-Match: *\r\nIf-Match: *\r\n",
        b"X: y\r\n z\r\n",
        b"X: y\r\n\tz\r\n",
        b"X: y\n",
        b"X: y\n z\r\n",
    ],
)
def test_headers_that_can_be_read_in_two_ways_are_refused(api: Api, header: bytes) -> None:
    end = b"Connection: close\r\n\r\n"
    request = b"GET /api/whoami HTTP/1.1\r\n" + AUTHORIZED
    assert status_of(api.raw(request + end)) == 200
    assert status_of(api.raw(request + header + end)) == 400


@pytest.mark.parametrize(
    "length",
    [
        b"Content-Length: 2, 2\r\n",
        b"Content-Length: 2\r\nContent-Length: 2\r\n",
        b"Content-Length: 2,\r\n",
        b"content-length:2 , 2\r\n",
    ],
)
def test_a_length_that_is_said_twice_is_refused(api: Api, length: bytes) -> None:
    request = b"PUT /api/queues/%2F/twice HTTP/1.1\r\n" + AUTHORIZED
    end = b"Connection: close\r\n\r\n{}"
    assert status_of(api.raw(request + length + end)) == 400
    assert api.status("GET", "queues/%2F/twice") == 404
    assert status_of(api.raw(request + b"Content-Length: 2\r\n" + end)) == 201
    assert api.status("DELETE", "queues/%2F/twice") == 204


def test_chunks_are_for_http_1_1(api: Api) -> None:
    request = b"PUT /api/queues/%2F/old HTTP/1.0\r\n" + AUTHORIZED
    chunked = request + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    assert status_of(api.raw(chunked)) == 400
    assert api.status("GET", "queues/%2F/old") == 404
    assert status_of(api.raw(request + b"Content-Length: 2\r\n\r\n{}")) == 201
    assert api.status("DELETE", "queues/%2F/old") == 204


def test_an_end_of_a_line_before_a_request_is_passed_over(api: Api) -> None:
    request = b"GET /api/whoami HTTP/1.1\r\n" + AUTHORIZED
    last = request + b"Connection: close\r\n\r\n"
    assert status_of(api.raw(b"\r\n" + last)) == 200
    assert status_of(api.raw(b"\n" + last)) == 400
    assert status_of(api.raw(last.replace(b"\r\n", b"\n"))) == 400
    both = api.raw(request + b"\r\n" + last)
    assert both.count(b"HTTP/1.1 200 OK") == 2


@pytest.mark.parametrize("size", [b"a00001", b"fffffffffffffffff", b"f" * 24])
def test_a_chunk_that_is_too_large_is_refused_at_once(api: Api, size: bytes) -> None:
    request = b"PUT /api/queues/%2F/chunked HTTP/1.1\r\n" + AUTHORIZED
    request += b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    answer = api.raw(request + size + b"\r\n{}")
    assert status_of(answer) == 400
    assert status_of(api.raw(request + b"2\r\n{}\r\n0\r\n\r\n")) == 201
    assert api.status("DELETE", "queues/%2F/chunked") == 204


# Values


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"null", "null_not_allowed"),
        (b'[1, {"c": null}]', "null_not_allowed"),
        (b'"\\ud800"', "not_json"),
        (b'["\\uDC00"]', "not_json"),
        (b'{"\\ud800": 1}', "not_json"),
        (b"1e400", "not_json"),
    ],
)
def test_arguments_hold_what_every_protocol_has(api: Api, value: bytes, reason: str) -> None:
    assert api.status("PUT", "queues/%2F/bound", {}) in {201, 204}
    arguments = b'"arguments": {"a": ' + value + b"}}"
    for method, path, begin in (
        ("PUT", "exchanges/%2F/odd", b'{"type": "direct", '),
        ("POST", "bindings/%2F/e/amq.direct/q/bound", b'{"routing_key": "k", '),
    ):
        answer = api.ask(method, path, begin + arguments)
        assert (answer.status, answer.json["reason"]) == (400, reason)
    assert api.status("GET", "exchanges/%2F/odd") == 404
    assert api.get("bindings/%2F/e/amq.direct/q/bound") == []
    whole = b'{"type": "direct", "arguments": {"a": ["\\ud83d\\ude00", 1e3, true, [], {}]}}'
    assert api.ask("PUT", "exchanges/%2F/odd", whole).status == 201
    assert api.status("DELETE", "exchanges/%2F/odd") == 204


def test_a_pattern_that_is_too_long_is_told_so(api: Api) -> None:
    policy = {"pattern": "", "definition": {"max-age": "1h"}}
    for size in (1_025, 60_000):
        long = {**policy, "pattern": "^" + "a" * (size - 1)}
        answer = api.ask("PUT", "policies/%2F/long", long)
        assert answer.status == 400
        assert "must not exceed 1024 bytes" in answer.json["reason"]
    answer = api.ask("PUT", "policies/%2F/long", {**policy, "pattern": "^" + "a" * 1_023})
    assert answer.status == 201
    assert api.status("DELETE", "policies/%2F/long") == 204
    answer = api.ask("PUT", "policies/%2F/long", {**policy, "pattern": "a" * 70_000})
    assert (answer.status, "not text" in answer.json["reason"]) == (400, False)
