"""Pravega's controller on a real store, in the loop of the test, with a way to cut it short."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

from gateway.pending import Pending
from gateway.pravega.controller.controller import Controller
from gateway.pravega.traffic import Traffic
from gateway.server.loop.awaiting import awaited, settled
from gateway.server.loop.schedule import Schedule
from store.api import Durability, SegmentInfo, SegmentStore
from store.errors import NoSuchSegment
from store.files import DirectoryFiles
from store.local.store import LocalStore

Answer = Any

CHANGES = frozenset(
    {
        "create_segment",
        "create_table",
        "delete_segment",
        "merge_segments",
        "remove_keys",
        "seal_segment",
        "truncate_segment",
        "update_attributes",
        "update_table",
    }
)


class Clock:
    """Milliseconds that a test sets."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


class CutShort:
    """A store that makes some more changes, and then answers no more calls of changes."""

    def __init__(self, store: SegmentStore, changes: int | None = None) -> None:
        self.changes = changes
        self.stopped = asyncio.Event()
        self._store = store

    @property
    def for_removal(self) -> CutShort:
        return self

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call: Callable[..., Any] = getattr(self._store, name)
        if name not in CHANGES:
            return call

        def change(*arguments: object, **named: object) -> object:
            if self.changes == 0:
                self.stopped.set()
                return None
            if self.changes is not None:
                self.changes -= 1
            return call(*arguments, **named)

        return change


class World:
    """One data directory, whose store is opened again and again."""

    controller: Controller
    local: LocalStore

    def __init__(self, directory: Path) -> None:
        self.clock = Clock()
        self._directory = directory

    async def open(self) -> Controller:
        """Open the store, and a controller on it."""
        loop = asyncio.get_running_loop()
        self.local = LocalStore.open(
            DirectoryFiles(self._directory),
            call_soon_threadsafe=loop.call_soon_threadsafe,
            call_soon=Schedule(loop).call_soon,
            durability=Durability.OS,
        )
        self.store = CutShort(self.local)
        self.traffic = Traffic()
        self.controller = Controller(self.store, self.clock, traffic=self.traffic)
        return self.controller

    async def close(self) -> None:
        """Close the store."""
        closed: Pending[None] = Pending()
        self.local.close(done=closed.settle)
        await settled(closed)

    async def reopened(self) -> None:
        """Close the store, and open it again, as the next process does."""
        await self.close()
        await awaited((await self.open()).open())

    async def ask(self, call: Callable[..., Any]) -> Answer:
        """Call the store with a `done`; return what it answers."""
        answer: Pending[Any] = Pending()
        call(done=answer.settle)
        return await settled(answer)

    def segments(self) -> list[str]:
        """Return the names of all segments and tables."""
        return sorted(self.local.catalogue.committed_names)

    async def info(self, segment: str) -> SegmentInfo | None:
        """Describe a segment, None if there is none."""
        try:
            info: SegmentInfo = await self.ask(lambda done: self.local.info(segment, done=done))
        except NoSuchSegment:
            return None
        return info

    async def write(self, segment: str, data: bytes, number: int = 1) -> None:
        """Append to a segment."""
        writer = await self.ask(
            lambda done: self.local.open_writer(segment, UUID(int=number), done=done)
        )
        await self.ask(lambda done: writer.append(data, number, done=done))

    async def content(self, segment: str) -> bytes:
        """Return all bytes of a segment that fit one read."""
        result = await self.ask(lambda done: self.local.read(segment, 0, 1 << 20, done=done))
        data: bytes = result.data
        return data
