"""The import that is under way, written down so that a server that dies on the way finishes it.

n            JSON: how many parts, and the virtual host that was named; written last, removed first
p<8 bytes>   a part of the definitions, compressed; then of what was there before, the same
"""

import json
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

from gateway.broker.kept_table import KeptTable
from gateway.log.names import server_table
from gateway.pending import Pending
from store.api import SegmentStore
from store.errors import CorruptSegment

TABLE: Final = server_table("import")
_HEAD: Final = b"n"
_PART_BYTES: Final = 512 * 1024
_FAST: Final = 1


class ImportSource(NamedTuple):
    """Sources of an import.

    Attributes:
        content: The definitions as they came.
        virtual_host: The one that was named beside them.
        before: The state before of all that it changes; empty if there was none.
    """

    content: bytes
    virtual_host: str | None
    before: bytes = b""


class UnfinishedImport:
    """Keeps the definitions of an import for as long as they are being written."""

    def __init__(
        self,
        store: SegmentStore,
        in_thread: Callable[[Callable[[], bytes]], Pending[bytes]],
    ) -> None:
        """Take what is needed; `load` comes first.

        Args:
            store: Where the table is.
            in_thread: Runs what takes long.
        """
        self._kept = KeptTable(store, TABLE)
        self._in_thread = in_thread
        self._parts = 0

    async def load(self) -> ImportSource | None:
        """Return what an import that did not end was made of. Raises StoreError."""
        rows = await self._kept.load()
        head = rows.pop(_HEAD, None)
        if head is None:
            await self._kept.write(dict.fromkeys(rows))
            return None
        try:
            said = json.loads(head)
            first, parts = said["content_parts"], said["parts"]
            content = await self._unpacked(rows, range(first))
            before = await self._unpacked(rows, range(first, parts))
            source = ImportSource(content, said["virtual_host"], before)
        except (ValueError, TypeError, KeyError, zlib.error) as error:
            raise CorruptSegment(f"the import under way is damaged: {error!r}") from error
        self._parts = parts
        return source

    async def _unpacked(self, rows: Mapping[bytes, bytes], numbers: range) -> bytes:
        packed = b"".join(rows[_key(number)] for number in numbers)
        return await self._in_thread(partial(zlib.decompress, packed))

    async def begin(self, source: ImportSource) -> None:
        """Write down what is about to be imported. Raises StoreError: then nothing is."""
        await self.end()
        await self._write(source.content)
        said = {"content_parts": self._parts, "virtual_host": source.virtual_host}
        await self._write(source.before)
        said["parts"] = self._parts
        await self._kept.write({_HEAD: json.dumps(said).encode()})

    async def _write(self, content: bytes) -> None:
        packed = await self._in_thread(partial(zlib.compress, content, _FAST))
        for start in range(0, len(packed), _PART_BYTES):
            part = packed[start : start + _PART_BYTES]
            await self._kept.write({_key(self._parts): part})
            self._parts += 1

    async def end(self) -> None:
        """Forget it: it is all there, or nothing of it. Raises StoreError."""
        if self._parts:
            await self._kept.write({_HEAD: None})
            await self._kept.write({_key(number): None for number in range(self._parts)})
            self._parts = 0


def _key(number: int) -> bytes:
    return b"p" + number.to_bytes(8)
