"""A stop beside a client that does not read, with a store that fails, and with both."""

from __future__ import annotations

import re
import resource
import select
import signal
import socket
from pathlib import Path

import pytest

from hutch.stream import messages as m
from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.integration.conftest import assert_no_traceback, external_endpoint
from tests.integration.load import committed_offset
from tests.integration.server import HutchServer
from tests.waiting import HANG_S

RECORDS = 8_000
RECORD_BYTES = 2_000
SMALL_BUFFER = 4_096
TOO_LARGE_BYTES = 2 * 1024
"""A store that may write no larger files cannot be closed well."""


def filled(server: HutchServer) -> None:
    with Client.opened(*server.endpoint) as client:
        client.create("s")
        client.declare(1, "s")
        for first in range(0, RECORDS, 500):
            client.publish(1, [(i, bytes(RECORD_BYTES)) for i in range(first, first + 500)])
            client.confirmed_ids(500)


def that_does_not_read(server: HutchServer) -> Client:
    """Return a client for which more is queued than the system takes."""
    client = Client(*server.endpoint, receive_buffer_bytes=SMALL_BUFFER)
    client.handshake()
    client.send_request("subscribe", m.Subscribe(1, "s", FIRST, 60_000, {}))
    assert select.select([client], [], [], HANG_S)[0]
    return client


def peer_of(client: Client) -> str:
    with socket.fromfd(client.fileno(), socket.AF_INET, socket.SOCK_STREAM) as same:
        return "{}:{}".format(*same.getsockname())


@pytest.mark.parametrize("fails", [False, True], ids=["stores", "fails"])
@pytest.mark.parametrize("reads", [True, False], ids=["reads", "does not read"])
def test_a_stop_is_clean_unless_the_next_start_has_to_recover(
    tmp_path: Path, *, reads: bool, fails: bool
) -> None:
    if external_endpoint() is not None:
        pytest.skip("needs a server that can be stopped")
    with HutchServer(tmp_path / "data") as server:
        filled(server)
        client = None if reads else that_does_not_read(server)
        if fails:
            most = len(server.stderr) + TOO_LARGE_BYTES
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (most, most))
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(HANG_S) == int(fails)

        said = server.stderr
        assert f"stopped clean={not fails}" in said
        assert said.count("stop is not clean, the next start recovers error=") == int(fails)
        unread = re.findall(r"client does not read, cut off peer=(\S+) left_bytes=(\d+)", said)
        assert [peer for peer, _ in unread] == ([] if client is None else [peer_of(client)])
        assert all(int(left_bytes) > 0 for _, left_bytes in unread)
        assert_no_traceback(server)
        if client is not None:
            client.disconnect()
        server.start()
        with Client.opened(*server.endpoint) as other:
            assert committed_offset(other, "s") == RECORDS - 1
