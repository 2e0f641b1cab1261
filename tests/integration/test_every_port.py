"""At every port, strangers keep nobody out and hold little, for a short time."""

from __future__ import annotations

import re
import resource
import selectors
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection

from gateway.pravega.controller.rpc import controller_pb2 as pb
from hutch.pravega import early_messages
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.codec import encode
from hutch.pravega.early_codec import EARLY
from hutch.pravega.wire_types import KeyAndValue, TableKey
from hutch.stream import messages as stream
from hutch.stream.codec import encode_request
from tests.client import Client
from tests.controller_client import SERVICE, ControllerClient, basic
from tests.http_client import Api
from tests.integration.server import Endpoint, HutchServer
from tests.loopbacks import needs_ipv6
from tests.pravega_client import WireClient
from tests.waiting import HANG_S, wait_until

DESCRIPTORS: Final = 600
STRANGERS: Final = 700
MIB: Final = 1 << 20
THERE: Final = "127.0.0.2"
"""Where strangers come from."""
_ADDRESS: Final = re.compile(r"\b(\w+)=127\.0\.0\.1:(\d+)")
_LIMITED: Final = ("sh", "-c", f'ulimit -n {DESCRIPTORS} && exec "$@"', "sh")


class Port(NamedTuple):
    """A port of the server.

    Attributes:
        half: The beginning of what a client sends first, cut short.
        whole: What a client may send first without a login, which is answered or taken.
    """

    half: bytes
    whole: bytes = b""


def _http2(*, is_whole: bool) -> bytes:
    http = H2Connection(H2Configuration(client_side=True))
    http.initiate_connection()
    data = http.data_to_send()
    return data if is_whole else data[:12]


PORTS: Final[Mapping[str, Port]] = MappingProxyType(
    {
        "stream": Port(b"\0\0\0\x20\0\x11"),
        "management": Port(
            b"GET /api/whoami HTTP/1.1\r\nHos", b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
        ),
        "mewbase": Port(b"\x50\0\0\0\2"),
        "store": Port(encode(m.Hello(17, 5))[:9], encode(m.Hello(17, 5))),
        "controller": Port(_http2(is_whole=False), _http2(is_whole=True)),
        "early": Port(
            EARLY.encode(early_messages.KeepAlive(b""))[:3],
            EARLY.encode(early_messages.KeepAlive(b"")),
        ),
    }
)
"""Every port of a server without TLS, by its word in the ready line."""

