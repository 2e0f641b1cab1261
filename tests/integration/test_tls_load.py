"""TLS under load: floods of handshakes, certificates that change, readers that do not read."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import socket
import ssl
import statistics
import threading
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from compat.bench.usage import cpu_seconds
from compat.certificates import Authority, Certificates
from hutch.client.errors import ConnectionLost
from hutch.stream import messages as m
from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.integration.conftest import StartServer
from tests.integration.neighbour import MIB, Neighbour
from tests.integration.server import HutchServer
from tests.integration.tls_rig import HOST, context_of, tls_arguments, tls_endpoint
from tests.waiting import HANG_S

FLOOD = 3_000
"""Handshakes, a thousand a second where the machine can."""
RELOADS = 100


def hello_of(made: Certificates) -> bytes:
    """The first words of a handshake: they cost the server a signature and the sender nothing."""
    outgoing = ssl.MemoryBIO()
    tls = context_of(made.ca).wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=HOST)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def flood(endpoint: tuple[str, int], hello: bytes, count: int) -> None:
    """Begin so many handshakes, and leave each when its answer has come or soon after."""
    waiting: list[socket.socket] = []
    started = time.monotonic()
    for number in range(count):
        while number >= (time.monotonic() - started) * 1_000:
            time.sleep(0.001)
        client = socket.socket()
        client.setblocking(False)  # noqa: FBT003 - the standard library's signature
        with contextlib.suppress(BlockingIOError):
            client.connect(endpoint)
        waiting.append(client)
        if len(waiting) >= 50:
            with contextlib.suppress(OSError):
                waiting[-50].send(hello)
        if len(waiting) >= 400:
            waiting.pop(0).close()
    for client in waiting:
        client.close()


def round_trips(server: HutchServer, flooding: BaseProcess) -> list[float]:
    """Ask and wait, again and again; gives how much the server computed meanwhile, in seconds."""
    took: list[float] = []
    with Client.opened(*server.endpoint) as client:
        while flooding.is_alive():
            asked = cpu_seconds([server.pid])
            client.request("metadata", m.Metadata(("none",)))
            took.append(cpu_seconds([server.pid]) - asked)
            time.sleep(0.002)
    return took


def test_a_flood_of_handshakes_does_not_hold_up_who_is_connected(
    start_server: StartServer, made: Certificates
) -> None:
    server = start_server(*tls_arguments(made))
    # In a process of its own: it shall hold up the server, not the one who asks.
    flooding = multiprocessing.get_context("spawn").Process(
        target=flood, args=(tuple(tls_endpoint(server)), hello_of(made), FLOOD), daemon=True
    )
    flooding.start()
    took = round_trips(server, flooding)
    assert flooding.exitcode == 0
    assert len(took) > 50
    # It goes on with handshakes while the one who asked waits for a processor: not the slowest.
    assert statistics.quantiles(took, n=100)[98] < 0.25
    assert statistics.median(took) < 0.05
    with Client.opened(*tls_endpoint(server), tls=context_of(made.ca), timeout_s=HANG_S):
        pass


@pytest.fixture
def of_few_handshakes(start_server: StartServer, made: Certificates) -> tuple[str, int]:
    """Start a server that has 20 handshakes at once at most; return its TLS address."""
    environment = {"HUTCH_TLS__HANDSHAKES_MAX": "20", "HUTCH_TLS__HANDSHAKE_TIMEOUT_MS": "60000"}
    return tls_endpoint(start_server(*tls_arguments(made), environment=environment))


def test_idle_handshakes_make_room_for_others(
    of_few_handshakes: tuple[str, int], made: Certificates
) -> None:
    endpoint = of_few_handshakes
    with contextlib.ExitStack() as idle:
        clients = [
            idle.enter_context(socket.create_connection(endpoint, HANG_S)) for _ in range(60)
        ]
        with Client.opened(*endpoint, tls=context_of(made.ca)) as client:
            client.create("in-spite-of-them")
        assert clients[0].recv(1) == b"", "the oldest goes first"
        clients[-1].settimeout(0.2)
        with pytest.raises(TimeoutError):
            clients[-1].recv(1)


def test_idle_handshakes_of_one_address_push_out_none_of_another(
    of_few_handshakes: tuple[str, int], made: Certificates
) -> None:
    endpoint = of_few_handshakes
    with contextlib.ExitStack() as idle:
        other = socket.create_connection(endpoint, HANG_S, source_address=("127.0.0.2", 0))
        idle.enter_context(other)
        clients = [
            idle.enter_context(socket.create_connection(endpoint, HANG_S)) for _ in range(60)
        ]
        assert clients[0].recv(1) == b""

        with context_of(made.ca).wrap_socket(other, server_hostname="localhost") as greeted:
            assert greeted.version()


def test_handshakes_hold_no_place_of_a_connection(
    start_server: StartServer, made: Certificates
) -> None:
    server = start_server(*tls_arguments(made), environment={"HUTCH_STREAM__CONNECTIONS_MAX": "2"})
    endpoint = tls_endpoint(server)
    with contextlib.ExitStack() as idle:
        for _ in range(30):
            idle.enter_context(socket.create_connection(endpoint, HANG_S))
        with Client.opened(*endpoint, tls=context_of(made.ca)), Client.opened(*server.endpoint):
            pass


class Publisher(threading.Thread):
    """Publishes over TLS, one message after another, until told to stop."""

    def __init__(self, server: HutchServer, tls: ssl.SSLContext, stream: str) -> None:
        super().__init__(daemon=True)
        self._server, self._tls, self._stream = server, tls, stream
        self.is_over = threading.Event()
        self.error: BaseException | None = None
        self.count = 0

    def run(self) -> None:
        try:
            with Client.opened(
                *tls_endpoint(self._server), tls=self._tls, timeout_s=HANG_S
            ) as client:
                client.create(self._stream)
                client.declare(1, self._stream)
                while not self.is_over.is_set():
                    self.count += 1
                    client.publish(1, {self.count: bytes(500)})
                    assert client.confirmed() == (1, (self.count,))
        except BaseException as error:  # noqa: BLE001 - raised in the test's own thread
            self.error = error


def test_a_hundred_new_certificates_drop_nobody(
    start_server: StartServer, made: Certificates, tmp_path: Path
) -> None:
    authority = Authority.of(made)
    pairs = [authority.server(tmp_path, f"shown-{number}") for number in range(2)]
    shown, key = tmp_path / "server.pem", tmp_path / "server-key.pem"

    def show(number: int) -> None:
        pair = pairs[number % 2]
        for source, target in ((pair.certificate, shown), (pair.key, key)):
            new = target.with_suffix(".new")
            new.write_bytes(source.read_bytes())
            new.replace(target)

    show(0)
    server = start_server("--tls-port", "0", "--tls-cert", str(shown), "--tls-key", str(key))
    tls = context_of(made.ca)
    publishers = [Publisher(server, tls, f"reloaded-{number}") for number in range(3)]
    for publisher in publishers:
        publisher.start()
    serials = set()
    for number in range(RELOADS):
        show(number)
        server.process.send_signal(signal.SIGHUP)
        with Client(*tls_endpoint(server), tls=tls, timeout_s=HANG_S) as client:
            assert isinstance(client.socket, ssl.SSLSocket)
            found = client.socket.getpeercert()
            assert found is not None
            serials.add(found["serialNumber"])
    for publisher in publishers:
        publisher.is_over.set()
        publisher.join(HANG_S)
        assert publisher.error is None
        assert publisher.count > 1
    assert len(serials) == 2, "both certificates were shown"


@pytest.fixture
def filled(start_server: StartServer, made: Certificates) -> HutchServer:
    """A server over TLS with a stream of 64 MiB."""
    server = start_server(*tls_arguments(made), "--durability", "os")
    with Client.opened(*server.endpoint) as client:
        client.create("big")
        client.declare(1, "big")
        for first in range(0, 32_000, 400):
            client.publish(1, [(i, bytes(2_000)) for i in range(first, first + 400)])
            client.confirmed_ids(400)
    return server


def test_readers_that_never_read_cost_little(filled: HutchServer, made: Certificates) -> None:
    with Neighbour(filled, growth_bytes_max=16 * MIB), contextlib.ExitStack() as stack:
        for _ in range(10):
            client = Client(
                *tls_endpoint(filled), receive_buffer_bytes=4096, tls=context_of(made.ca)
            )
            stack.enter_context(client).handshake()
            client.send_request("subscribe", m.Subscribe(1, "big", FIRST, 60_000, {}))
        time.sleep(1.5)


def test_a_reader_that_was_slow_gets_everything(filled: HutchServer, made: Certificates) -> None:
    with Client(
        *tls_endpoint(filled), receive_buffer_bytes=4096, tls=context_of(made.ca), timeout_s=HANG_S
    ) as client:
        client.handshake()
        client.subscribe(1, "big", FIRST, credit=60_000)
        time.sleep(0.5)
        expected = 0
        while expected < 32_000:
            chunk = client.delivery().chunk
            assert chunk.chunk_id == expected
            expected += chunk.record_count


def test_a_publisher_that_never_reads_its_confirms_is_not_read_for_ever(
    filled: HutchServer, made: Certificates
) -> None:
    with (
        Neighbour(filled, growth_bytes_max=16 * MIB),
        Client(*tls_endpoint(filled), receive_buffer_bytes=4096, tls=context_of(made.ca)) as client,
    ):
        client.handshake()
        client.create("unread")
        client.declare(1, "unread")
        client.timeout_s = 0.5
        with pytest.raises(ConnectionLost, match="timed out"):
            publish_for_ever(client)


def publish_for_ever(client: Client) -> None:
    """Publish more than any buffer takes."""
    for first in range(0, 40_000_000, 1_000):
        client.publish(1, [(first + i, b"") for i in range(1_000)])
