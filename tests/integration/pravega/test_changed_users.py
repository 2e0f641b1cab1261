"""Users that are changed or deleted while their tokens last: these count no more, at once."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from gateway.broker.access.passwords import PasswordHash
from gateway.pravega.access.guard import EXPIRED, REFUSED
from gateway.pravega.controller.rpc import controller_pb2 as pb
from hutch.pravega import messages as m
from hutch.pravega.error_messages import AuthTokenCheckFailed
from tests.http_client import Api
from tests.integration.administrator import ctl, report
from tests.integration.pravega.conftest import controller_port
from tests.integration.pravega.users import (
    BESIDE,
    PASSWORD,
    PYPI_CLIENT,
    config,
    controller,
    environment_of,
    of,
)
from tests.integration.server import HutchServer, StoreProcess
from tests.pravega_client import WRITER, WireClient, end, event
from tests.waiting import HANG_S

pytestmark = pytest.mark.timeout(250)

SEGMENT: Final = "mine/stream/0.#epoch.0"
OTHER_WRITER: Final = UUID(int=7)
ALL: Final = {"configure": ".*", "write": ".*", "read": ".*"}
NOTHING: Final = {"configure": "", "write": "", "read": ""}
PERMISSION: Final = "permissions/%2F/app"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HutchServer]:
    """A server with the user app, who may do all, and with the stream mine/stream."""
    with HutchServer(tmp_path / "data", *BESIDE) as server:
        put(server, "users/app", {"password": PASSWORD, "tags": ""})
        put(server, PERMISSION, ALL)
        put(server, "vhosts/v", {})
        with controller(server, "app") as client:
            client.ask("createScope", pb.ScopeInfo(scope="mine"))
            client.ask("createStream", config("mine", "stream"))
        yield server
        server.terminate()


def put(server: HutchServer, path: str, body: dict[str, str]) -> None:
    assert Api(*server.management).status("PUT", path, body) in {201, 204}


def token_of(server: HutchServer, user: str = "app", password: str = PASSWORD) -> str:
    with controller(server, user, password) as client:
        token: str = client.ask("getDelegationToken", of("mine", "stream")).delegationToken
    return token


def narrowed(server: HutchServer) -> None:
    put(server, PERMISSION, {**ALL, "write": "", "read": ""})


def widened(server: HutchServer) -> None:
    put(server, "permissions/v/app", ALL)


def by_import(server: HutchServer) -> None:
    path = server.data_dir.parent / "narrowed.json"
    path.write_text(json.dumps({"permissions": [{"user": "app", "vhost": "/"} | NOTHING]}))
    report(server, str(path))


def by_ctl(server: HutchServer) -> None:
    ctl(server, "set_permissions", "app", "", "", "")


def permission_taken(server: HutchServer) -> None:
    ctl(server, "clear_permissions", "app")


def virtual_host_gone(server: HutchServer) -> None:
    assert Api(*server.management).status("DELETE", "vhosts/%2F") == 204


def another_password(server: HutchServer) -> None:
    put(server, "users/app", {"password": "another", "tags": ""})


def deleted(server: HutchServer) -> None:
    ctl(server, "delete_user", "app")


def made_again(server: HutchServer) -> None:
    ctl(server, "delete_user", "app")
    put(server, "users/app", {"password": PASSWORD, "tags": ""})
    put(server, PERMISSION, ALL)


WAYS: Final = [
    *(narrowed, widened, by_import, by_ctl, permission_taken, virtual_host_gone),
    *(another_password, deleted, made_again),
]


@pytest.mark.parametrize("change", WAYS)
def test_what_rests_on_a_token_ends_and_the_token_is_refused_from_now_on(
    server: HutchServer, change: Callable[[HutchServer], None]
) -> None:
    of_app, of_guest = token_of(server), token_of(server, "guest", "guest")
    with (
        WireClient(*server.store, token=of_app) as writer,
        WireClient(*server.store, token=of_app) as reader,
        WireClient(*server.store, token=of_guest) as other,
    ):
        writer.set_up(SEGMENT)
        writer.append(1, b"before")
        reader.send(m.ReadSegment(SEGMENT, 6, 100, reader.token, 5))
        reader.ask(m.KeepAlive(), m.KeepAlive)
        other.set_up(SEGMENT, OTHER_WRITER)

        change(server)

        if change is not virtual_host_gone:  # administrators end all connections there
            for client in (writer, reader):
                assert client.must(AuthTokenCheckFailed).error_code == EXPIRED
        with suppress(ConnectionError):
            writer.send(end(2, b"after"))
        writer.drain()
        reader.drain()
        with WireClient(*server.store) as later:
            for request in (
                m.GetStreamSegmentInfo(7, SEGMENT, of_app),
                m.SetupAppend(8, WRITER, SEGMENT, of_app),
            ):
                refused = later.ask(request, AuthTokenCheckFailed)
                assert refused.error_code == (REFUSED if change is deleted else EXPIRED)
        if change is not virtual_host_gone:  # guest has its rights there too
            other.append(1, b" of guest", writer=OTHER_WRITER)
            assert other.content(SEGMENT) == b"before of guest"


def test_a_user_that_is_as_it_was_loses_nothing(server: HutchServer) -> None:
    with WireClient(*server.store, token=token_of(server)) as client:
        client.set_up(SEGMENT)
        put(server, PERMISSION, ALL)
        ctl(server, "set_user_tags", "app", "management")
        ctl(server, "add_user", "other", stdin=b"secret\n")
        ctl(server, "delete_user", "other")
        client.append(1, b"goes on")


def test_tokens_last_over_a_restart_of_the_server(server: HutchServer) -> None:
    token = token_of(server)
    server.restart()
    with WireClient(*server.store, token=token) as client:
        client.set_up(SEGMENT)
        client.append(1, b"goes on")


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_store_alone_keeps_to_its_file_of_users(tmp_path: Path, *, is_changed: bool) -> None:
    file = tmp_path / "users"
    hashed = PasswordHash.of(PASSWORD)
    file.write_text(f"app:{hashed}:prn::/scope:mine,READ_UPDATE\n")
    given = ("--controller-port", "0", "--users", str(file))
    with StoreProcess(tmp_path / "data", *given) as store:
        with controller(store, "app") as client:
            client.ask("createScope", pb.ScopeInfo(scope="mine"))
            client.ask("createStream", config("mine", "stream"))
        token = token_of(store)
        store.terminate()
        if is_changed:
            file.write_text(f"app:{hashed}:prn::/scope:mine,READ\n")
        store.start()
        with WireClient(*store.store) as client:
            request = m.GetStreamSegmentInfo(7, SEGMENT, token)
            if is_changed:
                assert client.ask(request, AuthTokenCheckFailed).error_code == EXPIRED
            else:
                client.ask(request, m.StreamSegmentInfo)
        store.terminate()


@pytest.mark.usefixtures("pravega")
def test_a_reader_whose_user_may_go_on_fetches_another_token(server: HutchServer) -> None:
    uri = f"tcp://127.0.0.1:{controller_port(server)}"
    command = [*PYPI_CLIENT, uri, "read", "mine", "mine", "stream", "2"]
    with (
        WireClient(*server.store, token=token_of(server, "guest", "guest")) as writer,
        subprocess.Popen(command, env=environment_of("app"), stdout=subprocess.PIPE) as reader,
    ):
        assert reader.stdout is not None
        writer.set_up(SEGMENT)
        for number, data in enumerate((b"first", b"second"), 1):
            writer.append(number, event(data))
            assert bytes.fromhex(reader.stdout.readline().decode()) == data
            put(server, PERMISSION, {**ALL, "configure": "^mine/"})
        assert reader.wait(HANG_S) == 0
