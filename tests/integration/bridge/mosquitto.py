"""mosquitto, a broker of MQTT, as a process of a test's own that keeps what it has."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Final, Self

import pytest

from compat.broker.ports import free_ports
from compat.certificates import Certificates
from tests.waiting import HANG_S

PATH: Final = f"{os.environ.get('PATH', '')}:/usr/sbin"
"""Debian puts it where only root looks."""
HOST: Final = "127.0.0.1"
PACKET_BYTES_MAX: Final = 1_048_576
SETTINGS: Final = """\
listener {port} {host}
allow_anonymous true
persistence true
persistence_location {folder}/
max_queued_messages 0
max_inflight_messages 1000
max_packet_size {most}
user root
log_type error
log_type warning
"""
TLS_SETTINGS: Final = """\
listener {port} {host}
certfile {certificate}
keyfile {key}
"""


class Mosquitto:
    """A broker on a folder; it has all that it confirmed after each `restart`.

    Args:
        folder: For its file and its data.
        certificates: With them it listens for TLS as well.
    """

    def __init__(self, folder: Path, certificates: Certificates | None = None) -> None:
        program = shutil.which("mosquitto", path=PATH)
        if program is None:
            pytest.skip("mosquitto is not installed (Debian: apt install mosquitto)")
        folder.mkdir()
        self.port, self.tls_port = free_ports(2)
        text = SETTINGS.format(port=self.port, host=HOST, folder=folder, most=PACKET_BYTES_MAX)
        if certificates is not None:
            pair = certificates.server
            names = {"certificate": pair.certificate, "key": pair.key}
            text += TLS_SETTINGS.format(port=self.tls_port, host=HOST, **names)
        file = folder / "mosquitto.conf"
        file.write_text(text)
        self._command = (program, "-c", str(file))
        self._log = folder / "log"
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(HANG_S)

    @property
    def uri(self) -> str:
        """Where clients connect."""
        return f"mqtt://{HOST}:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + HANG_S
        while True:
            try:
                socket.create_connection((HOST, self.port)).close()
            except OSError:
                said = self._log.read_text()
                assert self._process.poll() is None, said
                assert time.monotonic() < deadline, said
                time.sleep(0.02)
            else:
                return

    def restart(self) -> None:
        """End it by SIGTERM, at which it writes down what it has, and start it again."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(HANG_S)
        self.start()
