"""Opens local stores for unit tests: on a recorded disk in memory, or in a directory."""

from typing import Final
from uuid import UUID

from store.api import Durability, Writer
from store.files import Files
from store.local.store import LocalStore
from tests.conformance.harness import Loop, Rig
from tests.conformance.implementations import open_local

WRITER: Final = UUID(int=1)
KIB: Final = 1024


class Opened(Rig):
    """A rig whose store is known to be local, so that a test may look inside."""

    store: LocalStore

    def session(self, name: str) -> Writer:
        """Create a segment and open its writer."""
        return self.writer(self.create(name), WRITER)

    def crash(self) -> None:
        """Forget the store without closing it; only its lock is given back."""
        self.store._lock.close()
        self._is_open = False


def opened(files: Files, durability: Durability = Durability.DISK, **sizes: int) -> Opened:
    """Open a store of small files on a loop of its own."""
    sizes = {"journal_file_bytes": 64 * KIB, "checkpoint_bytes": 256 * KIB} | sizes
    return Opened(lambda loop: open_local(files, loop, durability, **sizes), Loop())
