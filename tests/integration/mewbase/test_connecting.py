"""Frames and the login: cases 1 to 16 and 77 of the protocol's conformance."""

from __future__ import annotations

import ssl
import struct
import time
from contextlib import suppress
from pathlib import Path

import pytest
from bson import BSON, Int64

from compat.certificates import make
from tests.integration.administrator import ctl
from tests.integration.conftest import StartServer
from tests.integration.mewbase.conftest import StartMewbase, port_of
from tests.integration.server import HutchServer, run_serve
from tests.integration.tls_rig import tls_arguments
from tests.mewbase_client import MewbaseClient, frame

FAILED = "Authentication failed"
CONNECT = frame("CONNECT", {"version": "0.1", "authInfo": None})
WITHOUT = """
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *more: None if name == {missing!r} else find(name, *more)
"""
BOOLEAN, INT32, INT64, STRING = b"\x08", b"\x10", b"\x12", b"\x02"


@pytest.fixture
def server(shared_mewbase: HutchServer) -> HutchServer:
    return shared_mewbase


def publish(request: int, channel: str = "channel1", kind: str = "PUB") -> bytes:
    return frame(kind, {"channel": channel, "event": {"n": request}, "rID": request})


def test_case_1_a_client_that_sends_no_credentials_is_let_in(stranger: MewbaseClient) -> None:
    assert stranger.ask("CONNECT", version="0.1", authInfo=None) == {"ok": True}
    stranger.publish("channel1", {})


def test_case_2_credentials_in_the_form_of_the_page_are_checked(port: int) -> None:
    with MewbaseClient(port) as client:
        answer = client.ask("CONNECT", version="1.0", username="mew", password="base")
        assert answer == {"rID": 0, "ok": True}
        client.publish("channel1", {})
    with MewbaseClient(port) as client:
        answer = client.ask("CONNECT", version="1.0", username="mew", password="wrong")
        assert answer == {"rID": 0, "ok": False, "errCode": "1", "errMsg": FAILED}
        assert client.is_ended()


def test_case_3_credentials_in_the_form_of_the_client_are_checked(port: int) -> None:
    with MewbaseClient(port) as client:
        client.connect(authInfo={"username": "mew", "password": "base"})
        client.publish("channel1", {})
    no_reference: dict[str, object] = {"username": {"$ref": 1}, "$id": 2}
    wrong_ones: list[dict[str, object]] = [
        {"username": "mew", "password": "x"},
        {"username": "mew"},
        {"a": 1},
        no_reference,
        {"a": {"$ref": 1}},
    ]
    for wrong in wrong_ones:
        with MewbaseClient(port) as client:
            answer = client.ask("CONNECT", version="1.0", authInfo=wrong)
            assert answer == {"ok": False, "errCode": 1, "errMsg": FAILED}
            assert client.is_ended()


def test_an_empty_authinfo_is_none_given(port: int) -> None:
    for more, is_right in (
        ({}, True),
        ({"username": "mew", "password": "base"}, True),
        ({"username": "mew", "password": "x"}, False),
    ):
        with MewbaseClient(port) as client:
            answer = client.ask("CONNECT", version="0.1", authInfo={}, **more)
            assert answer["ok"] is is_right


def test_an_empty_authinfo_is_refused_where_all_have_to_log_in(start_server: StartServer) -> None:
    server = start_server("--mewbase-port", "0")
    with MewbaseClient(port_of(server)) as client:
        answer = client.ask("CONNECT", version="0.1", authInfo={})
        assert answer == {"ok": False, "errCode": 1, "errMsg": FAILED}
        assert client.is_ended()


@pytest.mark.parametrize("fields", [{}, {"version": "999"}, {"version": "x"}, {"version": 1}])
def test_case_4_a_version_that_is_missing_or_unknown_is_refused(
    stranger: MewbaseClient, fields: dict[str, object]
) -> None:
    answer = stranger.ask("CONNECT", authInfo=None, **fields)
    assert answer["ok"] is False
    assert answer["errMsg"]
    assert stranger.is_ended()


@pytest.mark.parametrize(
    "fields", [{}, {"version": "999"}, {"version": 1}, {"version": "1.0", "username": 7}]
)
def test_a_refused_login_is_answered_in_its_own_form(port: int, fields: dict[str, object]) -> None:
    for more, number, code in (({}, 0, str), ({"rID": 9}, 9, str), ({"authInfo": None}, None, int)):
        with MewbaseClient(port) as client:
            answer = client.ask("CONNECT", **fields, **more)
            assert (answer["ok"], answer.get("rID")) == (False, number)
            assert type(answer["errCode"]) is code
            assert client.is_ended()
    with MewbaseClient(port) as client:
        client.connect()
        answer = client.ask("CONNECT", **fields)
        assert (answer["ok"], answer["rID"], type(answer["errCode"])) == (False, 0, str)
        assert client.is_ended()


