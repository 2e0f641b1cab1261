"""Files of the product that a message or a command passes through, uncompiled.

`test_files_entered.py` runs these tests, since a hook does not see what is compiled.

A whole server runs in this process: its event loop in a thread of its own, the store's threads
beside it. A connection and a stream are used once before, so that what runs once is not counted.
"""

import asyncio
import asyncio.selector_events
import http.client
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Final

import pytest

from gateway.management.port import ManagementPort
from gateway.serving import backend
from gateway.settings.model import Settings
from gateway.stream.port import StreamPort
from hutch.stream import messages as m
from hutch.stream.offsets import FIRST
from store.api import Durability
from tests.client import Client
from tests.http_client import GUEST, basic
from tests.waiting import HANG_S

ROOT: Final = Path(__file__).parents[2]
PRODUCT: Final = tuple(f"{ROOT / folder}/" for folder in ("gateway", "hutch", "store"))
EDGE: Final = str(ROOT / "gateway" / "server" / "connections" / "edge.py")
CONNECTION: Final = str(ROOT / "gateway" / "server" / "connections" / "connection.py")
HTTP: Final = str(ROOT / "gateway" / "management" / "http" / "protocol.py")
SENDING: Final = (EDGE, asyncio.selector_events.__file__)
"""Files that hand bytes to a socket: of the stream protocol, and of HTTP."""


class Walk:
    """The files that are entered from one function on; it is the hook of the server's threads."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._first: tuple[str, str] | None = None
        self._ends_with_send = False
        self._is_on = False

    def begin(self, file: str, function: str, *, ends_with_send: bool) -> None:
        """Note files from the next call of a function on, until `files`, or a send before."""
        self._files = set()
        self._ends_with_send = ends_with_send
        self._first = file, function

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Look at one call or return."""
        code = frame.f_code
        if event == "call":
            if (code.co_filename, code.co_name) == self._first:
                self._first, self._is_on = None, True
            if self._is_on and code.co_filename.startswith(PRODUCT):
                self._files.add(code.co_filename)
        elif event == "c_return" and self._ends_with_send and code.co_filename in SENDING:
            self._is_on &= getattr(argument, "__name__", "") != "send"

    def files(self) -> list[str]:
        """Return what was noted."""
        self._is_on = False
        return sorted(str(Path(each).relative_to(ROOT)) for each in self._files)


class Observed:
    """A server in a thread of this process, with a hook on each of its threads."""

    def __init__(self, directory: Path) -> None:
        settings = Settings()
        changes = {"data_directory": directory, "durability": Durability.DISK}
        self._settings = settings.model_copy(
            update={
                "store": settings.store.model_copy(update=changes),
                "stream": settings.stream.model_copy(update={"port": 0}),
                "management": settings.management.model_copy(update={"port": 0}),
            }
        )
        self.walk = Walk()
        self.port = self.management = 0
        self._stop: Callable[[], object] = lambda: None
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        """Return when it serves."""
        self._thread.start()
        assert self._is_ready.wait(HANG_S)

    def stop(self) -> None:
        """End it."""
        self._stop()
        self._thread.join()

    def _run(self) -> None:
        threading.setprofile(self.walk)
        sys.setprofile(self.walk)
        try:
            asyncio.run(self._serve())
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    async def _serve(self) -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        process = backend.server(self._settings, stop)
        await process.open()
        await process.start()
        streams = process.backend.context.port(StreamPort)
        management = process.backend.context.port(ManagementPort)
        assert streams is not None
        assert management is not None
        self.port, self.management = streams.address[1], management.endpoints[0].address[1]
        self._stop = lambda: loop.call_soon_threadsafe(stop.set)
        self._is_ready.set()
        await process.run()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Observed]:
    observed = Observed(tmp_path / "data")
    observed.start()
    yield observed
    observed.stop()


def check(files: list[str], most: int, *, seen: str) -> None:
    assert len(files) <= most, "\n".join([f"{len(files)} files:", *files])
    assert seen in files


def test_a_publish_to_its_confirm(server: Observed) -> None:
    with Client.opened("127.0.0.1", server.port) as client:
        client.create("orders")
        client.declare(1, "orders")
        client.publish(1, {1: b"warm"})
        client.confirmed()
        server.walk.begin(CONNECTION, "received", ends_with_send=True)
        client.publish(1, {2: b"hello"})
        assert client.confirmed() == (1, (2,))
        check(server.walk.files(), 20, seen="store/local/commit/journal.py")


@pytest.mark.parametrize("record_bytes", [100, 100_000])
def test_a_deliver_from_the_disk_to_the_socket(server: Observed, record_bytes: int) -> None:
    with Client.opened("127.0.0.1", server.port) as client:
        client.create("orders")
        client.declare(1, "orders")
        client.publish(1, {1: b"warm"})
        client.confirmed()
        client.subscribe(1, "orders", FIRST, credit=1)
        client.delivery()
        client.publish(1, {2: bytes(record_bytes)})
        client.confirmed()
        server.walk.begin(CONNECTION, "_deliver_scheduled", ends_with_send=False)
        client.credit(1, 1)
        assert client.delivery().chunk.records() == [bytes(record_bytes)]
        check(server.walk.files(), 14, seen="store/local/reads.py")


def test_a_super_stream_to_the_reply(server: Observed) -> None:
    with Client.opened("127.0.0.1", server.port) as client:
        for name in ("warm", "orders"):
            partitions = (f"{name}-0", f"{name}-1")
            server.walk.begin(CONNECTION, "received", ends_with_send=True)
            client.must(
                "create_super_stream", m.CreateSuperStream(name, partitions, ("0", "1"), {})
            )
        check(server.walk.files(), 57, seen="store/local/commit/journal.py")


def test_a_put_of_a_policy_to_the_answer(server: Observed) -> None:
    client = http.client.HTTPConnection("127.0.0.1", server.management, timeout=HANG_S)
    body = json.dumps({"pattern": "^orders", "definition": {"max-age": "7D"}})
    for name in ("warm", "name"):
        server.walk.begin(HTTP, "get_buffer", ends_with_send=True)
        client.request("PUT", f"/api/policies/%2F/{name}", body, {"Authorization": basic(*GUEST)})
        answer = client.getresponse()
        assert (answer.status, answer.read()) == (http.client.CREATED, b"")
    client.close()
    check(server.walk.files(), 51, seen="store/local/commit/journal.py")
