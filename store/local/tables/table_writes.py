"""Writing of table entries that were checked."""

from collections.abc import Callable, Iterable
from functools import partial

from store.api import Durability
from store.errors import StoreError
from store.local.commit.changes import AppendChange, NoChange
from store.local.state.catalogue import Catalogue
from store.local.state.segment import Segment
from store.local.state.table import KeyChange, Table, key_entry
from store.local.state.table_entries import parts_of_entry
from store.local.writes import Staging


class TableChange(AppendChange):
    """A batch of entries."""

    __slots__ = ("changes", "committed", "table", "table_done")

    def __init__(
        self,
        catalogue: Catalogue,
        segment: Segment,
        table: Table,
        changes: list[KeyChange],
        done: Callable[[StoreError | None], object],
        committed: Callable[[Segment], object],
        *,
        gives_space: bool,
    ) -> None:
        """`done` gets the error or None; `committed` is called after every commit."""
        super().__init__(catalogue, segment, None, 0)
        self.table = table
        self.changes = changes
        self.table_done = done
        self.committed = committed
        self.gives_space = gives_space

    def apply(self, at_ms: int) -> None:
        super().apply(at_ms)
        self.table.commit(self.changes)

    def report(self, error: StoreError | None) -> None:
        super().report(error)
        self.table_done(error)
        if error is None:
            self.committed(self.segment)


def _do_nothing(_: Segment) -> None:
    pass


class TableWriting:
    """Issues entries of tables.

    Attributes:
        committed: Called with the table's segment after every commit of entries.
    """

    def __init__(self, staging: Staging) -> None:
        self._staging = staging
        self.committed: Callable[[Segment], object] = _do_nothing

    def write(
        self,
        segment: Segment,
        entries: Iterable[tuple[bytes, bytes | None, int | None]],
        done: Callable[[StoreError | None], object],
        durability: Durability | None = None,
        versions: list[int] | None = None,
        *,
        gives_space: bool = False,
    ) -> None:
        """Issue entries: key, value (None removes), version (None: the position).

        Adds the versions of the entries to `versions`.
        """
        table = segment.table
        assert table is not None
        parts: list[bytes] = []
        changes: list[KeyChange] = []
        position = segment.pending.length
        for key, value, version in entries:
            checksum, content = parts_of_entry(table.seed, position, key, value, version)
            size = len(checksum) + len(content)
            parts += (checksum, content)
            own = position if version is None else version
            changes.append((key, key_entry(own, position, size, value)))
            position += size
        if not changes:
            self._staging.repeat(NoChange(segment, done), durability)
            return
        if versions is not None:
            versions.extend(entry.version for _, entry in changes)
        catalogue = self._staging.catalogue
        change = TableChange(
            catalogue, segment, table, changes, done, self.committed, gives_space=gives_space
        )
        data = b"".join(parts)
        try:
            self._staging.append(change, data, len(data), durability)
        except StoreError as error:
            self._staging.failed(segment, error)
            self._staging.rounds.after(segment, partial(done, error))
            return
        table.issue(changes)
