"""The two servers that the programs run against."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias
from urllib.parse import quote

from compat import certificates
from compat.broker.ports import free_ports
from compat.broker.running import RunningBroker
from compat.certificates import CLIENT_NAME, Authority, Certificates

ServerName: TypeAlias = Literal["Hutch", "RabbitMQ"]
SERVERS: Final[tuple[ServerName, ...]] = ("Hutch", "RabbitMQ")

START_S: Final = 30.0
STOP_S: Final = 15.0
CONTROL_S: Final = 30.0
POLL_S: Final = 0.05
REPOSITORY: Final = Path(__file__).parents[2]


class Server(Protocol):
    """A server that the programs run against."""

    @property
    def name(self) -> ServerName:
        """Name of the server."""

    @property
    def options(self) -> list[str]:
        """The options of a program that say where it is."""

    def restart(self) -> None:
        """Stop and start it, on the same ports and data."""


def options(port: int, tls_port: int, found: Certificates, other_ca: Path) -> list[str]:
    """Return the options of a program."""
    return [
        *("--host", "localhost", "--port", str(port), "--tls-port", str(tls_port)),
        *("--ca", str(found.ca), "--other-ca", str(other_ca)),
        *("--cert", str(found.client.certificate), "--key", str(found.client.key)),
    ]


def stranger(folder: Path) -> Path:
    """Make an authority that signed nothing here; return its certificate."""
    return Authority("somebody else").write(folder / "other-ca.pem")


@dataclass(frozen=True, slots=True)
class Reference:
    """RabbitMQ."""

    broker: RunningBroker
    other_ca: Path
    name: ServerName = "RabbitMQ"

    @property
    def options(self) -> list[str]:
        found = self.broker.certificates
        assert found is not None
        return options(self.broker.ports.stream, self.broker.ports.tls, found, self.other_ca)

    def restart(self) -> None:
        self.broker.restart()

    def add_client(self) -> None:
        """Make the user that the client's certificate names."""
        user = quote(CLIENT_NAME, safe="")
        self.broker.management(f"users/{user}", "PUT", {"password_hash": "", "tags": ""})
        rights = {"configure": ".*", "write": ".*", "read": ".*"}
        self.broker.management(f"permissions/%2F/{user}", "PUT", rights)


class HutchEnded(Exception):
    """Hutch did not get ready, or refused a command; the text holds what it printed."""


class Hutch:
    """One `hutch serve` on a folder."""

    name: ServerName = "Hutch"

    def __init__(self, folder: Path) -> None:
        """Prepare it; nothing runs yet."""
        self._folder = folder
        self._output = folder / "hutch.log"
        self._certificates = certificates.make(folder / "certificates")
        self._other_ca = stranger(folder)
        self._port, self._tls_port = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def options(self) -> list[str]:
        return options(self._port, self._tls_port, self._certificates, self._other_ca)

    def start(self) -> None:
        """Start it and wait until it serves.

        Raises:
            HutchEnded: It does not.
        """
        found = self._certificates
        arguments = [
            *("serve", "--data", str(self._folder / "data"), "--durability", "os"),
            *("--port", str(self._port), "--tls-port", str(self._tls_port)),
            *("--management-port", "0"),
            *("--tls-cert", str(found.server.certificate), "--tls-key", str(found.server.key)),
            *("--tls-ca", str(found.ca)),
        ]
        with self._output.open("ab") as output:
            begin = output.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gateway", *arguments],
                cwd=REPOSITORY,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + START_S
        while b"hutch ready" not in (said := self._output.read_bytes()[begin:]):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise HutchEnded(said[-1500:].decode(errors="replace"))
            time.sleep(POLL_S)

    def stop(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def add_client(self) -> None:
        """Make the user that the client's certificate names."""
        self._control("add_user", CLIENT_NAME, typed=secrets.token_hex(16))
        self._control("set_permissions", CLIENT_NAME, ".*", ".*", ".*")

    def _control(self, *words: str, typed: str = "") -> None:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "gateway", "ctl"),
                *words,
                "--data",
                str(self._folder / "data"),
            ],
            cwd=REPOSITORY,
            env=environment(),
            input=typed + "\n",
            capture_output=True,
            text=True,
            timeout=CONTROL_S,
            check=False,
        )
        if done.returncode != 0:
            raise HutchEnded(f"{words}: {done.stderr or done.stdout}")


def environment() -> dict[str, str]:
    """Return the environment for Hutch, without the user's own settings."""
    return {key: value for key, value in os.environ.items() if not key.startswith("HUTCH_")}


@contextlib.contextmanager
def serving(folder: Path, broker: RunningBroker) -> Iterator[tuple[Hutch, Reference]]:
    """Yield both servers for the length of the block.

    Args:
        folder: An empty one.
        broker: The running RabbitMQ.
    """
    hutch = Hutch(folder)
    hutch.start()
    try:
        hutch.add_client()
        reference = Reference(broker, stranger(folder))
        reference.add_client()
        yield hutch, reference
    finally:
        hutch.stop()
