"""A name that leads to the member that serves, as a load balancer gives one that looks at TCP."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from tests.integration.server import Endpoint

_CONNECT_S = 2.0
_READ_BYTES = 64 * 1024


class FrontDoor:
    """Passes each connection to the first member that takes it.

    Attributes:
        endpoint: Where clients connect.
    """

    def __init__(self, members: Sequence[Endpoint], port: int = 0) -> None:
        self._members = members
        self._listening = socket.create_server(("127.0.0.1", port))
        self.endpoint = Endpoint("127.0.0.1", self._listening.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with client:
            member = self._connected()
            if member is None:
                return
            with member:
                back = threading.Thread(target=_copy, args=(member, client), daemon=True)
                back.start()
                _copy(client, member)
                back.join()

    def _connected(self) -> socket.socket | None:
        for each in self._members:
            with suppress(OSError):
                return socket.create_connection(each, timeout=_CONNECT_S)
        return None


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Pass bytes on until one side ends, and end the other one."""
    source.settimeout(None)
    with suppress(OSError):
        while data := source.recv(_READ_BYTES):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
