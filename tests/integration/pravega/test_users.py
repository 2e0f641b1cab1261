"""Users of the controller, and what the tokens that it gives them allow at the wire protocol."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import grpc
import pytest
import rstream
from google.protobuf.message_factory import GetMessageClass

from compat.certificates import Certificates
from gateway.broker.access.model import Right
from gateway.broker.access.passwords import PasswordHash
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.controller.rpc.table import CALLS
from hutch.pravega import messages as m
from hutch.pravega.error_messages import AuthTokenCheckFailed
from tests.chunks import chunk_of
from tests.client import Client
from tests.controller_client import SERVICE, ControllerClient, basic
from tests.integration.pravega.conftest import controller_port
from tests.integration.pravega.users import (
    BESIDE,
    PASSWORD,
    config,
    controller,
    held,
    of,
    run_client,
    users_of_streams,
)
from tests.integration.server import (
    HutchServer,
    StoreProcess,
    run_serve,
    run_store,
    server_environment,
)
from tests.pravega_client import WRITER, WireClient
from tests.waiting import HANG_S

DENIED = grpc.StatusCode.PERMISSION_DENIED
UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED

pytestmark = pytest.mark.timeout(150)


class Login(TypedDict):
    user: str
    password: str


def users_file(folder: Path) -> Path:
    """Write a file of users: app may change the scope `mine`, reader read its stream."""
    hashed = PasswordHash.of(PASSWORD)
    path = folder / "users"
    path.write_text(
        f"app:{hashed}:prn::/scope:mine,READ_UPDATE\n"
        f"# may read one stream\nreader:{hashed}:prn::/scope:mine/stream:stream,READ\n"
    )
    return path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreProcess]:
    given = ("--controller-port", "0", "--users", str(users_file(tmp_path)))
    with StoreProcess(tmp_path / "data", *given) as server:
        yield server
        server.terminate()


@pytest.mark.usefixtures("pravega")
def test_a_user_of_the_file_writes_and_reads_over_tls(tmp_path: Path, made: Certificates) -> None:
    given = (
        *("--controller-port", "0", "--users", str(users_file(tmp_path))),
        *("--tls-cert", str(made.server.certificate), "--tls-key", str(made.server.key)),
        *("--advertise", "localhost"),
    )
    with StoreProcess(tmp_path / "data", *given) as server:
        uri = f"tls://localhost:{controller_port(server)}"
        run_client(uri, "write", "mine", "stream", "one", "two", user="app", ca=made.ca)
        arguments = ("read", "mine", "mine", "stream", "2")
        assert run_client(uri, *arguments, user="app", ca=made.ca) == [b"one", b"two"]
        with pytest.raises(subprocess.CalledProcessError) as raised:
            run_client(uri, "write", "mine", "stream", "three", user="reader", ca=made.ca)
        assert "PermissionDenied" in raised.value.stderr
        server.terminate()


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Basic",
        "Basic %%%",
        "Bearer abc",
        basic("app", "wrong"),
        basic("nobody", PASSWORD),
        basic("", ""),
    ],
)
def test_a_call_without_the_right_password_is_unauthenticated(
    store: StoreProcess, authorization: str | None
) -> None:
    with ControllerClient(controller_port(store), authorization) as client:
        for name, request in (
            ("createScope", pb.ScopeInfo(scope="mine")),
            ("getDelegationToken", of("mine", "stream")),
            ("getControllerServerList", pb.ServerRequest()),
        ):
            assert client.refusal(name, request) is UNAUTHENTICATED


def test_a_user_does_what_its_rights_say_and_its_token_no_more(store: StoreProcess) -> None:
    with controller(store, "app") as app, controller(store, "reader") as reader:
        app.ask("createScope", pb.ScopeInfo(scope="mine"))
        for name in ("stream", "other"):
            app.ask("createStream", config("mine", name))
        assert app.refusal("createScope", pb.ScopeInfo(scope="yours")) is DENIED
        assert app.refusal("getDelegationToken", of("yours", "stream")) is DENIED
        for refused in ("sealStream", "deleteStream"):
            assert reader.refusal(refused, of("mine", "stream")) is DENIED
        assert reader.refusal("createStream", config("mine", "third")) is DENIED
        for refused in ("getCurrentSegments", "checkStreamExists"):
            assert reader.refusal(refused, of("mine", "other")) is DENIED
        ranges = reader.ask("getCurrentSegments", of("mine", "stream"))
        to_read = ranges.delegationToken
        to_write = app.ask("getDelegationToken", of("mine", "stream")).delegationToken

    segment, other = "mine/stream/0.#epoch.0", "mine/other/0.#epoch.0"
    with WireClient(*store.store, token=to_write) as client:
        client.set_up(segment)
        client.append(1, b"of app")
        client.ask(m.SetupAppend(1, WRITER, other, to_write), AuthTokenCheckFailed)
        client.ask(m.GetStreamSegmentInfo(1, segment, ""), AuthTokenCheckFailed)
    with WireClient(*store.store, token=to_read) as client:
        assert client.content(segment) == b"of app"
        client.ask(m.SetupAppend(1, WRITER, segment, to_read), AuthTokenCheckFailed)
        client.ask(m.TruncateSegment(1, segment, 1, to_read), AuthTokenCheckFailed)


# Beside streams


def test_users_of_streams_have_their_permissions_on_scope_and_stream(tmp_path: Path) -> None:
    mine = "^mine/"
    file = users_of_streams(tmp_path, app=(mine, mine, "^mine/|^orders$"), all=(".*", ".*", ".*"))
    with HutchServer(tmp_path / "data", *BESIDE, "--users", str(file)) as server:
        with Client.opened(*server.endpoint, user="all", password=PASSWORD) as streams:
            for number, name in enumerate(("orders", "payments"), 1):
                streams.create(name)
                streams.declare(number, name)
                streams.publish(number, {1: b"first"})
                streams.confirmed_ids(1)
        orders, payments = (of("rmq-.2f", held(server, name)) for name in ("orders", "payments"))
        with controller(server, "app") as one, controller(server, "all") as other:
            one.ask("createScope", pb.ScopeInfo(scope="mine"))
            one.ask("createStream", config("mine", "stream"))
            assert one.refusal("createScope", pb.ScopeInfo(scope="yours")) is DENIED
            token = one.ask("getDelegationToken", orders).delegationToken
            assert one.refusal("getDelegationToken", payments) is DENIED
            for caller in (one, other):
                for request in (orders, payments):
                    for name in ("sealStream", "deleteStream"):
                        assert caller.refusal(name, request) is DENIED
                cut = pb.StreamCut(streamInfo=orders, cut={0: 8})
                assert caller.refusal("truncateStream", cut) is DENIED
                assert caller.refusal("createScope", pb.ScopeInfo(scope="rmq-.2f")) is DENIED
                assert caller.refusal("deleteScope", pb.ScopeInfo(scope="rmq-.2f")) is DENIED
                assert caller.refusal("createStream", config("hutch", "stream")) is DENIED
                for table in (of("rmq-.2f", "_meta_kvtable"), of("hutch", "_access_kvtable")):
                    assert caller.refusal("getDelegationToken", table) is DENIED
                    assert caller.refusal("checkStreamExists", table) is DENIED
                assert "rmq-.2f" not in caller.ask("listScopes", pb.ScopesRequest()).scopes
            assert other.ask("getDelegationToken", payments).delegationToken
        segment = f"rmq-.2f/{orders.stream}/0.#epoch.0"
        with WireClient(*server.store, token=token) as client:
            assert b"first" in client.content(segment)
            client.ask(m.TruncateSegment(1, segment, 8, token), AuthTokenCheckFailed)
        with Client.opened(*server.endpoint, user="all", password=PASSWORD) as streams:
            streams.declare(1, "orders")
            streams.publish(1, {1: b"second"})
            streams.confirmed_ids(1)
        server.terminate()


def test_scopes_are_told_to_users_that_may_see_something_of_them(tmp_path: Path) -> None:
    mine, above = "^mine/", "^mine/$"
    file = users_of_streams(
        tmp_path,
        app=(mine, mine, mine),
        maker=(above, above, ""),
        one=("", "", "^mine/stream$"),
        none=("", "", ""),
    )
    found, missing = pb.StreamsInScopeResponse.SUCCESS, pb.StreamsInScopeResponse.SCOPE_NOT_FOUND
    with HutchServer(tmp_path / "data", *BESIDE, "--users", str(file)) as server:
        with controller(server, "app") as app:
            app.ask("createScope", pb.ScopeInfo(scope="mine"))
            app.ask("createStream", config("mine", "stream"))
        for user, exists, status, names in (
            ("app", True, found, ["_MARKstream", "stream"]),
            ("maker", True, found, []),
            ("one", True, found, ["_MARKstream", "stream"]),
            ("none", False, missing, []),
        ):
            with controller(server, user) as client:
                scope = pb.ScopeInfo(scope="mine")
                assert client.ask("checkScopeExists", scope).exists is exists
                listed = client.ask("listStreamsInScope", pb.StreamsInScopeRequest(scope=scope))
                assert listed.status == status
                assert [each.stream for each in listed.streams] == names
        server.terminate()


GUEST: Login = {"user": "guest", "password": "guest"}
SEAL_BYTES = 4
"""Behind a chunk in the store, with which the log knows it again."""
MESSAGES = [b"message %d" % number for number in range(600)]
BATCH = 100


async def publish(server: HutchServer) -> None:
    """Write the messages with a client that waits for each batch: it becomes a chunk at least."""
    confirmed: asyncio.Queue[bool] = asyncio.Queue()
    async with rstream.Producer(*server.endpoint, username="guest", password="guest") as producer:
        await producer.create_stream("orders")
        for first in range(0, len(MESSAGES), BATCH):
            batch = list(MESSAGES[first : first + BATCH])
            await producer.send_batch(
                "orders", batch, on_publish_confirm=lambda s: confirmed.put_nowait(s.is_confirmed)
            )
            for _ in batch:
                assert await confirmed.get()


CHANGES = [name for name, call in CALLS.items() if call.right in {Right.CONFIGURE, Right.WRITE}]


def request_of(name: str, scope: str, stream: str) -> Any:  # noqa: ANN401  # as the call is
    """Return a call's request, with nothing in it but the name of a scope or a stream."""
    request: Any = GetMessageClass(SERVICE.methods_by_name[name].input_type)()
    if isinstance(request, pb.ScopeInfo):
        request.scope = scope
    elif isinstance(request, pb.ReaderGroupConfiguration):
        request.scope, request.readerGroupName = scope, stream
    elif isinstance(request, pb.ReaderGroupInfo):
        request.scope, request.readerGroup = scope, stream
    elif isinstance(request, pb.SubscriberStreamCut):
        request.subscriber = f"{scope}/{stream}"
    elif isinstance(request, pb.TimestampFromWriter):
        request.position.streamInfo.CopyFrom(of(scope, stream))
    elif isinstance(request, pb.RemoveWriterRequest):
        request.stream.CopyFrom(of(scope, stream))
    elif "kvtName" in request.DESCRIPTOR.fields_by_name:
        request.scope, request.kvtName = scope, stream
    else:
        named = request if isinstance(request, pb.StreamInfo) else request.streamInfo
        named.CopyFrom(of(scope, stream))
    return request


