"""`hutch store check --repair`: repair the damage found. No readable record is removed."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from gateway.broker.hosts.checking import StoredStream, rows_after_loss
from gateway.broker.streams.catalogue import LIVE, StreamCatalogue, StreamEntry, key_of
from gateway.command_line import visible
from gateway.commands.store_check import Check, run
from gateway.log.damage.flaws import Part
from gateway.log.derived.saved import KeptSnapshots
from gateway.log.derived.sequences import UNKNOWN
from gateway.log.derived.snapshot import Snapshot
from gateway.log.derived.tracking import create_table_if_missing
from gateway.log.names import meta_table, tracking_table
from store.api import Durability, TableEntry
from store.errors import StoreError
from store.local.store_check import CheckedStore

_DERIVED: Final = (Part.INDEX, Part.FILTERS)


class Repair:
    """Repairs one store.

    Attributes:
        left: Damage that could not be repaired, one line each.
    """

    def __init__(self, checked: CheckedStore, check: Check) -> None:
        self._checked = checked
        self._check = check
        self.left: list[str] = []
        self._mended: set[str] = set()

    def run(self) -> None:
        """Repair everything that can be repaired."""
        if any(not damage.segment for damage in self._checked.damage):
            # Opening the store has done that, as at the start of a server.
            sys.stdout.write("mended: files of the journal and without an owner are set aside\n")
        self._mend_tables()
        self._drop_derived()
        self._drop_snapshots()
        for stream in self._check.homeless:
            self._try(f"the stream {stream.log_names.stream} put back", self._put_back, stream)
        self._note_chunks()
        self.left += [f"not mended: {each}" for each in self._check.controller.damage]

    def _try(self, what: str, mend: Callable[..., str | None], *arguments: object) -> None:
        """Repair one thing and print that, or note that it could not be repaired."""
        try:
            more = mend(*arguments)
        except StoreError as error:
            self.left.append(f"not mended: {what}: {error}")
            return
        sys.stdout.write(visible(f"mended: {what}{more or ''}") + "\n")

    def _mend_tables(self) -> None:
        for name, shape in self._check.segments.items():
            if shape.is_table and shape.is_damaged:
                self._try(f"the table {name} is written anew", self._rewrite, name)
        for table in dict.fromkeys(table for table, _ in self._check.unsound):
            rows = [row for other, row in self._check.unsound if other == table]
            keys = ", ".join(repr(row.key) for row in rows)
            self._try(f"entries {keys} of the table {table} are taken out", self._take, table, rows)

    def _rewrite(self, name: str) -> str:
        count = self._checked.rewrite_table(name)
        self._write_after_loss(name)
        return f" with the {count} entries that can be read"

    def _take(self, table: str, rows: list[TableEntry]) -> None:
        self._checked.set_aside(table)
        keys = [TableEntry(row.key, b"") for row in rows]
        self._checked.ask(self._checked.store.remove_keys, table, keys)
        self._write_after_loss(table)

    def _write_after_loss(self, table: str) -> None:
        if rows := rows_after_loss(table):
            store = self._checked.store
            self._checked.ask(store.update_table, table, rows, durability=Durability.DISK)

    def _drop_derived(self) -> None:
        damaged = {flaw.segment: None for _, flaw, _ in self._check.flaws if flaw.part in _DERIVED}
        for stream in self._check.streams.values():
            log_names = stream.log_names
            for name in (log_names.index_segment, log_names.filter_segment):
                shape = self._check.segments.get(name)
                if shape is not None and shape.is_damaged:
                    damaged[name] = None
        for name in damaged:
            what = f"{name} is dropped, the server makes it anew from the chunks"
            self._try(what, self._drop, name)

    def _drop(self, name: str) -> None:
        self._checked.set_aside(name)
        self._checked.ask(self._checked.store.delete_segment, name)

    def _drop_snapshots(self) -> None:
        damaged = {
            stream.log_names.data_segment: (stream, start)
            for stream, flaw, start in self._check.flaws
            if flaw.part is Part.SNAPSHOT
        }
        for stream, start in damaged.values():
            name = stream.log_names.stream
            if start:
                # The snapshot alone knows the publishers whose chunks were removed.
                what = f"the snapshot of {name} says now that publishing ids were lost"
                self._try(what, self._replace_snapshot, stream, Snapshot(parts=[UNKNOWN]))
                self.left.append(
                    f"publishing ids of {name} whose chunks were removed are lost: the stream takes"
                    " no named publishers any more"
                )
            else:
                what = f"the snapshot of {name} is dropped, the server makes it anew"
                self._try(what, self._replace_snapshot, stream, None)

    def _replace_snapshot(self, stream: StoredStream, snapshot: Snapshot | None) -> None:
        table = tracking_table(stream.virtual_host)
        self._checked.set_aside(table)
        kept = KeptSnapshots(self._checked.store, table)
        run(self._checked, kept.replace(stream.entry.generation, snapshot))

    def _put_back(self, stream: StoredStream) -> str:
        """Write a stream into the catalogue again, under the name that its segment gives."""
        table, entry = meta_table(stream.virtual_host), stream.entry
        store = self._checked.store
        run(self._checked, create_table_if_missing(store, table))
        (found,) = self._checked.ask(store.read_table, table, [key_of(entry.name)])
        more = " without its arguments, which are lost"
        if found is not None:
            namesake = StoredStream(stream.virtual_host, StreamEntry.unpack(found))
            if namesake.log_names.data_segment in self._check.segments:
                raise StoreError("another stream has its name now")
            # Only the number in the entry is damaged.
            entry = replace(namesake.entry, generation=entry.generation)
            self._mended.add(namesake.log_names.data_segment)
            more = ""
        run(self._checked, StreamCatalogue(store, table).put(entry))
        return more

    def _note_chunks(self) -> None:
        """Note the chunks that stay damaged: there is nothing to rebuild them from."""
        segments, flaws = self._check.segments, self._check.flaws
        damaged = {
            stream.log_names.data_segment for stream, flaw, _ in flaws if flaw.part is Part.CHUNKS
        }
        damaged |= {
            name for name in self._check.streams if name in segments and segments[name].is_damaged
        }
        for name, stream in self._check.streams.items():
            told = stream.log_names.stream
            if name in damaged:
                self.left.append(
                    f"chunks of {told} stay damaged: the server passes over them, and all that is"
                    " whole can be read"
                )
            elif name not in segments and name not in self._mended and stream.entry.state == LIVE:
                self.left.append(f"all of {told} is lost: delete the stream")
