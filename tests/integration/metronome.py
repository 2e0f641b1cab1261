"""A client in a process of its own that publishes at a steady pace, and how long it waits.

    python -m tests.integration.metronome HOST PORT

It writes a line for each message: when it was sent and how long its confirm and its delivery took,
both in nanoseconds of the clock that all processes share. It ends with its standard input.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from gateway.stream.wire.offsets import NEXT
from tests.client import Client
from tests.integration.server import HutchServer
from tests.waiting import HANG_S

PAUSE_S: Final = 0.002
_ROOT: Final = Path(__file__).parents[2]


class Metronome:
    """The process, and what it says."""

    def __init__(self, server: HutchServer) -> None:
        self._server = server
        self._times: list[tuple[int, int]] = []

    def __enter__(self) -> Self:
        host, port = self._server.endpoint
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.metronome", host, str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_ROOT,
            env=os.environ | {"PYTHONPATH": str(_ROOT)},
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        deadline = time.monotonic() + HANG_S
        while not self._times:
            assert self._process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            status = self._process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._reader.join(HANG_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
        assert kind is not None or status == 0

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            at_ns, took_ns = line.split()
            self._times.append((int(at_ns), int(took_ns)))

    def waits_s(self, spans_ns: Sequence[tuple[int, int]]) -> list[float]:
        """Return how long each message of some spans of time took, the longest last."""
        return sorted(
            took / 1e9
            for at, took in list(self._times)
            if any(begin <= at < end for begin, end in spans_ns)
        )


def p99(waits_s: Sequence[float]) -> float:
    """Return what 99 of 100 are within."""
    return waits_s[math.ceil(len(waits_s) * 0.99) - 1]


def main() -> None:
    """Publish until standard input ends."""
    host, port = sys.argv[1:]
    is_over = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        is_over.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    with Client.opened(host, int(port)) as client:
        stream = f"metronome-{time.monotonic_ns()}"
        client.create(stream)
        client.declare(1, stream)
        client.subscribe(1, stream, NEXT, credit=10)
        number = 0
        while not is_over.wait(PAUSE_S):
            number += 1
            sent_ns = time.monotonic_ns()
            client.publish(1, {number: b"tick"})
            client.confirmed()
            client.delivery()
            took_ns = time.monotonic_ns() - sent_ns
            client.credit(1, 1)
            sys.stdout.write(f"{sent_ns} {took_ns}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
