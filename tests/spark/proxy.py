"""A proxy between client and server that counts, and that can do harm on the way."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Self

from hutch.stream.pipeline import TABLE

NAMES = {command.key: name for name, command in TABLE.by_name.items()}
DELIVER_HEAD_BYTES = 9
"""Size, key, version and subscription of a Deliver, before its chunk."""

Change = Callable[[str, bytearray], bytes | bytearray | None]


def as_it_is(_name: str, frame: bytearray) -> bytearray:
    return frame


def without_pipeline(_name: str, frame: bytearray) -> bytearray:
    """Let a Hutch look like a server that has no commands for pipelines."""
    return frame.replace(b"hutch.pipeline", b"other.pipeline")


class Proxy:
    """Passes whole frames, size in front, between clients and one server.

    Attributes:
        requests: How many frames clients have sent, by command.
        turns: How often a client has spoken after it was spoken to: round trips.
        opened: How many connections have been made.
        on_request: Sees each frame of a client before it goes on.
        on_answer: Gives what goes on of each frame of the server; None ends the connection.
    """

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = "127.0.0.1", 0
        self.requests: Counter[str] = Counter()
        self.turns = 0
        self.opened = 0
        self.on_request: Callable[[str], None] = lambda _name: None
        self.on_answer: Change = as_it_is
        self._server = (host, port)
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listening = socket.create_server((self.host, 0))
        self.port = self._listening.getsockname()[1]
        self._is_closed = False
        self._start(self._accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def options(self) -> dict[str, str]:
        """Options that lead Spark through here, and let it give up soon."""
        return {
            "endpoints": f"{self.host}:{self.port}",
            "advertised": "ignore",
            "planner.retries": "1",
            "planner.retryIntervalMs": "50",
        }

    def close(self) -> None:
        """Let no client in any more, and let all go."""
        self._is_closed = True
        _end(self._listening)
        with self._lock:
            held = list(self._sockets)
        for one in held:
            _end(one)

    @staticmethod
    def _start(work: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self.opened += 1
                try:
                    server = socket.create_connection(self._server)
                except OSError:  # it is being started again
                    _end(client)
                    continue
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._sockets |= {client, server}
                was_asked = threading.Event()
                self._start(self._pass_requests, client, server, was_asked)
                self._start(self._pass_answers, server, client, was_asked)

    def _pass_requests(
        self, client: socket.socket, server: socket.socket, was_asked: threading.Event
    ) -> None:
        def count(name: str, frame: bytearray) -> bytearray:
            self.requests[name] += 1
            if not was_asked.is_set():
                was_asked.set()
                self.turns += 1
            self.on_request(name)
            return frame

        self._pass(client, server, count)

    def _pass_answers(
        self, server: socket.socket, client: socket.socket, was_asked: threading.Event
    ) -> None:
        def change(name: str, frame: bytearray) -> bytes | bytearray | None:
            was_asked.clear()
            return self.on_answer(name, frame)

        self._pass(server, client, change)

    def _pass(self, source: socket.socket, target: socket.socket, change: Change) -> None:
        with contextlib.suppress(OSError), source.makefile("rb") as frames:
            while True:
                size = frames.read(4)
                if len(size) < 4:
                    break
                frame = bytearray(size + frames.read(int.from_bytes(size, "big")))
                key = int.from_bytes(frame[4:6], "big") & 0x7FFF
                passed = change(NAMES.get(key, str(key)), frame)
                if passed is None:
                    break
                target.sendall(passed)
        for one in (source, target):
            _end(one)


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


def wait_for_quiet(proxy: Proxy, for_s: float = 0.3) -> None:
    """Wait until nothing has been asked for a while."""
    before = -1
    while before != sum(proxy.requests.values()):
        before = sum(proxy.requests.values())
        time.sleep(for_s)