def test_no_call_changes_what_is_the_gateways_whatever_the_users_permissions(
    tmp_path: Path,
) -> None:
    with HutchServer(tmp_path / "data", *BESIDE) as server:
        asyncio.run(asyncio.wait_for(publish(server), HANG_S))
        own = held(server, "orders")
        names = [own, f"{own}-index", f"{own}-filters", "_meta_kvtable", "_new"]
        kept = [("rmq-.2f", name) for name in names] + [("hutch", "_new"), ("hutch", "new")]
        segment = f"rmq-.2f/{own}/0.#epoch.0"
        with WireClient(*server.store, token=token_of(server, own)) as client:
            before = client.content(segment)
            with controller(server, "guest", "guest") as guest:
                for name in CHANGES:
                    for scope, stream in kept:
                        request = request_of(name, scope, stream)
                        assert guest.refusal(name, request) is DENIED, (name, scope, stream)
            assert client.content(segment) == before
        with Client.opened(*server.endpoint) as streams:
            streams.declare(1, "orders")
            streams.publish(1, {1: b"one more"})
            streams.confirmed_ids(1)
        server.terminate()


@pytest.mark.usefixtures("pravega")
def test_a_group_of_readers_finds_each_message_that_a_stream_client_wrote(tmp_path: Path) -> None:
    with HutchServer(tmp_path / "data", *BESIDE) as server:
        asyncio.run(asyncio.wait_for(publish(server), HANG_S))
        uri = f"tcp://127.0.0.1:{controller_port(server)}"
        run_client(uri, "write", "mine", "stream", "for its scope", **GUEST)
        name = held(server, "orders")
        with WireClient(*server.store, token=token_of(server, name)) as client:
            count = chunks_in(client.content(f"rmq-.2f/{name}/0.#epoch.0"))
        assert count >= len(MESSAGES) // BATCH

        events = run_client(uri, "read", "mine", "rmq-.2f", name, str(count), **GUEST)

        found = [record for event in events for record in chunk_of(event[:-SEAL_BYTES]).records()]
        assert found == MESSAGES
        server.terminate()


