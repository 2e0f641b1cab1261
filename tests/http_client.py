"""A plain client of the management API for tests: one request, one connection, nothing hidden.

It speaks to Hutch and to a real RabbitMQ alike.
"""

import base64
import http.client
import json
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from tests.waiting import HANG_S

GUEST: Final = ("guest", "guest")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401  # what JSON holds
        """The body; None if there is none."""
        return json.loads(self.body) if self.body else None


@dataclass(frozen=True, slots=True)
class Api:
    """A server's API, and who asks."""

    host: str
    port: int
    user: tuple[str, str] | None = GUEST
    more: Mapping[str, str] = field(default_factory=dict)

    def by(self, name: str, password: str) -> "Api":
        """Return the same API for another user."""
        return Api(self.host, self.port, (name, password), self.more)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Make one request; `path` is what follows `/api/`, encoded."""
        sent = {"Content-Type": "application/json", **self.more, **(headers or {})}
        if self.user is not None:
            sent |= {"Authorization": basic(*self.user)}
        connection = http.client.HTTPConnection(self.host, self.port, timeout=HANG_S)
        try:
            content = body if body is None or isinstance(body, bytes) else json.dumps(body)
            connection.request(method, f"/api/{path}", body=content, headers=sent)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def get(self, path: str) -> Any:  # noqa: ANN401
        """Return the JSON of a path that is there."""
        answer = self.ask("GET", path)
        assert answer.status == http.client.OK, (path, answer)
        return answer.json

    def status(self, method: str, path: str, body: object = None) -> int:
        """Return only the status of an answer."""
        return self.ask(method, path, body).status

    def raw(self, data: bytes, *, wait_s: float = HANG_S) -> bytes:
        """Send bytes as they are, and return what comes until the server hangs up."""
        with socket.create_connection((self.host, self.port), timeout=wait_s) as connection:
            connection.sendall(data)
            received = bytearray()
            try:
                while part := connection.recv(65_536):
                    received += part
            except (TimeoutError, ConnectionResetError):
                pass
            return bytes(received)


def basic(name: str, password: str) -> str:
    """Return the header's value of a user with a password."""
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode("ascii")


def segment(name: str) -> str:
    """Write a name as one segment of a path."""
    return quote(name, safe="", encoding="utf-8", errors="surrogateescape")


def eventually(look: Callable[[], bool], within_s: float = HANG_S) -> bool:
    """Tell whether something becomes true in time; RabbitMQ's statistics come after seconds."""
    deadline = time.monotonic() + within_s
    while not look():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
