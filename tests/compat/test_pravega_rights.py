"""Pravega's Java client, as it is, does what the rights of its user say, and no more."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat import pravega
from compat.broker.ways import REQUIRE_VARIABLE
from compat.clients.programs import Program, Unavailable
from gateway.pravega.controller.rpc import controller_pb2 as pb
from hutch.stream import messages as m
from tests.client import Client
from tests.compat.pages import ROOT
from tests.integration.administrator import ctl
from tests.integration.pravega.conftest import controller_port
from tests.integration.pravega.users import BESIDE, PASSWORD, config, controller, users_of_streams
from tests.integration.server import HutchServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CLIENT = Program(
    "Pravega's Java client",
    "java-client",
    ("java", "javac", "mvn"),
    parent=Path(pravega.__file__).parent,
)
OF_PAGE = ("^mine/_RG", "^mine/_RG", "^mine/")
"""The permissions that the page gives to a user that reads a scope by groups of any name."""
PAGE = ROOT / "docs" / "pravega.md"
RUN_S = 120.0
BYTES, STATE, GROUP = "^mine/bytes$", "^mine/state$", "^mine/_RGgroup$"
REFUSED = "AUTH_TOKEN_CHECK_FAILED"

Run = Callable[..., list[str]]


@pytest.fixture(scope="module")
def client() -> list[str]:
    """Return what runs the client; skip with the reason where it cannot be had."""
    try:
        return CLIENT.command()
    except Unavailable as error:
        if os.environ.get(REQUIRE_VARIABLE) == "1":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HutchServer]:
    """A server with three streams and users that may do a part each."""
    file = users_of_streams(
        tmp_path,
        all=(".*", ".*", ".*"),
        writer=("", BYTES, ""),
        reader=("", "", BYTES),
        maker=(BYTES, "", ""),
        sealer=(BYTES, BYTES, ""),
        owner=(STATE, STATE, STATE),
        uncompacting=("", STATE, STATE),
        member=("", GROUP, ""),
        **{"page-reader": OF_PAGE, "page-writer": ("", "^mine/bytes$", "")},
        groupless=("", OF_PAGE[1], OF_PAGE[2]),
        blind=(OF_PAGE[0], OF_PAGE[1], "^other/"),
        chunks=("^mine/_RG", "^mine/_RG", "^orders$"),
    )
    with HutchServer(tmp_path / "data", *BESIDE, "--users", str(file)) as server:
        with controller(server, "all") as client:
            client.ask("createScope", pb.ScopeInfo(scope="mine"))
            for name in ("bytes", "state", "_RGgroup"):
                client.ask("createStream", config("mine", name))
        yield server
        server.terminate()


@pytest.fixture
def run(server: HutchServer, client: list[str]) -> Run:
    """Return what runs the client as a user, and gives the lines that it prints."""

    def run(
        user: str, action: str, stream: str, *arguments: str, scope: str = "mine", given: str = ""
    ) -> list[str]:
        uri = f"tcp://127.0.0.1:{controller_port(server)}"
        done = subprocess.run(
            [*client, uri, user, PASSWORD, action, scope, stream, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=True,
        )
        return done.stdout.split("\n")[:-1]

    return run


def fault_of(run: Run, *arguments: str, **named: str) -> str:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        run(*arguments, **named)
    return str(raised.value.stderr)


def test_a_stream_of_bytes_is_written_read_truncated_and_sealed_by_those_that_may(
    run: Run,
) -> None:
    run("writer", "bytes", "bytes", "write:0123456789")
    assert run("reader", "bytes", "bytes", "read:10") == ["0123456789"]
    for user, action in (
        ("writer", "read:10"),
        ("writer", "truncate:4"),
        ("writer", "seal"),
        ("reader", "truncate:4"),
        ("maker", "read:10"),
    ):
        assert REFUSED in fault_of(run, user, "bytes", "bytes", action), (user, action)

    run("maker", "bytes", "bytes", "truncate:4")
    run("sealer", "bytes", "bytes", "seal")

    assert run("reader", "bytes", "bytes", "read:6") == ["456789"]


def test_a_synchronizer_needs_every_right_and_the_state_of_a_group_to_write_it_alone(
    run: Run,
) -> None:
    assert run("owner", "synchronize", "state", "a", "b") == ["a b"]
    assert REFUSED in fault_of(run, "uncompacting", "synchronize", "state", "c")

    assert run("member", "synchronize", "_RGgroup", "a", "b") == ["a b"]


def test_a_writer_goes_on_with_another_token_while_its_user_may(
    server: HutchServer, client: list[str]
) -> None:
    uri = f"tcp://127.0.0.1:{controller_port(server)}"
    command = [*client, uri, "writer", PASSWORD, "write", "mine", "bytes"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stderr is not None
        for number, write in enumerate(("^mine/", "mine/", "^$")):
            program.stdin.write(f"event {number}\n")
            program.stdin.flush()
            assert program.stdout.readline() == f"event {number}\n"
            ctl(server, "set_permissions", "writer", "", write, "")
        program.stdin.write("one more\n")
        program.stdin.flush()
        assert program.stdout.readline() == ""
        assert "Exception" in program.stderr.read()


def test_a_reader_and_a_writer_need_no_more_than_the_page_says(run: Run) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"`{each.replace('mine', 'sales')}`" in page for each in OF_PAGE)
    assert run("page-writer", "write", "bytes", given="one\ntwo\n") == ["one", "two"]
    assert run("page-reader", "read", "bytes", "any", "2") == ["reads", "3", "3"]

    assert "PERMISSION_DENIED" in fault_of(run, "page-writer", "read", "bytes", "other", "1")
    assert "PERMISSION_DENIED" in fault_of(run, "groupless", "read", "bytes", "other", "1")
    assert "PERMISSION_DENIED" in fault_of(run, "blind", "read", "bytes", "other", "1")
    assert REFUSED in fault_of(run, "page-reader", "write", "bytes", given="three\n")


def test_a_group_of_the_default_configuration_reads_the_chunks_of_a_stream_made_again(
    server: HutchServer, run: Run
) -> None:
    for number in (1, 2):
        with Client.opened(*server.endpoint, user="all", password=PASSWORD) as broker:
            broker.create("orders")
            name = ctl(server, "stream_status", "orders")[0]["pravega_name"]
            scope, _, stream = name.partition("/")
            broker.must("declare_publisher", m.DeclarePublisher(1, "", "orders"))
            broker.publish(1, [(1, b"x" * 100 * number)])
            broker.confirmed()
            found = run("chunks", "read", stream, f"group{number}", "1", scope=scope)
            assert int(found[1]) > 100 * number
            broker.code_of("delete_stream", m.DeleteStream("orders"))