def token_of(server: HutchServer, name: str) -> str:
    with controller(server, "guest", "guest") as client:
        token: str = client.ask("getDelegationToken", of("rmq-.2f", name)).delegationToken
    return token


def chunks_in(content: bytes) -> int:
    """Count the events of a segment."""
    position = count = 0
    while position < len(content):
        position += 8 + int.from_bytes(content[position + 4 : position + 8])
        count += 1
    return count


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--users", "USERS"), "--users: needs wire.controller_port beside it: users log in there"),
        (
            ("--controller-port", "0", "--token-key-file", "USERS"),
            "--controller-port: needs wire.users_file beside it, where wire.token_key_file asks",
        ),
        (("--controller-port", "0", "--users", "missing"), "--users: missing: cannot read it:"),
        (("--advertise", "host:0"), "--advertise: 'host:0' is not HOST or HOST:PORT"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(
    tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    file = str(users_file(tmp_path))
    given = [file if each == "USERS" else each for each in arguments]
    done = run_store(tmp_path / "data", *given)
    assert done.returncode == 2
    said = [line for line in done.stderr.splitlines() if " INFO " not in line]
    assert [line.startswith(f"hutch: {told}") for line in said] == [True], said


WITHOUT_HTTP2 = """
import sys
sys.modules["h2"] = None
from gateway.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        (("serve", "--port", "0", "--management-port", "0", *BESIDE), "--store-controller-port"),
        (("store", "serve", "--port", "0", "--controller-port", "0"), "--controller-port"),
    ],
)
def test_a_controller_without_its_extra_is_refused_in_one_line_that_names_it(
    tmp_path: Path, command: tuple[str, ...], flag: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_HTTP2, *command, "--data", str(tmp_path / "data")],
        env=server_environment(),
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 2
    said = [line for line in done.stderr.splitlines() if " INFO " not in line]
    told = (
        f"hutch: {flag}: needs gRPC, which is not installed: pip install '.[pravega]' in the folder"
        " of the sources"
    )
    assert said == [told]


def test_a_controller_beside_streams_needs_the_port_of_the_store(tmp_path: Path) -> None:
    done = run_serve(tmp_path / "data", "--store-controller-port", "0")
    assert done.returncode == 2
    assert "--store-controller-port: needs wire.port beside it" in done.stderr


def test_passwords_in_clear_are_taken_from_elsewhere_where_a_setting_allows_it(
    tmp_path: Path,
) -> None:
    given = ("--host", "0.0.0.0", "--controller-port", "0", "--users", str(users_file(tmp_path)))
    allowing = {"HUTCH_WIRE__ALLOW_PLAIN_PASSWORDS": "true"}
    with StoreProcess(tmp_path / "data", *given, environment=allowing) as server:
        with controller(server, "app") as client:
            client.ask("createScope", pb.ScopeInfo(scope="mine"))
        server.terminate()


def test_a_controller_with_tls_needs_no_setting_for_its_passwords(
    tmp_path: Path, made: Certificates
) -> None:
    pair = ("--tls-cert", str(made.server.certificate), "--tls-key", str(made.server.key))
    with HutchServer(
        tmp_path / "data",
        *(*BESIDE, *pair, "--tls-port", "0"),
        environment={"HUTCH_WIRE__TLS": "true", "HUTCH_WIRE__HOST": "0.0.0.0"},
    ) as server:
        assert controller_port(server)
        server.terminate()


def test_clients_are_told_the_address_that_is_advertised(tmp_path: Path) -> None:
    given = ("--controller-port", "0", "--advertise", "store.example.org:12346")
    with StoreProcess(tmp_path / "data", *given) as server:
        with ControllerClient(controller_port(server)) as client:
            uri = client.ask("getURI", pb.SegmentId(streamInfo=of("mine", "stream")))
        assert (uri.endpoint, uri.port) == ("store.example.org", 12346)
        server.terminate()