NOT_LISTENED_ON: Final = {"advertised"}
GREETING: Final = encode_request("peer_properties", stream.PeerProperties({}), correlation_id=1)
ALL_ON: Final = (
    *("--mewbase-port", "0", "--store-port", "0"),
    *("--store-controller-port", "0", "--store-early-port", "0"),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    """A server with all its ports, and few descriptors."""
    data = tmp_path_factory.mktemp("ports") / "data"
    trusting = {"HUTCH_EARLY__TRUSTS_EVERYONE": "true"}
    arguments = (*ALL_ON, "--durability", "os")
    with HutchServer(data, *arguments, environment=trusting, enter=_LIMITED) as server:
        yield server
        assert "Traceback" not in server.logs


def ports_of(server: HutchServer) -> dict[str, Endpoint]:
    found = _ADDRESS.findall(server.ready_line)
    return {word: Endpoint("127.0.0.1", int(port)) for word, port in found}


@pytest.fixture
def many_sockets() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4_096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def came(endpoint: Endpoint, said: bytes, count: int, stack: ExitStack) -> list[socket.socket]:
    """Let strangers come that say something and no more."""
    strangers = []
    for _ in range(count):
        one = stack.enter_context(
            socket.create_connection(endpoint, HANG_S, source_address=(THERE, 0))
        )
        with suppress(ConnectionError):
            one.sendall(said)
        strangers.append(one)
    return strangers


def all_are_served(ports: Mapping[str, Endpoint]) -> None:
    """Log in, or ask something, at every port."""
    with Client.opened(*ports["stream"]) as client:
        client.request("metadata", stream.Metadata(("none",)))
    assert Api(*ports["management"]).status("GET", "whoami") == 200
    with ControllerClient(ports["controller"].port, basic("guest", "guest")) as controller:
        controller.ask("listScopes", pb.ScopesRequest())
    for word in ("mewbase", "store", "early"):
        with socket.create_connection(ports[word], HANG_S) as one:
            one.sendall(PORTS[word].whole)
            if PORTS[word].whole:
                assert one.recv(8)


def ended_within(strangers: Sequence[socket.socket], seconds: float) -> int:
    """Return how many of some connections the server ends in a time."""
    with selectors.DefaultSelector() as selector:
        for one in strangers:
            one.settimeout(0)
            selector.register(one, selectors.EVENT_READ)
        left, deadline = len(strangers), time.monotonic() + seconds
        while left and time.monotonic() < deadline:
            for key, _ in selector.select(0.5):
                with suppress(BlockingIOError):
                    if not _received(key.fileobj):
                        selector.unregister(key.fileobj)
                        left -= 1
    return len(strangers) - left


def _received(one: object) -> bytes:
    assert isinstance(one, socket.socket)
    try:
        return one.recv(65_536)
    except ConnectionResetError:
        return b""


def test_every_port_is_in_the_table(server: HutchServer) -> None:
    assert ports_of(server).keys() - NOT_LISTENED_ON == PORTS.keys()
    all_are_served(ports_of(server))


@needs_ipv6
def test_every_port_is_at_both_loopbacks_with_one_number(server: HutchServer) -> None:
    ports = {word: endpoint.port for word, endpoint in ports_of(server).items()}
    listened_on = sorted(ports[word] for word in PORTS)
    also = re.search(r" also=(\S+)$", server.ready_line)
    assert also is not None
    assert sorted(also[1].split(",")) == sorted(f"[::1]:{port}" for port in listened_on)
    for word, port in PORTS.items():
        with socket.create_connection(("::1", ports[word]), HANG_S) as one:
            said = GREETING if word == "stream" else port.whole
            one.sendall(said)
            assert not said or one.recv(8), word


@pytest.mark.usefixtures("many_sockets")
@pytest.mark.parametrize("said", ["nothing", "half", "whole"])
@pytest.mark.parametrize("word", PORTS)
def test_strangers_at_one_port_keep_nobody_out_of_the_others(
    server: HutchServer, word: str, said: str
) -> None:
    ports = ports_of(server)
    words = {"nothing": b"", "half": PORTS[word].half, "whole": PORTS[word].whole}[said]
    with ExitStack() as stack:
        came(ports[word], words, STRANGERS, stack)

        assert server.open_file_count() < DESCRIPTORS - 10
        all_are_served(ports)


def test_what_strangers_begin_and_do_not_end_is_over_in_ten_seconds(server: HutchServer) -> None:
    ports = ports_of(server)
    with ExitStack() as stack:
        strangers = [
            one for word, port in PORTS.items() for one in came(ports[word], port.half, 20, stack)
        ]
        assert ended_within(strangers, HANG_S) == len(strangers)


def keepalive_timers(port: int) -> list[str]:
    """Return the timers of the server's connections at a port, as Linux tells them."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[5][:2] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "01"]


@pytest.mark.parametrize("word", PORTS)
def test_the_machine_of_a_silent_client_is_asked_whether_it_is_there(
    server: HutchServer, word: str
) -> None:
    endpoint = ports_of(server)[word]
    with socket.create_connection(endpoint, HANG_S):
        wait_until(lambda: "02" in keepalive_timers(endpoint.port))


def _large_update() -> bytes:
    entry = KeyAndValue(TableKey(b"k"), bytes(16 * MIB - 256))
    return encode(t.UpdateTableEntries(1, "s/t/0.#epoch.0", "none", (entry,)))


def test_large_requests_without_a_right_token_are_not_kept(server: HutchServer) -> None:
    ports = ports_of(server)
    before = server.rss_bytes()
    data = encode(m.Hello(17, 5)) + _large_update()[:-20]
    with ExitStack() as stack:
        strangers = came(ports["store"], b"", 20, stack)
        for one in strangers:
            with suppress(ConnectionError):
                one.sendall(data)
        assert ended_within(strangers, HANG_S) == len(strangers)
        assert server.rss_bytes() - before < 64 * MIB
        all_are_served(ports)


def test_a_large_first_request_with_a_right_token_is_taken(server: HutchServer) -> None:
    ports = ports_of(server)
    with ControllerClient(ports["controller"].port, basic("guest", "guest")) as controller:
        controller.ask("createScope", pb.ScopeInfo(scope="s"))
        token = controller.ask("getDelegationToken", pb.StreamInfo(scope="s", stream="t"))
    table = "s/t/0.#epoch.0"
    entries = tuple(KeyAndValue(TableKey(b"%d" % n), bytes(MIB - 100)) for n in range(3))
    create = t.CreateTableSegment(1, table, token.delegationToken)
    update = t.UpdateTableEntries(2, table, token.delegationToken, entries)
    with WireClient(*ports["store"]) as client:
        client.ask(create, m.SegmentCreated)
    with WireClient(*ports["store"]) as client:
        client.ask(update, t.TableEntriesUpdated)


def test_calls_without_a_caller_hold_one_window_of_their_connection(server: HutchServer) -> None:
    ports = ports_of(server)
    before = server.rss_bytes()
    path = f"/{SERVICE.full_name}/createScope"
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "a"}
    fields |= {"content-type": "application/grpc", "authorization": basic("guest", "x")}
    with ExitStack() as stack:
        for one in came(ports["controller"], b"", 6, stack):
            http = H2Connection(H2Configuration(client_side=True))
            http.initiate_connection()
            for _ in range(100):
                number = http.get_next_available_stream_id()
                http.send_headers(number, list(fields.items()))
                if room := min(http.local_flow_control_window(number), 16_000):
                    http.send_data(number, bytes(room))
            with suppress(ConnectionError):
                one.sendall(http.data_to_send())
        all_are_served(ports)
        assert server.rss_bytes() - before < 64 * MIB
