"""Users with one right each: their tokens let them do on the wire what the controller does too."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.pravega.access.guard import REFUSED
from gateway.pravega.controller.rpc import controller_pb2 as pb
from hutch.pravega import messages as m
from hutch.pravega.error_messages import AuthTokenCheckFailed
from hutch.pravega.layout import WireMessage
from tests.integration.pravega.conftest import controller_port
from tests.integration.pravega.users import (
    BESIDE,
    config,
    controller,
    of,
    run_client,
    users_of_streams,
)
from tests.integration.server import HutchServer
from tests.pravega_client import WRITER, WireClient

pytestmark = pytest.mark.timeout(250)

SEGMENT = "mine/stream/0.#epoch.0"
DATA = b"\0\0\0\0\0\0\0\5hello"
"""An event as it is stored."""
STREAM, GROUP, STATE = "^mine/stream$", "^mine/group_kvtable$", "^mine/state_kvtable$"

Run = Callable[..., list[bytes]]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HutchServer]:
    """A server whose user `all` has made the stream mine/stream."""
    file = users_of_streams(
        tmp_path,
        all=(".*", ".*", ".*"),
        maker=(STREAM, "", ""),
        writer=("", STREAM, ""),
        reader=("", "", STREAM),
        group=(GROUP, GROUP, STREAM),
        member=("", GROUP, STREAM),
        none=("", "", "^other$"),
    )
    with HutchServer(tmp_path / "data", *BESIDE, "--users", str(file)) as server:
        with controller(server, "all") as client:
            client.ask("createScope", pb.ScopeInfo(scope="mine"))
            client.ask("createStream", config("mine", "stream"))
        yield server
        server.terminate()


def client_of(server: HutchServer, user: str, stream: str = "stream") -> WireClient:
    with controller(server, user) as client:
        token: str = client.ask("getDelegationToken", of("mine", stream)).delegationToken
    return WireClient(*server.store, token=token)


def is_refused(client: WireClient, request: WireMessage) -> bool:
    client.send(request)
    answer = client.receive()
    if isinstance(answer, AuthTokenCheckFailed):
        assert answer.error_code == REFUSED
        return True
    return False


def test_a_user_that_may_write_alone_appends_and_can_do_nothing_else(server: HutchServer) -> None:
    with client_of(server, "writer") as writer:
        writer.set_up(SEGMENT)
        writer.append(1, DATA)
        token = writer.token
        for request in (
            m.ReadSegment(SEGMENT, 0, 8, token, 1),
            m.TruncateSegment(1, SEGMENT, 4, token),
            m.SealSegment(1, SEGMENT, token),
            m.DeleteSegment(1, SEGMENT, token),
            m.CreateSegment(1, "mine/stream/1.#epoch.0", 0, 0, token),
        ):
            assert is_refused(writer, request), request
        part = writer.ask(m.CreateTransientSegment(1, WRITER, SEGMENT, token), m.SegmentCreated)
        writer.ask(m.MergeSegments(1, SEGMENT, part.segment, token), m.SegmentsMerged)
    with client_of(server, "reader") as reader:
        assert reader.content(SEGMENT) == DATA
        assert is_refused(reader, m.SetupAppend(1, WRITER, SEGMENT, reader.token))


def test_a_user_that_may_configure_alone_cuts_and_does_not_read(server: HutchServer) -> None:
    with client_of(server, "writer") as writer:
        writer.set_up(SEGMENT)
        writer.append(1, DATA)
    with client_of(server, "maker") as maker:
        assert is_refused(maker, m.ReadSegment(SEGMENT, 0, 8, maker.token, 1))
        assert is_refused(maker, m.SetupAppend(1, WRITER, SEGMENT, maker.token))
        maker.ask(m.TruncateSegment(1, SEGMENT, 4, maker.token), m.SegmentTruncated)
        maker.ask(m.SealSegment(1, SEGMENT, maker.token), m.SegmentSealed)


# PyPI's client, as it is


@pytest.fixture
def run(server: HutchServer, pravega: object) -> Run:  # noqa: ARG001  # skips where it is missing
    uri = f"tcp://127.0.0.1:{controller_port(server)}"

    def run(user: str, *arguments: str) -> list[bytes]:
        return run_client(uri, *arguments, user=user)

    return run


def fault_of(run: Run, user: str, *arguments: str) -> str:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        run(user, *arguments)
    return str(raised.value.stderr)


def test_readers_of_a_group_need_read_on_the_stream_and_its_state_for_themselves(run: Run) -> None:
    run("writer", "append", "mine", "stream", "one", "two")

    assert run("group", "read", "mine", "mine", "stream", "2") == [b"one", b"two"]

    fault = fault_of(run, "member", "read", "mine", "mine", "stream", "1")
    assert "does not give configure" in fault  # it makes the state, though that is there


def test_a_stream_of_bytes_is_written_read_and_truncated_by_who_may(run: Run) -> None:
    run("writer", "bytes", "mine", "stream", "write:0123456789")
    assert run("reader", "bytes", "mine", "stream", "read:10") == [b"0123456789"]
    for user in ("writer", "reader"):
        fault_of(run, user, "bytes", "mine", "stream", "truncate:4")

    run("maker", "bytes", "mine", "stream", "truncate:4")

    assert run("reader", "bytes", "mine", "stream", "read:6") == [b"456789"]
    fault_of(run, "writer", "bytes", "mine", "stream", "read:6")
