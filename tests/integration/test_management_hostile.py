"""Strangers and users at the management API: bounded, read in one way, shown safely."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import pytest

from compat.bench.usage import cpu_seconds
from tests.client import Client
from tests.http_client import Api, basic, segment
from tests.integration.conftest import managed_server
from tests.integration.server import HutchServer
from tests.waiting import HANG_S

SOONER_S: Final = 8.0
"""Below the time that the server gives a request, 10 s."""
HEADER_BYTES_MAX: Final = 16 * 1024
CONNECTIONS_MAX: Final = 128
GUEST: Final = basic("guest", "guest")
HOST: Final = b"Host: localhost\r\n"
AUTHORIZED: Final = HOST + f"Authorization: {GUEST}\r\n".encode()
STREAM: Final = {"arguments": {"x-queue-type": "stream"}}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    with managed_server(tmp_path_factory.mktemp("hostile"), "--durability", "os") as server:
        yield server


@pytest.fixture
def api(target: HutchServer) -> Api:
    return Api(*target.management)


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


# Who asks


def test_nobody_is_challenged_and_told_nothing(api: Api) -> None:
    nobody = Api(api.host, api.port, None)
    answer = nobody.ask("GET", "queues")
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == 'Basic realm="RabbitMQ Management"'
    assert answer.json == {"error": "not_authorized", "reason": "Not_Authorized"}
    wrong, unknown = api.by("guest", "wrong").ask("GET", "queues"), api.by("x", "y").ask("GET", "x")
    assert wrong.status == 401
    assert unknown.status == 404, "there is no such path, whoever asks"
    assert wrong.json == answer.json


@pytest.mark.parametrize(
    "header",
    [
        "Basic",
        "Basic ",
        "Basic !!!!",
        "Basic Z3Vlc3Q=",  # no colon
        "Basic " + "A" * 6000,
        "Bearer Z3Vlc3Q6Z3Vlc3Q=",
        "Basic AGd1ZXN0AGd1ZXN0Og==",  # NUL
        "Basic gICAOoCAgA==",  # no UTF-8
        "Digest username=guest",
    ],
)
def test_credentials_that_are_none_are_refused(api: Api, header: str) -> None:
    nobody = Api(api.host, api.port, None)
    assert nobody.ask("GET", "whoami", headers={"Authorization": header}).status == 401


def test_a_page_of_another_site_is_refused_and_no_site_is_invited(api: Api) -> None:
    elsewhere = api.ask("POST", "definitions", {}, {"Origin": "http://evil.example"})
    assert elsewhere.status == 403
    null = api.ask("DELETE", "queues/%2F/x", headers={"Origin": "null"})
    assert null.status == 403
    for no_address in ("http://[", "http://[::1", "//", "http://a]b"):
        assert api.ask("GET", "whoami", headers={"Origin": no_address}).status == 403, no_address
    here = api.ask("GET", "whoami", headers={"Origin": f"http://{api.host}:{api.port}"})
    assert here.status == 200
    for answer in (elsewhere, here, api.ask("OPTIONS", "queues")):
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]


# Paths and methods


@pytest.mark.parametrize(
    "path",
    [
        b"/api/../etc/passwd",
        b"/api/queues/..%2f..",
        b"/api/./queues",
        b"//api/queues",
        b"/api//queues",
        b"/api/queues//x",
        b"/api/queues/%2",
        b"/api/queues/%zz",
        b"/api\\queues",
        b"/API/queues",
        b"/api/queues;x=1",
        b"/api/queues%00",
        b"/api%2fqueues",
        b"http://elsewhere/api/queues",
        b"*",
        b"/api",
        b"/api/" + b"x/" * 500,
        b"/api/queues?" + b"a=1&" * 1500,
    ],
)
def test_a_path_that_is_not_exactly_one_of_ours_finds_nothing(api: Api, path: bytes) -> None:
    request = b"GET " + path + b" HTTP/1.1\r\n" + AUTHORIZED + b"Connection: close\r\n\r\n"
    answer = api.raw(request)
    assert status_of(answer) in {400, 404, 414}, answer[:200]
    body = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert set(body) == {"error", "reason"}


def test_a_slash_in_a_name_is_no_border(api: Api) -> None:
    assert api.status("PUT", "queues/%2F/a%2Fb", STREAM) == 201
    assert api.get("queues/%2F/a%2Fb")["name"] == "a/b"
    assert api.status("GET", "queues/%2F/a/b") == 404
    assert api.status("GET", "queues/%2F/a%252Fb") == 404
    assert api.status("PUT", "queues/%2F/%252F", STREAM) == 201
    assert api.get("queues/%2F/%252F")["name"] == "%2F"
    assert api.status("DELETE", "queues/%2F/a%2Fb") == 204


@pytest.mark.parametrize("method", ["PATCH", "POST", "TRACE", "CONNECT", "PROPFIND", "get", "PUT "])
def test_a_method_is_what_it_says_and_no_header_changes_it(api: Api, method: str) -> None:
    assert api.status("PUT", "queues/%2F/kept", STREAM) in {201, 204}
    override = (
        b"X-HTTP-Method-Override: DELETE\r\nX-HTTP-Method: DELETE\r\nX-Method-Override: DELETE\r\n"
    )
    request = (
        method.encode()
        + b" /api/queues/%2F/kept?_method=DELETE HTTP/1.1\r\n"
        + AUTHORIZED
        + override
        + b"Content-Length: 0\r\nConnection: close\r\n\r\n"
    )
    assert status_of(api.raw(request)) in {400, 405}
    assert api.status("GET", "queues/%2F/kept") == 200


def test_a_method_that_a_path_does_not_have_names_those_it_has(api: Api) -> None:
    answer = api.ask("POST", "queues")
    assert (answer.status, answer.headers["allow"]) == (405, "HEAD, GET, OPTIONS")
    options = api.ask("OPTIONS", "queues/%2F/x")
    assert (options.status, options.headers["allow"]) == (200, "HEAD, GET, PUT, DELETE, OPTIONS")
    head = api.ask("HEAD", "queues")
    assert (head.status, head.body) == (200, b"")


# Sizes and times


def test_headers_have_a_size(api: Api) -> None:
    for more in (b"X-A: " + b"a" * HEADER_BYTES_MAX + b"\r\n", b"X-A: b\r\n" * 4000):
        request = b"GET /api/whoami HTTP/1.1\r\nConnection: close\r\n" + AUTHORIZED
        answer = api.raw(request + more + b"\r\n")
        assert status_of(answer) in {400, 431}
        assert b'"bad_request"' in answer
    assert status_of(api.raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20)) in {0, 400}


def test_a_body_has_a_size_announced_or_not(api: Api) -> None:
    path = b"PUT /api/queues/%2F/large HTTP/1.1\r\n"
    announced = path + AUTHORIZED + b"Content-Length: 300000\r\n\r\n"
    assert status_of(api.raw(announced)) == 413, "before any of it came"
    for length in (b"-1", b"1e3", b"99999999999999999999999", b"5, 6"):
        answer = api.raw(path + AUTHORIZED + b"Content-Length: " + length + b"\r\n\r\n")
        assert status_of(answer) in {400, 413}, length
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    chunked = path + AUTHORIZED + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 6
    with contextlib.suppress(OSError):  # it hangs up while we still send
        assert status_of(api.raw(chunked)) == 413
    both = AUTHORIZED + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n"
    assert status_of(api.raw(path + both)) in {400, 413}, "read in two ways"
    zipped = api.ask("PUT", "queues/%2F/z", b"\x1f\x8b" + b"x" * 50, {"Content-Encoding": "gzip"})
    assert zipped.status == 400


def test_a_stranger_has_no_body(api: Api) -> None:
    request = b"POST /api/definitions HTTP/1.1\r\n" + HOST + b"Content-Length: 10000000\r\n\r\n"
    began = time.monotonic()
    assert status_of(api.raw(request)) == 401, "nobody waits for it"
    assert time.monotonic() - began < SOONER_S


@pytest.fixture
def manager(api: Api) -> Iterator[bytes]:
    """A user with a tag and no permission; the headers of its requests."""
    body = {"password": "secret", "tags": "management"}
    assert api.status("PUT", "users/manager", body) == 201
    yield HOST + f"Authorization: {basic('manager', 'secret')}\r\n".encode()
    api.status("DELETE", "users/manager")


def test_who_may_not_import_has_no_definitions(api: Api, manager: bytes) -> None:
    request = b"POST /api/definitions HTTP/1.1\r\n" + manager + b"Content-Length: 9999999\r\n\r\n"
    began = time.monotonic()
    assert status_of(api.raw(request)) == 401, "nobody waits for it"
    assert time.monotonic() - began < SOONER_S


def test_slow_large_bodies_of_one_user_hold_up_nobody_else(api: Api, manager: bytes) -> None:
    path = b"POST /api/exchanges/%2F/amq.default/publish HTTP/1.1\r\n" + manager
    assert api.status("PUT", "queues/%2F/for-all", STREAM) == 201
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            slow = stack.enter_context(
                socket.create_connection((api.host, api.port), timeout=HANG_S)
            )
            slow.sendall(path + b"Content-Length: 1900000\r\n\r\n{")
        began = time.monotonic()
        message = {"properties": {}, "routing_key": "for-all", "payload_encoding": "string"}
        for payload in ("small", "x" * 900_000):
            body = message | {"payload": payload}
            answer = api.ask("POST", "exchanges/%2F/amq.default/publish", body)
            assert (answer.status, answer.json) == (200, {"routed": True})
        assert time.monotonic() - began < SOONER_S
    assert api.status("DELETE", "queues/%2F/for-all") == 204


PUT_SLOW: Final = b"PUT /api/queues/%2F/slow HTTP/1.1\r\n" + AUTHORIZED
BEGUN: Final = {
    "silent": b"",
    "line": b"GET /api/who",
    "headers": b"GET /api/whoami HTTP/1.1\r\n" + AUTHORIZED,
    "body": PUT_SLOW + b"Content-Length: 50\r\n\r\n{",
    "chunked": PUT_SLOW + b"Transfer-Encoding: chunked\r\n\r\n1\r\n",
}


TRICKLE: Final = b"GET /api/whoami HTTP/1.1\r\nX-A: "


def cut_off(api: Api, begun: bytes) -> tuple[float, int]:
    """Wait until the server hangs up; gives the seconds, and the status that it answered."""
    with socket.create_connection((api.host, api.port), timeout=HANG_S) as connection:
        connection.sendall(begun)
        began, answer = time.monotonic(), bytearray()
        if begun == TRICKLE:
            connection.settimeout(0.25)
        with contextlib.suppress(ConnectionError):
            while (waited := time.monotonic() - began) < HANG_S:
                try:
                    part = connection.recv(4096)
                except TimeoutError:
                    assert begun == TRICKLE, waited
                    connection.sendall(b"a")
                    continue
                if not part:
                    break
                answer += part
        return time.monotonic() - began, status_of(bytes(answer))


@pytest.mark.slow
def test_who_takes_too_long_is_cut_off_and_a_trickle_is_no_way_around(api: Api) -> None:
    begun = {**BEGUN, "trickle": TRICKLE}
    with ThreadPoolExecutor(len(begun)) as threads:
        ended = threads.map(partial(cut_off, api), begun.values())
        for name, (after_s, status) in zip(begun, ended, strict=True):
            assert SOONER_S < after_s < HANG_S, name
            assert status in {0, 408}, name


def test_connections_that_ask_nothing_stand_in_nobodys_way(api: Api, target: HutchServer) -> None:
    silent, half = b"", b"GET /api/whoami HTTP/1.1\r\n"
    idle = half + AUTHORIZED + b"\r\n"
    with contextlib.ExitStack() as stack:
        for sent in (silent, half, idle):
            for _ in range(CONNECTIONS_MAX + 10):
                held = socket.create_connection((api.host, api.port), timeout=HANG_S)
                stack.enter_context(held)
                with contextlib.suppress(OSError):
                    held.sendall(sent)
            with Client.opened(*target.endpoint) as client:
                client.create(f"beside-{len(sent)}")
            for _ in range(3):
                assert api.status("GET", "whoami") == 200


def test_a_request_under_way_gives_way_to_nobody(api: Api) -> None:
    with contextlib.ExitStack() as stack:
        asking = socket.create_connection((api.host, api.port), timeout=HANG_S)
        stack.enter_context(asking)
        body = json.dumps(STREAM).encode()
        asking.sendall(b"PUT /api/queues/%2F/under-way HTTP/1.1\r\n" + AUTHORIZED)
        asking.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body[:5])
        time.sleep(0.2)
        for _ in range(CONNECTIONS_MAX + 10):
            stack.enter_context(socket.create_connection((api.host, api.port), timeout=HANG_S))
        asking.sendall(body[5:])
        assert status_of(asking.recv(4096)) == 201
    assert api.status("DELETE", "queues/%2F/under-way") == 204


def test_requests_in_a_row_are_answered_in_order(api: Api) -> None:
    requests = b"".join(
        b"GET /api/%s HTTP/1.1\r\n" % path + AUTHORIZED + b"\r\n"
        for path in (b"whoami", b"nope", b"version")
    )
    last = b"GET /api/whoami HTTP/1.1\r\n" + AUTHORIZED + b"Connection: close\r\n\r\n"
    answer = api.raw(requests + last)
    assert [part.split(b" ")[0] for part in answer.split(b"HTTP/1.1 ")[1:]] == [
        b"200",
        b"404",
        b"200",
        b"200",
    ]


# Bodies and names


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"5",
        b'"x"',
        b"\xff",
        b'{"a":1,"a":2}',
        b'{"arguments":NaN}',
        b"[" * 100_000,
        b'{"arguments":5}',
        b'{"arguments":{"x-queue-type":"quorum"}}',
        b'{"arguments":{"x-queue-type":["stream"]}}',
        b'{"arguments":{"x-max-age":5}}',
        b'{"arguments":{"x-max-length-bytes":"5"}}',
        b'{"arguments":{"x-max-length-bytes":1e400}}',
        b'{"arguments":{"x-max-length-bytes":true}}',
        b'{"arguments":{"x-unknown":1}}',
        b'{"durable":false}',
        b'{"durable":5}',
        b'{"auto_delete":true}',
        b'{"exclusive":true}',
    ],
)
def test_a_body_that_is_wrong_is_named_and_makes_nothing(api: Api, body: bytes) -> None:
    answer = api.ask("PUT", "queues/%2F/wrong", body)
    assert answer.status == 400, answer
    assert answer.json["error"] == "bad_request"
    assert answer.json["reason"]
    assert api.status("GET", "queues/%2F/wrong") == 404


NAMES: Final = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'; DROP TABLE streams; --",
    "javascript:alert(1)",
    "{{7*7}}${7*7}#{7*7}",
    "../../etc/passwd",
    "..",
    ".",
    "%2e%2e%2f",
    "a\x00b",
    "a\x1b[31mred\x07",
    "\u202egnp.exe",
    "\u2028\u2029",
    "日本語",
    "Ωмега",
    "שלום",
    "مرحبا",
    "हिन्दी",
    "🐇👩‍👩‍👧",
    "e\u0301",
    "\ufeff",
    "__proto__",
    "constructor",
    "a&b=c;d#e?f",
    "\\",
    '"',
    " ",
    "x" * 200,
]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_kept_and_shown_as_text(api: Api, target: HutchServer, name: str) -> None:
    encoded = segment(name).replace(".", "%2E")
    assert api.status("PUT", f"queues/%2F/{encoded}", STREAM) == 201
    with Client(*target.endpoint) as client:
        client.handshake()
        client.declare(1, name, "reference of " + name[:100])
        for path in ("queues", f"queues/%2F/{encoded}", "stream/publishers", "bindings/%2F"):
            answer = api.ask("GET", path)
            assert answer.status == 200
            assert answer.headers["content-type"] == "application/json"
            assert answer.body.isascii()
            assert not set(answer.body) & {*b"<>&", *range(0x20), 0x7F}
            assert any(name in text for text in _texts(answer.json)), path
        assert api.status("DELETE", f"queues/%2F/{encoded}") == 204
    assert api.status("GET", f"queues/%2F/{encoded}") == 404


def test_a_name_that_is_no_text_is_shown_by_stand_ins(api: Api, target: HutchServer) -> None:
    with Client.opened(*target.endpoint) as client:
        client.create("b\udcff\udc80")
        answer = api.ask("GET", "queues/%2F")
        assert "b\ufffd\ufffd" in {queue["name"] for queue in answer.json}
        assert api.get("queues/%2F/b%FF%80")["type"] == "stream"
        assert api.status("PUT", "queues/%2F/new%FF", STREAM) == 400


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def test_what_clients_say_of_themselves_is_text_too(api: Api, target: HutchServer) -> None:
    with Client.opened(*target.endpoint, virtual_host="/"):
        for one in api.get("connections"):
            assert all(isinstance(value, str) for value in one["client_properties"].values())


def test_a_super_stream_has_no_more_partitions_than_are_allowed(api: Api) -> None:
    path = "stream/super-streams/%2F/many"
    for partitions in (1001, 10**9, 0, -1, "x", 1.5, True, None, [1], "9" * 5000):
        answer = api.ask("PUT", path, {"partitions": partitions})
        assert answer.status == 400, partitions
    keys = ",".join(str(number) for number in range(1001))
    assert api.status("PUT", path, {"binding-keys": keys}) == 400
    assert api.status("PUT", path, {"binding-keys": 5}) == 400
    assert api.status("GET", "exchanges/%2F/many") == 404


def test_a_pattern_in_a_query_is_given_up_in_time(api: Api, target: HutchServer) -> None:
    assert api.status("PUT", "queues/%2F/" + "a" * 200, STREAM) in {201, 204}
    began_s = cpu_seconds([target.pid])
    api.get("queues?page=1&page_size=10&use_regex=true&name=%28a%2B%29%2Bb%24")
    assert cpu_seconds([target.pid]) - began_s < 2
    wrong = api.ask("GET", "queues?page=1&use_regex=true&name=%28")
    assert (wrong.status, wrong.json["error"]) == (400, "bad_request")
    for query in ("page=0", "page=x", "page=1&page_size=501", "page=1&page_size=0"):
        assert api.status("GET", f"queues?{query}") == 400, query


def test_no_password_and_no_header_is_in_the_log(api: Api, target: HutchServer) -> None:
    secret = "s3cr3t-never-logged"
    api.status("PUT", "users/logged", {"password": secret, "tags": "administrator"})
    api.by("logged", secret).status("GET", "whoami")
    api.by("logged", secret + "x").status("GET", "whoami")
    api.by("no\r\nbody", secret).status("GET", "whoami")
    assert secret not in target.logs
    assert basic("logged", secret).split()[1] not in target.logs
    assert "\nbody" not in target.logs
