"""What is unfinished takes memory that is there again when its clients have gone.

Merges of tables, and what is refused beyond a limit, are in `test_costs.py`.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection

from hutch.pravega import early_messages as early
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.codec import encode
from hutch.pravega.early_codec import EARLY
from hutch.pravega.wire_types import KeyAndValue, TableKey
from tests.controller_client import SERVICE
from tests.early_rig import APPENDER, SEGMENT, block
from tests.integration.costs import MIB, amount, given_back
from tests.integration.pravega.conftest import controller_port
from tests.integration.server import Endpoint, StoreProcess
from tests.waiting import HANG_S

CONNECTIONS: Final = amount(150, 25)
"""Of 16 MiB each."""
HTTP_CONNECTIONS: Final = 6
CALLS: Final = 100
CALL_BYTES: Final = 600
"""Less than a stranger may have unfinished, of all calls of a connection."""
_SENT_S: Final = 0.5
"""Time without room for more, after which a server takes no more."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StoreProcess]:
    ports = ("--early-port", "0", "--controller-port", "0")
    with StoreProcess(tmp_path / "data", "--durability", "os", *ports) as server:
        yield server
        server.terminate()
        assert "Traceback" not in server.logs


def store_port(server: StoreProcess) -> Endpoint:
    return server.store


def early_port(server: StoreProcess) -> Endpoint:
    address = server.ready_line.split("early=")[1].split()[0]
    return Endpoint(server.host, int(address.rpartition(":")[2]))


def controllers_port(server: StoreProcess) -> Endpoint:
    return Endpoint(server.host, controller_port(server))


def unfinished_table() -> bytes:
    entries = (KeyAndValue(TableKey(b"%d" % number), bytes(MIB - 100)) for number in range(15))
    update = t.UpdateTableEntries(1, "scope/t/table", "", tuple(entries))
    return encode(m.Hello(18, 5)) + encode(update)[:-20]


def unfinished_block() -> bytes:
    messages = (early.SetupAppend(APPENDER, SEGMENT), *block(0, *[bytes(MIB)] * 16)[:-1])
    return b"".join(map(EARLY.encode, messages))


def unfinished_calls() -> bytes:
    connection = H2Connection(H2Configuration(client_side=True))
    connection.initiate_connection()
    head = [
        *((":method", "POST"), (":scheme", "http"), (":authority", "x")),
        (":path", f"/{SERVICE.full_name}/createScope"),
        *(("te", "trailers"), ("content-type", "application/grpc")),
    ]
    for number in range(1, 2 * CALLS, 2):
        connection.send_headers(number, head)
        connection.send_data(number, b"\0" + (4 * MIB).to_bytes(4) + bytes(CALL_BYTES))
    return connection.data_to_send()


@pytest.mark.parametrize(
    ("port", "unfinished", "count"),
    [
        (store_port, unfinished_table, CONNECTIONS),
        (early_port, unfinished_block, CONNECTIONS),
        (controllers_port, unfinished_calls, HTTP_CONNECTIONS),
    ],
)
def test_what_is_unfinished_goes_with_its_clients(
    server: StoreProcess,
    port: Callable[[StoreProcess], Endpoint],
    unfinished: Callable[[], bytes],
    count: int,
) -> None:
    data = unfinished()
    with given_back(server), ExitStack() as stack:
        for _ in range(count):
            client = stack.enter_context(socket.create_connection(port(server), HANG_S))
            client.settimeout(_SENT_S)
            with suppress(OSError):  # it may be refused
                client.sendall(data)
