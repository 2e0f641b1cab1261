"""`--early-port` of `hutch store serve`, `--store-early-port` of `hutch serve`: real processes."""

from pathlib import Path

import pytest

from hutch.pravega import early_messages as m
from hutch.stream.messages import CreateStream
from tests.client import Client
from tests.early_rig import APPENDER, SEGMENT, EarlyClient, block, stored
from tests.integration.server import Endpoint, HutchServer, StoreProcess
from tests.pravega_client import WireClient


def early(server: HutchServer) -> EarlyClient:
    """Connect to the early dialect's port of a server, which the ready line names."""
    [word] = [word for word in server.ready_line.split() if word.startswith("early=")]
    host, _, port = word.removeprefix("early=").rpartition(":")
    return EarlyClient(*Endpoint(host, int(port)))


def test_what_was_acknowledged_is_there_after_kill_9(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "data", "--early-port", "0") as server:
        with early(server) as client:
            client.set_up()
            assert client.append(0, b"one", b"two") == 22
        server.kill()
        server.start()
        with early(server) as client, WireClient(*server.store) as today:
            assert client.set_up() == 22
            assert client.append(0, b"one", b"two") == 22
            assert today.content(SEGMENT) == stored(b"one", b"two")
        server.terminate()


def test_a_stop_acknowledges_what_was_taken_and_ends_what_waits(tmp_path: Path) -> None:
    with (
        StoreProcess(tmp_path / "data", "--early-port", "0") as server,
        early(server) as client,
        early(server) as reader,
    ):
        client.set_up()
        reader.send(m.ReadSegment(SEGMENT, 1_000, 8), m.KeepAlive(b""))
        reader.must(m.KeepAlive)
        client.send(*(each for n in range(50) for each in block(9 * n, b"x")))
        while client.must(m.DataAppended).acknowledged < 450:
            pass
        server.terminate()
        assert client.is_ended()
        assert reader.is_ended()


def test_beside_streams_what_is_the_gateways_is_closed_and_the_rest_is_open(tmp_path: Path) -> None:
    with HutchServer(tmp_path / "data", "--store-early-port", "0") as server:
        with Client.opened(*server.endpoint) as streams:
            streams.must("create_stream", CreateStream("orders", {}))
        chunks = "rmq-.2f/_orders-1/0.#epoch.0"
        for closed in (chunks, "hutch/_users_kvtable/0.#epoch.0"):
            for message in (m.SetupAppend(APPENDER, closed), m.ReadSegment(closed, 0, 8)):
                with early(server) as client:
                    client.send(message)
                    assert client.is_ended()
        with early(server) as client:
            client.set_up()
            client.append(0, b"beside streams")
            assert client.read().data == stored(b"beside streams")
        server.terminate()
        assert "is closed to this port" in server.stderr


@pytest.mark.parametrize(("host", "is_warned"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_a_host_that_others_reach_is_warned_of(
    tmp_path: Path, host: str, *, is_warned: bool
) -> None:
    environment = {"HUTCH_EARLY__HOST": host}
    with StoreProcess(tmp_path / "data", "--early-port", "0", environment=environment) as server:
        assert f"early={host}:" in server.ready_line
        server.terminate()
        assert ("clients of the early dialect need no login" in server.stderr) is is_warned
