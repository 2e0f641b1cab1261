"""A store that a command opens to look at it, or to mend it: no server, and no event loop.

To look, it is opened on an overlay, so that the directory stays as it is; what its opening finds
damaged is what a start of the server would find. To mend, it is opened on the files themselves.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from store.api import Durability, SegmentInfo, TableEntry, TablePage
from store.errors import StoreError, StoreLocked
from store.files import DirectoryFiles, Files
from store.local.damage import Findings
from store.local.directory import Found, look_into
from store.local.operations import info_of
from store.local.overlay import OverlayFiles
from store.local.recovery.journal_damage import Evidence
from store.local.state.data_file import DATA_DIRECTORY, path_of
from store.local.state.segment import Segment
from store.local.store import LocalStore

_PAGE_ENTRIES: Final = 100


class NotChecked(Exception):
    """The directory cannot be looked at; the message says why, and names a remedy."""


class CallQueue:
    """Calls that a store makes soon, run on this thread."""

    def __init__(self) -> None:
        self._ready: SimpleQueue[Callable[[], object]] = SimpleQueue()

    def call_soon(self, callback: Callable[..., object], *arguments: object) -> None:
        """Queue a call. Any thread."""
        self._ready.put(partial(callback, *arguments))

    def until(self, is_done: Callable[[], bool]) -> None:
        """Make the calls of the queue until a condition holds."""
        while not is_done():
            self._ready.get()()


@dataclass(frozen=True, slots=True)
class SegmentShape(SegmentInfo):
    """A segment as it is committed, and where it is stored.

    Attributes:
        attributes: Numbers by id (16 bytes); a writer's id has the number of its last append.
        files: Paths of its data files, each with the position of its first byte.
    """

    attributes: dict[bytes, int] = field(default_factory=dict)
    files: Sequence[tuple[str, int]] = ()

    def place_of(self, position: int) -> tuple[str, int]:
        """Return the file in which a position lies, and the place there."""
        held = [(path, base) for path, base in self.files if base <= position]
        path, base = held[-1] if held else ("", position)
        return path, position - base


class CheckedStore:
    """A store on a data directory. Made by `open_to_check`.

    Attributes:
        store: The store itself.
        calls: Runs its calls.
        damage: What its opening found.
        notes: What it has left out, which is no damage.
    """

    def __init__(self, directory: Path, *, repairs: bool) -> None:
        """Open it. Raises StoreError."""
        self.calls = CallQueue()
        self._evidence: Evidence | None = None
        self._files: Files = DirectoryFiles(directory)
        if not repairs:
            self._files = OverlayFiles(DirectoryFiles(directory, is_read_only=True))
        findings = Findings()
        self.store = LocalStore.open(
            self._files,
            call_soon_threadsafe=self.calls.call_soon,
            call_soon=self.calls.call_soon,
            durability=Durability.DISK,
            findings=findings,
        )
        self._catalogue = self.store.catalogue
        self.damage, self.notes = findings.found, findings.notes

    def ask(self, call: Callable[..., object], *arguments: object, **options: object) -> Any:  # noqa: ANN401  # whatever the call gives
        """Call an operation of the store, and return its result or raise its StoreError."""
        answers: list[Any] = []
        call(*arguments, done=answers.append, **options)
        self.calls.until(lambda: bool(answers))
        if isinstance(answers[0], StoreError):
            raise answers[0]
        return answers[0]

    def close(self) -> None:
        """Close it. Raises StoreError."""
        self.ask(self.store.close)

    def segments(self) -> list[SegmentShape]:
        """Describe all segments, by name."""
        shapes = [_shape_of(segment) for segment in self._catalogue.segments.values()]
        return sorted(shapes, key=lambda shape: shape.name)

    def shape_of(self, name: str) -> SegmentShape | None:
        """Describe one segment; None if there is none of that name."""
        segment = self._catalogue.committed_names.get(name)
        return None if segment is None else _shape_of(segment)

    def entries_of(self, table: str) -> Iterator[TableEntry]:
        """Yield all entries of a table. Raises StoreError."""
        continuation: bytes | None = None
        while True:
            page: TablePage = self.ask(
                self.store.iterate_table, table, continuation=continuation, count=_PAGE_ENTRIES
            )
            yield from page.entries
            continuation = page.continuation
            if continuation is None:
                return

    # Mending

    def set_aside(self, name: str) -> None:
        """Keep a copy of a segment's files, before something in it is replaced."""
        if self._evidence is None:
            self._evidence = Evidence(self._files, time.time_ns())
        present = self._files.names(DATA_DIRECTORY)
        for path, _ in _shape_of(self._catalogue.committed_names[name]).files:
            if path.rpartition("/")[2] in present:
                self._evidence.copy(path)

    @property
    def kept_in(self) -> str:
        """The directory with the copies; empty if none was made."""
        return "" if self._evidence is None else self._evidence.directory

    def rewrite_table(self, name: str) -> int:
        """Compact a damaged table: what can be read is written anew, with its versions.

        Returns:
            How many entries it has.

        Raises:
            StoreError: It is as damaged as before.
        """
        segment = self._catalogue.committed_names[name]
        table = segment.table
        assert table is not None
        self.set_aside(name)
        table.compact_at = 0
        self.store.writing.committed(segment)
        self.calls.until(lambda: not table.compacting)
        if info_of(segment).is_damaged:
            raise table.stopped or StoreError(f"table {name!r} takes no entries")
        return len(table.index)


def open_to_check(directory: Path, *, repairs: bool) -> CheckedStore:
    """Open the store in a directory.

    Args:
        directory: The data directory.
        repairs: Open it on the files themselves; else they stay as they are.

    Raises:
        NotChecked: There is no store, or another process has it.
        OtherFormat: It has another number of the stored form.
        StoreError: It cannot be opened, not by a server either: it is damaged.
    """
    try:
        found = look_into(directory)
    except OSError as error:
        raise NotChecked(f"{directory}: {error.strerror}") from error
    if found is not Found.STORE:
        raise NotChecked(f"{directory} holds no store: name the data directory of a server")
    try:
        return CheckedStore(directory, repairs=repairs)
    except StoreLocked as error:
        raise NotChecked(f"{error}: stop it first") from error


def _shape_of(segment: Segment) -> SegmentShape:
    state = segment.committed
    files = [(path_of(file.number), base) for base, file in state.extents]
    info = asdict(info_of(segment))
    return SegmentShape(**info, attributes=state.attributes.all(), files=files)
