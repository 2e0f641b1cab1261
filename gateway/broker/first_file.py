"""A file that a setting names for the very first start, known again by its content.

setting    SHA-256 of the content that the first start took
"""

import hashlib
from pathlib import Path
from typing import Final

from gateway.broker.kept_table import KeptTable
from gateway.log.names import server_table
from store.api import SegmentStore

_TABLE: Final = server_table("first_files")


class FirstFile:
    """One such file. It stays in the settings, and later starts pass over it."""

    def __init__(self, store: SegmentStore, setting: str, path: Path) -> None:
        self._kept = KeptTable(store, _TABLE)
        self._key = setting.encode()
        self._path = path
        self._digest = b""

    def read(self, bytes_max: int = -1) -> bytes:
        """Return up to `bytes_max` bytes of the file, all of them by default. Raises OSError."""
        with self._path.open("rb") as opened:
            content = opened.read(bytes_max)
        self._digest = hashlib.sha256(content).digest()
        return content

    async def note(self) -> None:
        """Write down the hash of the content; before it is used. Raises StoreError."""
        await self._kept.load()
        await self._kept.write({self._key: self._digest})

    async def is_unchanged(self) -> bool:
        """Return whether the first start took exactly the file's content. Raises StoreError."""
        taken = (await self._kept.load()).get(self._key)
        try:
            if taken is not None and self._path.is_file():
                self.read()
        except OSError:
            return False
        return taken == self._digest