@pytest.mark.parametrize(
    ("kind", "fields", "answer_kind"),
    [
        ("PUB", {"channel": "channel1", "event": {}, "rID": 7}, "RESPONSE"),
        ("SUBSCRIBE", {"channel": "channel1", "rID": 7}, "SUBRESPONSE"),
        ("QUERY", {"queryID": 1, "binder": "b", "matcher": {}, "rID": 7}, "RESPONSE"),
        ("STARTTX", {"sessID": 1, "rID": 7}, "RESPONSE"),
        ("PUB", {}, "RESPONSE"),
    ],
)
def test_case_5_nothing_is_done_before_a_login(
    port: int, client: MewbaseClient, kind: str, fields: dict[str, object], answer_kind: str
) -> None:
    client.subscribe("channel1")
    with MewbaseClient(port) as stranger:
        stranger.send(kind, **fields)
        answer = stranger.must(answer_kind)
        assert answer.pop("rID", None) == fields.get("rID")
        assert answer == {"ok": False, "errCode": 2, "errMsg": "Not authenticated!"}
        assert stranger.is_ended()

    assert client.is_silent()


def test_case_6_three_requests_may_come_together(stranger: MewbaseClient) -> None:
    subscribe = frame("SUBSCRIBE", {"channel": "channel1", "rID": 1})
    stranger.socket.sendall(CONNECT + subscribe + publish(2))

    assert stranger.must("RESPONSE") == {"ok": True}
    number = stranger.must("SUBRESPONSE")["subID"]
    rest = dict(stranger.receive() for _ in range(2))
    assert rest["RESPONSE"] == {"rID": 2, "ok": True}
    assert rest["RECEV"]["subID"] == number


def test_case_7_a_frame_may_come_byte_by_byte(client: MewbaseClient) -> None:
    for byte in publish(3):
        client.socket.sendall(bytes((byte,)))

    assert client.must("RESPONSE") == {"rID": 3, "ok": True}


def test_case_8_frames_may_be_cut_anywhere(client: MewbaseClient) -> None:
    client.socket.sendall(publish(1) + publish(2) + publish(3)[:7])
    time.sleep(0.1)
    client.socket.sendall(publish(3)[7:])

    assert [client.must("RESPONSE")["rID"] for _ in range(3)] == [1, 2, 3]


def test_case_9_the_two_keys_of_a_frame_may_be_in_any_order(client: MewbaseClient) -> None:
    body = {"channel": "channel1", "event": {}, "rID": 1}
    client.socket.sendall(BSON.encode({"frame": body, "type": "PUB"}))

    assert client.must("RESPONSE") == {"rID": 1, "ok": True}


@pytest.mark.parametrize("size", [0, 4, -1, 2**31 - 1])
def test_case_10_a_length_that_cannot_be_ends_that_connection_alone(
    client: MewbaseClient, other: MewbaseClient, size: int
) -> None:
    other.socket.sendall(struct.pack("<i", size) + bytes(100))

    assert other.is_ended()
    client.publish("channel1", {})


@pytest.mark.parametrize(
    "body", [b"\x20a\0", b"\x02a\0\xff\xff\xff\x7fx\0", b"\x08a\0\x02", b"\x10a", b"\0" * 7]
)
def test_case_11_a_body_that_is_no_document_ends_the_connection(
    client: MewbaseClient, other: MewbaseClient, body: bytes
) -> None:
    document = struct.pack("<i", len(body) + 5) + body + b"\0"
    other.socket.sendall(document if body[0] else document[:-1] + b"x")
    assert other.is_ended()

    frame_head = b"\x02type\0\x04\0\0\0PUB\0\x03frame\0"
    inner = document
    outer = frame_head + inner
    if body[0]:
        client.socket.sendall(struct.pack("<i", len(outer) + 5) + outer + b"\0")
        assert client.is_ended()


def test_case_12_an_unknown_type_is_refused_if_it_names_a_request(client: MewbaseClient) -> None:
    for kind in ("NOSUCH", "RECEV", "RESPONSE"):
        answer = client.ask(kind, rID=5)
        assert (answer["ok"], answer["errCode"], answer["rID"]) == (False, 104, 5)
        assert answer["errMsg"]
        client.send(kind, some="thing")
        assert client.is_silent()
    client.publish("channel1", {})


