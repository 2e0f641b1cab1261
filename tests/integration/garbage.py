"""Objects of a server that only the collector could free: those that form a ring.

A server freezes what it has, and the collector does not look at that again: a ring among it would
stay. The server's side turns the collector off when it is first asked, so that what a test then has
it do leaves all of its rings to the second look.

    with Garbage(server) as garbage:
        …clients that come and go…
    assert garbage.count < …
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.integration.server import HutchServer

_LOOK: Final = signal.SIGUSR1
_KINDS: Final = 20
"""Types that are named when a test fails, at most."""


class Looks:
    """The server's side, on the thread of its loop."""

    def __init__(self, path: Path) -> None:
        """Be ready to look: a signal asks for it, and a file gets what was found."""
        self._path = path
        self._count = 0
        signal.signal(_LOOK, lambda *_: asyncio.get_running_loop().call_soon_threadsafe(self._look))

    def _look(self) -> None:
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        gc.set_debug(0)
        kinds = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.garbage)
        gc.garbage.clear()
        gc.collect()
        self._count += 1
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps([self._count, dict(kinds.most_common())]))
        part.replace(self._path)


class Garbage:
    """The test's side.

    Attributes:
        kinds: How many objects of each type the block left, once it is over.
    """

    def __init__(self, server: HutchServer) -> None:
        self._server = server
        self._path = server.garbage_path
        self.kinds: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._look()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.kinds = self._look()

    @property
    def count(self) -> int:
        """How many objects there were."""
        return self.kinds.total()

    def __str__(self) -> str:
        return ", ".join(f"{count} {kind}" for kind, count in self.kinds.most_common(_KINDS))

    def _look(self) -> Counter[str]:
        before, _ = self._found()
        os.kill(self._server.pid, _LOOK)
        wait_until(lambda: self._found()[0] > before)
        return Counter(self._found()[1])

    def _found(self) -> tuple[int, dict[str, int]]:
        if not self._path.exists():
            return 0, {}
        count, kinds = json.loads(self._path.read_text())
        return count, kinds


def beside(turns: Path) -> Path:
    """Return the file of a server whose turns are shown in another one."""
    return turns.with_suffix(".garbage")
