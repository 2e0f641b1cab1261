"""A running broker: its addresses, its process, and a way to end it."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from compat.broker.ports import Ports
from compat.certificates import Certificates

# RabbitMQ's own defaults for a node whose loopback restriction is lifted.
USER = "guest"
PASSWORD = "guest"
POLL_S = 0.1
PROBE_TIMEOUT_S = 5.0
RESTART_TIMEOUT_S = 60.0


class NotReady(Exception):
    """The broker did not serve within the time it was given."""


class NotEnded(Exception):
    """A process of the broker went on after it was killed."""


def nothing_to_stop() -> None:
    """Leave a broker alone that this process did not start."""


def no_crash() -> None:
    """Refuse to kill a broker that this process did not start.

    Raises:
        OSError: Always.
    """
    raise OSError("a broker that was merely found is not killed")


def no_control(*words: str) -> str:
    """Refuse to control a broker that this process did not start.

    Raises:
        OSError: Always.
    """
    raise OSError(f"no way to run rabbitmqctl {words} beside a broker that was merely found")


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """A RabbitMQ that serves streams on `host`.

    Attributes:
        way: How it was got: `environment`, `container` or `chroot`.
        host: Address of its listeners.
        ports: Its ports; 0 where it is not known.
        pid: Process id of the Erlang virtual machine as this machine sees it, for CPU seconds and
            resident memory; None where it runs elsewhere.
        name: Its name among the brokers that `python -m compat.broker` lists; empty if it has none.
        certificates: What it shows over TLS and what a client may show it; None if it is not
            known to serve TLS.
        stop: Ends it and removes what it left; does nothing to a broker that was merely found.
        control: Runs `rabbitmqctl` with those words and returns what it printed; OSError where
            that fails, or the broker was merely found.
        crash: Ends it by SIGKILL and starts it on the same ports and data; `pid` is of the first
            process. OSError where the broker was merely found, NotReady if it does not come back.
    """

    way: str
    host: str
    ports: Ports
    pid: int | None = None
    name: str = ""
    certificates: Certificates | None = None
    stop: Callable[[], None] = field(default=nothing_to_stop, compare=False, repr=False)
    control: Callable[..., str] = field(default=no_control, compare=False, repr=False)
    crash: Callable[[], None] = field(default=no_crash, compare=False, repr=False)

    @property
    def stream_address(self) -> tuple[str, int]:
        """Host and port for stream clients."""
        return self.host, self.ports.stream

    def restart(self) -> None:
        """Stop the broker's application and start it, on the same ports and data.

        Raises:
            OSError: There is no way to control it.
            NotReady: It served nothing in time.
        """
        self.control("stop_app")
        self.control("start_app")
        await_serving(self.host, self.ports, timeout_s=RESTART_TIMEOUT_S)

    def management(self, path: str, method: str = "GET", body: object = None) -> Any:  # noqa: ANN401 - JSON
        """Call the management API and return the decoded answer, None if it is empty.

        Args:
            path: What follows `/api/`, percent-encoded.
            method: HTTP method.
            body: Sent as JSON unless None.

        Raises:
            OSError: The API cannot be reached, or answered with a status of 400 or more.
        """
        status, answer = call(self.host, self.ports.http, path, method, body)
        if status >= http.client.BAD_REQUEST:
            raise OSError(f"{method} /api/{path} was answered {status}: {answer[:200]!r}")
        return json.loads(answer) if answer else None


def call(host: str, port: int, path: str, method: str, body: object) -> tuple[int, bytes]:
    """Make one authenticated request to the management API; return its status and body."""
    credentials = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(host, port, timeout=PROBE_TIMEOUT_S)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, f"/api/{path}", body=text, headers=headers)
        response = connection.getresponse()
        return response.status, response.read()
    except http.client.HTTPException as error:
        raise OSError(f"no HTTP answer from {host}:{port}: {error!r}") from error
    finally:
        connection.close()


def is_serving(host: str, ports: Ports) -> bool:
    """Return whether the clients' ports accept, and the management API answers if it has one."""
    try:
        for port in (ports.stream, ports.tls, ports.amqp, ports.amqps, ports.mqtt):
            if port:
                socket.create_connection((host, port), timeout=PROBE_TIMEOUT_S).close()
        if ports.http:
            status, _ = call(host, ports.http, "overview", "GET", None)
            return status == http.client.OK
    except OSError:
        return False
    return True


def await_serving(
    host: str, ports: Ports, *, timeout_s: float, is_alive: Callable[[], bool] = lambda: True
) -> None:
    """Wait until the broker serves.

    Args:
        host: Where it listens.
        ports: Its ports.
        timeout_s: How long to wait.
        is_alive: Asked in between; False ends the wait at once.

    Raises:
        NotReady: It died, or the time is over.
    """
    deadline = time.monotonic() + timeout_s
    while not is_serving(host, ports):
        if not is_alive():
            raise NotReady("the broker ended before it served")
        if time.monotonic() > deadline:
            raise NotReady(f"nothing served on {host}:{ports.stream} within {timeout_s:.0f} s")
        time.sleep(POLL_S)
