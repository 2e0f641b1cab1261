"""Spark in a process of its own, which runs copies and can be killed with all it started."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.spark import copying
from tests.spark_cluster.sessions import Session
from tests.spark_cluster.standalone import environment

LOG_CHARACTERS: Final = 8_000
START_S: Final = 120.0


class Killed(Exception):
    """The driver ended while it ran a query."""


class Driver:
    """Runs one query after the other; after a kill it is started again for the next one.

    Args:
        folder: For its logs, and to work in.
        settings: Of its Spark, with the master.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._folder = folder
        self._settings = dict(settings)
        self._starts = 0
        self._session: Session | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def said(self) -> str:
        """The end of what the latest process logged."""
        return "" if self._session is None else self._session.said[-LOG_CHARACTERS:]

    def run(self, wanted: Mapping[str, Any], within_s: float) -> str | None:
        """Run a copy, as `copying.start_copy` takes it, to the end of what is there.

        Returns:
            What Spark says went wrong, if the query did not end well.

        Raises:
            Killed: It was killed meanwhile, or ended by itself.
            TimeoutError: It does not end; it is killed.
        """
        try:
            connection = self._connected()
            connection.send(dict(wanted))
            if not connection.poll(within_s):
                self._connection = None
                self.kill()
                raise TimeoutError(f"the query does not end:\n{self.said}")
            error: str | None = connection.recv()
        except (EOFError, ConnectionError):
            self._connection = None
            self.kill()
            raise Killed(self.said) from None
        return error

    def kill(self) -> None:
        """Kill the driver's Python, its Java and its workers; another thread may do so, too."""
        if self._session is not None:
            self._session.end()

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._started()
            self._connection.send(self._settings)
        return self._connection

    def _started(self) -> Connection:
        self._starts += 1
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.settimeout(START_S)
            port = listening.getsockname()[1]
            self._session = Session(
                [sys.executable, copying.__file__, str(port)],
                self._folder / f"driver-{self._starts}.log",
                self._folder,
                environment(),
            )
            accepted, _ = listening.accept()
        return Connection(accepted.detach())