@pytest.mark.parametrize("number", [7, Int64(7), 7.0])
def test_case_13_a_request_may_be_named_by_any_whole_number(
    client: MewbaseClient, number: object
) -> None:
    answer = client.ask("PUB", channel="channel1", event={}, rID=number)
    assert answer == {"rID": 7, "ok": True}


@pytest.mark.parametrize("number", [-(1 << 63), -(1 << 31) - 1, 1 << 31, 1 << 40, (1 << 63) - 1])
def test_the_name_of_a_request_has_up_to_64_bits_and_comes_back_as_it_was(
    client: MewbaseClient, number: int
) -> None:
    named, event = Int64(number), {"channel": "channel1", "event": {}}
    assert client.ask("PUB", rID=named, **event) == {"rID": number, "ok": True}
    assert client.ask("NOSUCH", rID=named)["rID"] == number
    client.send("SUBSCRIBE", channel="channel1", rID=named)
    answer = client.must("SUBRESPONSE")
    assert answer["rID"] == number
    assert client.ask("UNSUBSCRIBE", subID=answer["subID"], rID=named)["rID"] == number
    assert client.ask("PUB", channel="nosuchchannel", event={}, rID=named)["rID"] == number
    assert client.connect(rID=named)["rID"] == number


@pytest.mark.parametrize("number", [-(1 << 31), (1 << 31) - 1])
def test_what_fits_into_an_int32_comes_back_as_one(client: MewbaseClient, number: int) -> None:
    client.ask("PUB", channel="channel1", event={}, rID=Int64(number))
    assert INT32 + b"rID\0" in client.raw


@pytest.mark.parametrize("number", ["7", 7.5, 2.0**63, True, None, {}])
def test_case_13_nothing_else_names_a_request(client: MewbaseClient, number: object) -> None:
    client.send("PUB", channel="channel1", event={}, rID=number)
    assert client.is_ended()


def test_case_14_unknown_fields_are_ignored(stranger: MewbaseClient) -> None:
    more = {"unknown": {"a": 1}, "more": [1]}
    assert stranger.ask("CONNECT", version="0.1", authInfo=None, **more) == {"ok": True}
    event: dict[str, object] = {}
    assert stranger.ask("PUB", channel="channel1", event=event, rID=1, **more)["ok"] is True
    number = stranger.subscribe("channel1", **more)
    assert stranger.ask("SUBCLOSE", subID=number, rID=3, **more)["ok"] is True


def test_case_15_a_ping_is_not_answered(client: MewbaseClient) -> None:
    client.send("PING")
    client.send("PING", body={"any": "thing"})
    assert client.is_silent()
    client.publish("channel1", {})


def test_a_client_that_sends_nothing_is_cut_off_where_a_setting_says_so(
    start_mewbase: StartMewbase,
) -> None:
    server = start_mewbase("--durability", "os", HUTCH_MEWBASE__IDLE_TIMEOUT_S="2")
    with MewbaseClient(port_of(server)) as silent, MewbaseClient(port_of(server)) as alive:
        silent.connect()
        silent.subscribe("channel1")
        alive.connect()
        while "heartbeat missed" not in server.logs:
            alive.send("PING")
            time.sleep(0.1)
        alive.publish("channel2", {})
        assert silent.is_ended()


def test_case_16_values_have_the_types_that_clients_read(port: int, client: MewbaseClient) -> None:
    client.publish("channel1", {})
    for needed in (BOOLEAN + b"ok\0", INT32 + b"rID\0"):
        assert needed in client.raw
    client.ask("PUB", channel="nosuchchannel", event={}, rID=1)
    assert INT32 + b"errCode\0" in client.raw
    client.subscribe("channel1", startPos=0)
    assert INT32 + b"subID\0" in client.raw
    client.events(1)
    for needed in (INT32 + b"subID\0", INT64 + b"timestamp\0", INT64 + b"pos\0"):
        assert needed in client.raw
    with MewbaseClient(port) as page:
        page.ask("CONNECT", version="1.0")
        page.ask("PUB", channel="nosuchchannel", event={}, rID=1)
        assert STRING + b"errCode\0\x02\0\0\x003\0" in page.raw


