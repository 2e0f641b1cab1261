"""A broker on a data directory with small files, in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gateway.broker.access.access import open_access
from gateway.broker.connections import Connections
from gateway.broker.streams.streams import StreamsPorts
from gateway.pending import Pending
from store.api import Durability, SegmentStore
from store.errors import StoreError
from store.files import DirectoryFiles
from store.local.directory import was_damaged
from store.local.store import LocalStore
from tests.conformance.harness import Loop
from tests.conformance.implementations import open_local
from tests.unit.gateway.stream.link_rig import Broker

KIB: Final = 1024
SIZES: Final = {
    "data_file_bytes": 8 * KIB,
    "inline_bytes_max": 2 * KIB,
    "journal_file_bytes": 32 * KIB,
    "checkpoint_bytes": 64 * KIB,
    "open_files_max": 16,
}
BEGIN_MS: Final = 1_700_000_000_000


class _Broker(Broker):
    """Begins with the first user where a server would."""

    def _open_hosts(self, store: SegmentStore, ports: StreamsPorts) -> None:
        access = self.store_rig.run(open_access(store, Connections()))
        if access.is_fresh and was_damaged(self.store_rig.directory):
            raise StoreError("the store was damaged and has no users")
        super()._open_hosts(store, ports)


class Served:
    """A broker that runs, and its store.

    Attributes:
        broker: It.
        store: The store, also while the broker could not be opened upon it.
    """

    def __init__(self, directory: Path, durability: Durability = Durability.DISK) -> None:
        self.store: LocalStore | None = None
        self._loop = Loop()
        self._durability = durability
        try:
            self.broker = _Broker(directory, open_store=self._open, loop=self._loop)
        except BaseException:
            self.release()
            raise
        self.broker.now_ms = BEGIN_MS

    def _open(self, loop: Loop, directory: Path) -> SegmentStore:
        self.store = open_local(DirectoryFiles(directory), loop, self._durability, **SIZES)
        return self.store

    def stop(self) -> None:
        """End in good order."""
        run = self.broker.store_rig.run
        run(self.broker.virtual_hosts.close())
        run(self.broker.openings.end())
        self.release()

    def release(self) -> None:
        """Close the store, as far as it can be."""
        store, self.store = self.store, None
        if store is not None:
            closed: Pending[object] = Pending()
            store.close(done=closed.settle)
            self._loop.run_until(lambda: closed.is_settled)


@contextlib.contextmanager
def served(directory: Path, durability: Durability = Durability.DISK) -> Iterator[Served]:
    """Run a broker; what it has open is released in any case."""
    running = Served(directory, durability)
    try:
        yield running
    finally:
        running.release()
