"""A client of mewbase's protocol for tests: frames by pymongo's BSON, over a real socket."""

from __future__ import annotations

import socket
import ssl
from types import TracebackType
from typing import Any, Final, Self

import bson

from tests.waiting import HANG_S

SILENCE_S: Final = 0.3
ALL_NULL: Final = {"startPos": -1, "startTimestamp": 0, "durableID": None, "matcher": None}
"""The fields of a SUBSCRIBE as the client of 2016 sends them."""
Answer = tuple[str, dict[str, Any]]


def frame(kind: str, fields: dict[str, Any]) -> bytes:
    """Return a frame."""
    return bytes(bson.encode({"type": kind, "frame": fields}))


class MewbaseClient:
    """One connection."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=HANG_S)
        self.raw = b""
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, kind: str, **fields: object) -> None:
        """Send a frame."""
        self.socket.sendall(frame(kind, fields))

    def receive(self) -> Answer:
        """Return type and fields of the next frame; EOFError if the connection has ended."""
        head = self._exactly(4)
        self.raw = head + self._exactly(int.from_bytes(head, "little") - 4)
        document = bson.decode(self.raw)
        assert list(document) == ["type", "frame"]
        return document["type"], document["frame"]

    def must(self, kind: str) -> dict[str, Any]:
        """Return the fields of the next frame, which is of this type."""
        got, fields = self.receive()
        assert got == kind, (got, fields)
        return fields

    def ask(self, kind: str, **fields: object) -> dict[str, Any]:
        """Send a frame; return the fields of the next one, which is its RESPONSE."""
        self.send(kind, **fields)
        return self.must("RESPONSE")

    def connect(self, **fields: object) -> dict[str, Any]:
        """Log in as the client of 2016 does."""
        answer = self.ask("CONNECT", version="0.1", **({"authInfo": None} | fields))
        assert answer["ok"] is True, answer
        return answer

    def publish(self, channel: str, event: object, request: int = 1) -> None:
        """Publish an event, and wait until it is stored."""
        answer = self.ask("PUB", channel=channel, sessID=-1, event=event, rID=request)
        assert answer == {"rID": request, "ok": True}

    def subscribe(self, channel: str, **fields: object) -> int:
        """Subscribe; return the subscription's id."""
        self.send("SUBSCRIBE", **({"channel": channel, "rID": 2} | fields))
        answer = self.must("SUBRESPONSE")
        assert answer["ok"] is True, answer
        assert answer["rID"] == 2
        return int(answer["subID"])

    def events(self, count: int) -> list[dict[str, Any]]:
        """Return the fields of the next RECEV frames."""
        return [self.must("RECEV") for _ in range(count)]

    def is_silent(self, for_s: float = SILENCE_S) -> bool:
        """Tell whether nothing comes for a while."""
        self.socket.settimeout(for_s)
        try:
            return not self.socket.recv(1, socket.MSG_PEEK) and False
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(HANG_S)

    def is_ended(self) -> bool:
        """Wait for the next byte; True if the connection has ended instead."""
        try:
            return not self.socket.recv(1)
        except ConnectionResetError:
            return True

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return bytes(data)