@pytest.mark.parametrize(
    ("form", "of_the_client", "of_the_page"),
    [("auto", 3, "3"), ("client", 3, 3), ("page", "3", "3")],
)
def test_the_form_of_errors_can_be_set(
    start_mewbase: StartMewbase, form: str, of_the_client: object, of_the_page: object
) -> None:
    port = port_of(start_mewbase(HUTCH_MEWBASE__FORM=form))
    for fields, expected in (({"authInfo": None}, of_the_client), ({}, of_the_page)):
        with MewbaseClient(port) as client:
            client.ask("CONNECT", version="0.1", **fields)
            answer = client.ask("PUB", channel="nosuchchannel", event={}, rID=1)
            assert answer["errCode"] == expected


def test_a_second_login_is_checked_and_keeps_the_user(client: MewbaseClient) -> None:
    number = client.subscribe("channel1")
    client.connect(authInfo={"username": "mew", "password": "base"})
    client.publish("channel1", {})
    assert client.must("RECEV")["subID"] == number
    answer = client.ask("CONNECT", version="0.1", authInfo={"username": "mew", "password": "x"})
    assert answer["errCode"] == 1
    assert client.is_ended()


def test_clients_without_credentials_are_refused_where_anonymous_is_not_set(
    start_server: StartServer,
) -> None:
    server = start_server("--mewbase-port", "0")
    with MewbaseClient(port_of(server)) as client:
        answer = client.ask("CONNECT", version="0.1", authInfo=None)
        assert answer["errCode"] == 1
        assert client.is_ended()
    with MewbaseClient(port_of(server)) as client:
        client.connect(authInfo={"username": "guest", "password": "guest"})


def test_a_virtual_host_that_does_not_exist_is_named_at_the_start(tmp_path: Path) -> None:
    done = run_serve(
        tmp_path / "data",
        *("--port", "0", "--management-port", "0", "--mewbase-port", "0"),
        environment={"HUTCH_MEWBASE__VIRTUAL_HOST": "nowhere"},
    )
    assert done.returncode == 2, done.stderr
    said = "HUTCH_MEWBASE__VIRTUAL_HOST: there is no virtual host 'nowhere'"
    assert said in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(("missing", "name"), [("bson", "port"), ("pymongo", "tls_port")])
def test_a_port_without_its_library_is_refused_in_one_line(
    tmp_path: Path, missing: str, name: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT.format(missing=missing))
    option = f"--mewbase-{name.replace('_', '-')}"
    done = run_serve(
        tmp_path / "data",
        *("--port", "0", "--management-port", "0", option, "0"),
        environment={"PYTHONPATH": str(tmp_path)},
        is_typed=True,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert option in last
    assert "pip install '.[mewbase]' in the folder of the sources" in last


def test_a_client_that_never_logs_in_is_cut_off(start_mewbase: StartMewbase) -> None:
    with MewbaseClient(port_of(start_mewbase(HUTCH_MEWBASE__CONNECT_TIMEOUT_MS="100"))) as client:
        assert client.is_ended()


def test_a_stranger_cannot_make_the_server_keep_much(stranger: MewbaseClient) -> None:
    with suppress(ConnectionError):
        stranger.socket.sendall(struct.pack("<i", 1 << 20) + bytes(1 << 19))
    assert stranger.is_ended()


def test_administrators_see_the_connection_and_can_end_it(
    server: HutchServer, client: MewbaseClient
) -> None:
    client.subscribe("channel1")
    client.publish("channel1", {})
    client.must("RECEV")
    listed = str(ctl(server, "list_connections"))
    assert "'mew'" in listed
    ctl(server, "close_connections", "--user", "mew")
    assert client.is_ended()


def test_case_77_the_same_holds_over_tls(start_mewbase: StartMewbase, tmp_path: Path) -> None:
    certificates = make(tmp_path / "certificates")
    server = start_mewbase(
        "--mewbase-tls-port", "0", *tls_arguments(certificates, asks_clients=False)
    )
    words = dict(word.split("=", 1) for word in server.ready_line.split() if "=" in word)
    tls_port = int(words["mewbase_tls"].rpartition(":")[2])
    context = ssl.create_default_context(cafile=str(certificates.ca))
    with MewbaseClient(tls_port, context) as client:
        client.connect()
        client.publish("channel1", {"n": 1})
        number = client.subscribe("channel1")
        client.publish("channel1", {"n": 2})
        (got,) = client.events(1)
        assert (got["subID"], got["pos"], got["event"]) == (number, 1, {"n": 2})
    with MewbaseClient(tls_port) as plain:
        plain.send("CONNECT", version="0.1")
        with suppress(ConnectionError):
            while plain.socket.recv(100):
                pass
