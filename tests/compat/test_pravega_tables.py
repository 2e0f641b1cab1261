"""Tables as Pravega's Java clients use them, as they are: of today, and of before 0.10."""

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
from tests.integration.pravega.conftest import controller_port
from tests.integration.pravega.users import BESIDE, PASSWORD, controller, users_of_streams
from tests.integration.server import HutchServer, StoreProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FOLDER = Path(pravega.__file__).parent
TOOLS = ("java", "javac", "mvn")
CLIENT = Program("Pravega's tables by Java", "java-tables", TOOLS, parent=FOLDER)
OLDER = Program("Pravega's tables by Java 0.8.0", "java-tables-0.8.0", TOOLS, parent=FOLDER)
SCENES = FOLDER / "java-tables" / "scenes-of-pravega.txt"
"""The lines that the program printed beside a real Pravega 0.13.0."""
RUN_S = 400.0
TABLE = "^mine/t$"

Run = Callable[..., list[str]]


def command_of(program: Program) -> list[str]:
    """Return what runs a program; skip with the reason where it cannot be had."""
    try:
        return program.command()
    except Unavailable as error:
        if os.environ.get(REQUIRE_VARIABLE) == "1":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


def lines_of(program: Program, server: HutchServer, *arguments: str) -> list[str]:
    """Run a program; return the lines that it prints."""
    done = subprocess.run(
        [*command_of(program), f"tcp://127.0.0.1:{controller_port(server)}", *arguments],
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreProcess]:
    arguments = ("--controller-port", "0", "--durability", "os")
    with StoreProcess(tmp_path / "data", *arguments) as server:
        yield server
        server.terminate()


def test_each_step_has_the_outcome_that_it_has_with_pravega(store: StoreProcess) -> None:
    printed = lines_of(CLIENT, store, "", "", "scenes", "mine", "")
    assert printed == SCENES.read_text().splitlines()


def test_many_keys_come_in_order_and_once_also_while_each_second_is_removed(
    store: StoreProcess,
) -> None:
    assert lines_of(CLIENT, store, "", "", "many", "mine", "", "100000") == [
        "many: create: true",
        "many: keys: 100000 true 120364045350000",
        "many: entries: 100000 16966435050000",
        "many: while each second is removed: 100000 true 120364045350000",
        "many: the rest: 50000 true 60182022700000",
        "many: delete: true",
    ]


def test_clients_of_before_0_10_have_keys_of_any_length_and_families(store: StoreProcess) -> None:
    assert lines_of(OLDER, store, "mine") == [
        "create: true",
        "create again: false",
        "list: mine/t",
        "get none: null",
        "get: 1",
        "put if there is none: BadKeyVersionException",
        "replace the old one: BadKeyVersionException",
        "replace a missing one: NoSuchKeyException",
        "the same key of a family: null",
        "keys of family: 50",
        "keys of other: 50",
        "keys of family2: 50",
        "keys of f: 50",
        "keys of none: 0",
        "entries: 50",
        "get all: [other 1, none, other 2]",
        "map: 50",
        "clear: []",
        "others are left: 100",
        "remove: null",
        "get what is gone: null",
        "delete: true",
        "delete again: false",
    ]


# Rights


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Return what runs the client as a user of a server, and gives the lines that it prints."""
    file = users_of_streams(
        tmp_path,
        all=(".*", ".*", ".*"),
        maker=(TABLE, "", ""),
        writer=("", TABLE, ""),
        reader=("", "", TABLE),
        none=("", "", "^mine/other$"),
    )
    with HutchServer(tmp_path / "data", *BESIDE, "--users", str(file)) as server:
        with controller(server, "all") as client:
            client.ask("createScope", pb.ScopeInfo(scope="mine"))

        def run(user: str, action: str, *arguments: str) -> list[str]:
            return lines_of(CLIENT, server, user, PASSWORD, action, "mine", "t", *arguments)

        yield run
        server.terminate()


def test_users_do_what_they_may_and_no_more(run: Run) -> None:
    refused = "StatusRuntimeException"
    given_up = "ConnectionFailedException"  # what the client makes of a refused token
    for user in ("writer", "reader", "none"):
        assert run(user, "create") == [f"create: {refused}"]
    assert run("maker", "create") == ["create: true"]

    assert run("writer", "put", "aaaa01", "value") == ["put: true"]
    assert run("reader", "put", "aaaa01", "other") == [f"put: {given_up}"]
    assert run("maker", "put", "aaaa01", "other") == [f"put: {given_up}"]
    assert run("none", "put", "aaaa01", "other") == [f"put: {refused}"]

    assert run("reader", "get", "aaaa01") == ["get: value"]
    assert run("maker", "get", "aaaa01") == [f"get: {given_up}"]
    assert run("none", "get", "aaaa01") == [f"get: {refused}"]

    assert run("reader", "list") == ["list: [mine/t]"]
    assert run("none", "list") == ["list: NoSuchScopeException"]

    for user in ("writer", "reader", "none"):
        assert run(user, "delete") == [f"delete: {refused}"]
    assert run("maker", "delete") == ["delete: true"]
