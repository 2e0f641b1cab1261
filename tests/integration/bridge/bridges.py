"""The bridge as a process of its own: its file, its output, its ways to end."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from tests.integration.server import server_environment
from tests.waiting import HANG_S

COMMAND: Final = (sys.executable, "-m", "gateway", "bridge")
LINE: Final = re.compile(
    r"^(\S+): (\d+) delivered(?:, (\d+) refused)?(?:, (\d+) repeated)?$", re.MULTILINE
)


def toml(value: object) -> str:
    """Return a value as TOML, a table on one line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {toml(each)}' for key, each in value.items())} }}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value)


def route(name: str, source: object, target: object, **more: object) -> str:
    """Return a route for a file."""
    keys = {"name": name, "source": source, "target": target, **more}
    return "".join(("[[routes]]\n", *(f"{key} = {toml(value)}\n" for key, value in keys.items())))


class Bridge:
    """A process of `hutch bridge`, started; it is killed at the end of the block.

    Args:
        folder: For its file and what it says; one that no other process of a test has.
        routes: From `route`.
        arguments: More of the command line.
        environment: Variables to set.
    """

    def __init__(
        self,
        folder: Path,
        routes: Sequence[str],
        *arguments: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file: Final = folder / "routes.toml"
        self.file.write_text("\n".join(routes))
        self._said: Final = (folder / "stdout", folder / "stderr")
        self._arguments: Final = arguments
        self._environment: Final = server_environment(dict(environment or {}))
        self._mark = 0
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, also again after its end; what it says is added to what it said."""
        stdout, stderr = (path.open("ab") for path in self._said)
        with stdout, stderr:
            self._mark = len(self.stderr)
            self.process = subprocess.Popen(
                [*COMMAND, str(self.file), *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=self._environment,
            )

    def kill(self) -> None:
        """End it by SIGKILL."""
        self.process.kill()
        self.process.wait(HANG_S)

    def terminate(self) -> int:
        """End it by SIGTERM; return the exit status.

        The signal waits for the first line of the log: a younger process is still
        Python's own, which no handler keeps from dying of the signal.
        """
        self.wait_until(lambda: "gateway.bridge" in self.stderr[self._mark :])
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self, within_s: float = HANG_S) -> int:
        """Wait for its end; return the exit status."""
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the bridge still runs:\n{self.stderr[-6_000:]}") from None

    @property
    def stdout(self) -> str:
        """All that it has printed."""
        return self._said[0].read_text()

    @property
    def stderr(self) -> str:
        """All that it has logged."""
        return self._said[1].read_text()

    def wait_for(self, words: str, count: int = 1, within_s: float = HANG_S) -> None:
        """Wait until it has logged words, that many times."""

        def is_said() -> bool:
            return self.stderr.count(words) >= count

        self.wait_until(is_said, within_s)

    def wait_until(self, holds: Callable[[], bool], within_s: float = HANG_S) -> None:
        """Wait until something holds; the bridge may not end before."""
        deadline = time.monotonic() + within_s
        while not holds():
            assert self.process.poll() is None or holds(), f"it has ended:\n{self.stderr[-6_000:]}"
            assert time.monotonic() < deadline, f"not in time:\n{self.stderr[-6_000:]}"
            time.sleep(0.05)

    def counts(self) -> dict[str, tuple[int, int, int]]:
        """Return what it printed at its end: delivered, refused, repeated of each route."""
        found = LINE.findall(self.stdout)
        return {
            name: (int(some), int(bad or 0), int(again or 0)) for name, some, bad, again in found
        }


def run(folder: Path, routes: Sequence[str], *arguments: str, within_s: float = HANG_S) -> Bridge:
    """Run a bridge that is to end by itself; return it at its end."""
    with Bridge(folder, routes, *arguments) as bridge:
        bridge.wait(within_s)
    return bridge
