"""`hutch store check`: walk a store, print the damage, and repair it as far as possible."""

import sys
import time
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from gateway.broker.hosts.checking import (
    StoredStream,
    homeless,
    host_of_segment,
    is_catalogue,
    is_sound,
    streams_of,
)
from gateway.broker.streams.catalogue import LIVE
from gateway.command_line import visible
from gateway.commands.progress import MB, Progress
from gateway.commands.store_check_pravega import ControllerCheck
from gateway.log.damage.flaws import Flaw, Part
from gateway.log.names import tracking_table
from gateway.log.recovery.log_check import StreamCheck
from gateway.pending import Pending, start
from store.api import TableEntry
from store.errors import StoreError
from store.local.damage import Damage
from store.local.store_check import CheckedStore

T = TypeVar("T")


def run(checked: CheckedStore, coroutine: Coroutine[Pending[Any], None, T]) -> T:
    """Run a coroutine on a store, and return its result."""
    pending = start(coroutine)
    checked.calls.until(lambda: pending.is_settled)
    return pending.result()


class Check:
    """One walk over a store.

    Attributes:
        segments: All segments, by name.
        streams: All streams, by their segment of chunks.
        flaws: The damage in streams: each flaw, and where the stream begins.
        unsound: Entries that no server can use, with their tables.
        homeless: Streams of which only the segments are there.
        controller: What Pravega's controller keeps.
        chunks: Number of sound chunks.
        records: Number of records in them.
        places: Number of damaged places that were printed.
    """

    def __init__(self, checked: CheckedStore, progress: Progress) -> None:
        self._checked = checked
        self._progress = progress
        self.segments = {shape.name: shape for shape in checked.segments()}
        self.streams: dict[str, StoredStream] = {}
        self.flaws: list[tuple[StoredStream, Flaw, int]] = []
        self.unsound: list[tuple[str, TableEntry]] = []
        self.homeless: list[StoredStream] = []
        self.controller = ControllerCheck(checked, progress, self.segments)
        self.chunks = self.records = self.places = 0

    def run(self) -> None:
        """Check everything, and print the damage."""
        self._read_tables()
        for note in self._checked.notes:
            self._print(f"note: {note}")
        for damage in self._checked.damage:
            self._tell(damage)
        told = {damage.segment for damage in self._checked.damage}
        for name, shape in self.segments.items():
            if shape.is_damaged and name not in told:
                self._tell(Damage("what was stored there is not all there", "", name))
        self._tell_entries()
        for name, stream in self.streams.items():
            if name in self.segments:
                self._walk(stream)
            elif stream.entry.state == LIVE:
                self._tell(Damage("the stream has no segment", "", name))
        self._check_controller()

    def _check_controller(self) -> None:
        for finding in self.controller.run():
            self.places += finding.is_damage
            self._print(f"{'damaged' if finding.is_damage else 'note'}: {finding}")

    def _tell_entries(self) -> None:
        for table, row in self.unsound:
            self._tell(Damage(f"the entry {row.key!r} is none that a server can use", "", table))
        for stream in self.homeless:
            name = stream.log_names.data_segment
            self._tell(Damage("no stream of the catalogue has these chunks", "", name))

    def _read_tables(self) -> None:
        """Read the streams, and find the entries of tables that no server can use."""
        for name, shape in self.segments.items():
            if shape.is_table:
                try:
                    self._read_table(name)
                except StoreError as error:
                    self._tell(Damage(f"entries cannot be read: {error}", "", name))
        for name in self.segments:
            stream = None if name in self.streams else homeless(name)
            if stream is not None:
                self.homeless.append(stream)
                self._note([stream])

    def _read_table(self, name: str) -> None:
        if name == self.controller.table:
            refused = run(self._checked, self.controller.load())
            self.unsound += [(name, TableEntry(key, b"")) for key in refused]
            return
        for row in self._checked.entries_of(name):
            if not is_sound(name, row):
                self.unsound.append((name, row))
            elif is_catalogue(name):
                self._note(streams_of(host_of_segment(name) or "", [row]))

    def _note(self, streams: Iterable[StoredStream]) -> None:
        self.streams |= {stream.log_names.data_segment: stream for stream in streams}

    def _walk(self, stream: StoredStream) -> None:
        log_names = stream.log_names
        check = StreamCheck(
            self._checked.store,
            log_names,
            tracking_table(stream.virtual_host),
            stream.entry.generation,
            first=stream.first_offset,
            walked=self._progress.walked,
        )
        try:
            run(self._checked, check.run())
        except StoreError as error:
            self._tell(Damage(f"it cannot be read: {error}", "", log_names.data_segment))
            return
        self.chunks += check.chunks
        self.records += check.records
        for flaw in check.flaws:
            self.flaws.append((stream, flaw, check.start))
            what = flaw.what if flaw.part is Part.CHUNKS else f"{flaw.part.value}: {flaw.what}"
            self._tell(self._placed(what, flaw.segment, flaw.position), stream)

    def _placed(self, what: str, segment: str, position: int | None) -> Damage:
        shape = self.segments.get(segment)
        if shape is None or position is None:
            return Damage(what, "", segment)
        file, place = shape.place_of(position)
        return Damage(what, file, segment, place)

    def _tell(self, damage: Damage, stream: StoredStream | None = None) -> None:
        self.places += 1
        owner = stream or self.streams.get(damage.segment)
        text = "" if owner is None else f" stream={owner.log_names.stream}"
        self._print(f"damaged: {damage}{text}")

    def _print(self, line: str) -> None:
        self._progress.leave()
        sys.stdout.write(visible(line) + "\n")


def check_store(checked: CheckedStore) -> Check:
    """Check a store, and print the damage and how much was checked."""
    began = time.monotonic()
    total = sum(shape.length - shape.start for shape in checked.segments() if homeless(shape.name))
    progress = Progress(sys.stderr, total)
    check = Check(checked, progress)
    check.run()
    progress.leave()
    sys.stdout.write(
        f"{len(check.segments)} segments, {len(check.streams)} streams,"
        f" {check.chunks:,} chunks with {check.records:,} records,{check.controller.summary}"
        f" {progress.done / MB:,.1f} MB in {time.monotonic() - began:.1f} s:"
        f" {_places(check.places)}\n"
    )
    return check


def _places(count: int) -> str:
    if not count:
        return "all is sound"
    return "1 damaged place" if count == 1 else f"{count} damaged places"
