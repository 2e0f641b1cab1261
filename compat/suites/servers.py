"""The server under test, at the usual ports of a namespace."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from compat.certificates import CLIENT_NAME, make
from compat.suites.catalogue import TOOLS

STREAM_PORT: Final = 5552
TLS_PORT: Final = 5551
HTTP_PORT: Final = 15672
AMQP_PORT: Final = 5672
START_SECONDS: Final = 120
_POLL_S: Final = 0.1

Server = Callable[[Path, Path], AbstractContextManager[Path]]


@contextmanager
def hutch(folder: Path, checkout: Path) -> Iterator[Path]:
    """Run a Hutch with what suites expect to find; give the folder of a client's certificates."""
    certificates = make(folder / "certificates")
    lay_out(certificates.folder, checkout)
    ca, certificate, key = certificates.ca, *_server_pair(certificates.folder, checkout)
    data = folder / "data"
    command = [
        *(sys.executable, "-m", "gateway", "serve", "--data", str(data)),
        *("--port", str(STREAM_PORT), "--management-port", str(HTTP_PORT)),
        *("--tls-port", str(TLS_PORT), "--tls-ca", str(ca)),
        *("--tls-cert", str(certificate), "--tls-key", str(key)),
    ]
    if certificate.parent != certificates.folder:  # an authority of the suite's own
        command[command.index(str(ca))] = str(certificate.parent / "ca_certificate.pem")
    log = folder / "server.log"
    with _running(command, log, HUTCH_USERS__ANONYMOUS="guest") as server:
        _await(server, log, lambda: b"hutch ready" in log.read_bytes())
        os.environ["HUTCH_ADMIN_SOCKET"] = str(data / "admin.sock")
        for line in _SET_UP:
            subprocess.run([TOOLS / "rabbitmqctl", *line], check=True, stdout=subprocess.DEVNULL)
        with closing_port(AMQP_PORT):
            yield certificates.folder


@contextmanager
def rabbitmq(folder: Path, checkout: Path) -> Iterator[Path]:
    """Run the reference broker instead; what needs rabbitmqctl cannot be run on it."""
    command = [
        *(sys.executable, "-m", "compat.broker", "run", "--name", f"suite-{os.getpid()}"),
        *("--stream-port", str(STREAM_PORT), "--tls-port", str(TLS_PORT)),
        *("--http-port", str(HTTP_PORT), "--amqp-port", str(AMQP_PORT)),
    ]
    log = folder / "server.log"
    with _running(command, log) as server:
        _await(server, log, lambda: b"certificates=" in log.read_bytes())
        _put("users/rabbit", b'{"password": "rabbit", "tags": "administrator"}')
        _put("permissions/%2F/rabbit", b'{"configure": ".*", "write": ".*", "read": ".*"}')
        words = log.read_text().split()
        found = next(word for word in words if word.startswith("certificates="))
        certificates = Path(found.partition("=")[2])
        lay_out(certificates, checkout)
        yield certificates


SERVERS: Final[dict[str, Server]] = {"hutch": hutch, "rabbitmq": rabbitmq}

_SET_UP: Final[Sequence[Sequence[str]]] = (
    ("add_user", "rabbit", "rabbit"),  # user of the Node suite; it ends others' connections
    ("set_user_tags", "rabbit", "administrator"),
    ("set_permissions", "rabbit", ".*", ".*", ".*"),
    ("add_user", CLIENT_NAME, "-"),  # user that a client's certificate names
    ("set_permissions", CLIENT_NAME, ".*", ".*", ".*"),
)


@contextmanager
def _running(
    command: Sequence[str], log: Path, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        server = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **environment}
        )
    try:
        yield server
    finally:
        server.terminate()
        server.wait(START_SECONDS)


def _await(server: subprocess.Popen[bytes], log: Path, is_ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not is_ready():
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the server did not start:\n{log.read_text()}")
        time.sleep(_POLL_S)


def _put(path: str, body: bytes) -> None:
    request = urllib.request.Request(
        f"http://localhost:{HTTP_PORT}/api/{path}",
        body,
        {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q=", "Content-Type": "application/json"},
        method="PUT",
    )
    with closing(urllib.request.urlopen(request, timeout=START_SECONDS)) as answer:  # noqa: S310  # http, as written above
        answer.read()


def lay_out(certificates: Path, checkout: Path) -> None:
    """Put a client's certificate where the Node suite looks for it."""
    if not (checkout / "package.json").exists():
        return
    folder = checkout / "tls-gen" / "basic" / "result"
    folder.mkdir(parents=True, exist_ok=True)
    for name, its_name in (
        ("ca.pem", "ca_certificate.pem"),
        ("client.pem", "client_localhost_certificate.pem"),
        ("client-key.pem", "client_localhost_key.pem"),
    ):
        shutil.copyfile(certificates / name, folder / its_name)


def _server_pair(certificates: Path, checkout: Path) -> tuple[Path, Path]:
    """Return the server's certificate and key: those in the checkout, if the suite brings some."""
    own = checkout / ".ci" / "certs"
    if (checkout / "Cargo.toml").exists() and own.is_dir():
        return own / "server_certificate.pem", own / "server_key.pem"
    return certificates / "server.pem", certificates / "server-key.pem"


@contextmanager
def closing_port(port: int) -> Iterator[None]:
    """Accept and close at a port, where a broker speaks AMQP: one test of Rust's wants no more."""
    with socket.create_server(("localhost", port)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    listening.accept()[0].close()

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)
