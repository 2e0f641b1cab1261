# cython: language_level=3, annotation_typing=False, nonecheck=True
"""All segments of a running store: names, numbers, changes since the last checkpoint."""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from store.api import PART_MARKS
from store.errors import DiskFull, SegmentFailed, StoreError
from store.files import PASSING
from store.local.state.data_file import DataFile
from store.local.state.segment import Segment

log = logging.getLogger(__name__)

_FILE_BYTES_MIN: Final = 1024 * 1024
_FILES_OF_TRUNCATED: Final = 4
_WOKEN_AT_ONCE: Final = 64
"""Reads that are woken in one turn: each answers a client, which takes some 50 µs."""


class Catalogue:
    """The segments by name and number. Only the loop's thread touches it.

    `names` is the issued view (a created segment is in it at once, a deleted one gone at once),
    `committed_names` the committed one.
    """

    def __init__(self, data_file_bytes: int) -> None:
        self._data_file_bytes = data_file_bytes
        self.names: dict[str, Segment] = {}
        self.committed_names: dict[str, Segment] = {}
        self.segments: dict[int, Segment] = {}
        # How many of `names` are in each group; groups without any are not in it.
        self.counts: dict[str, int] = {}
        self.next_segment = 1
        self.next_file = 1
        # Since the last checkpoint was begun.
        self.changed: set[Segment] = set()
        self.removed: list[int] = []
        # Files with writes that no sync covers.
        self.dirty: set[DataFile] = set()
        # Numbers of files that may be there although no segment has them as committed.
        self.loose: set[int] = set()
        # Deleted files whose deletion is committed, to be unlinked.
        self.discarded: list[DataFile] = []
        # Segments whose start has moved: space before it may be given back.
        self.truncated: list[Segment] = []
        # Calls a function later in the loop; set before anything waits.
        self.call_soon: Callable[..., object] = _at_once
        # Something was refused for want of space since the last checkpoint was begun.
        self.is_full = False

    def add(self, name: str, key_length: int | None) -> Segment:
        """Make a segment in the issued view."""
        segment = Segment(self.next_segment, name, key_length)
        self.next_segment += 1
        self.segments[segment.number] = segment
        self._set_name(name, segment)
        return segment

    def restore(self, segment: Segment) -> None:
        """Take in a segment that was found at the opening."""
        segment.created = True
        for _, file in segment.committed.extents:
            file.size_max = self._data_file_bytes
        segment.pending = segment.committed.copy()
        segment.block()
        self.segments[segment.number] = segment
        self._set_name(segment.name, segment)
        self.committed_names[segment.name] = segment
        self.changed.add(segment)

    def count_beside(self, name: str) -> int:
        """Return how many segments of the issued view are in the group of a name."""
        return self.counts.get(_group_of(name), 0)

    def _set_name(self, name: str, segment: Segment | None) -> None:
        """Bind a name of the issued view to a segment, or to none."""
        change = (segment is not None) - (name in self.names)
        if segment is None:
            self.names.pop(name, None)
        else:
            self.names[name] = segment
        if change:
            group = _group_of(name)
            count = self.counts.get(group, 0) + change
            if count:
                self.counts[group] = count
            else:
                del self.counts[group]

    def new_file(self, owner: Segment) -> DataFile:
        """Return the next data file a number; it is made when it is written."""
        file = DataFile(self.next_file, owner.number)
        file.size_max = self.file_bytes(owner)
        self.next_file += 1
        self.loose.add(file.number)
        return file

    def file_bytes(self, owner: Segment) -> int:
        """Return how large the next file of a segment may become.

        Files go whole. One that is truncated now and then has smaller ones, so that what is given
        up is soon given back.
        """
        pending = owner.pending
        if not pending.start:
            return self._data_file_bytes
        few = max(_FILE_BYTES_MIN, (pending.length - pending.start) // _FILES_OF_TRUNCATED)
        return min(few, self._data_file_bytes)

    def hide(self, segment: Segment) -> None:
        """Take a segment out of the issued view."""
        segment.gone = True
        segment.blocked = True
        self._set_name(segment.name, None)

    def commit_creation(self, segment: Segment) -> None:
        """Make a creation part of the committed view."""
        segment.created = True
        self.committed_names[segment.name] = segment
        self.changed.add(segment)

    def commit_removal(self, segment: Segment, files: Iterable[DataFile]) -> None:
        """Make a removal part of the committed view; `files` go with it."""
        segment.gone = True
        segment.dead = True
        segment.blocked = True
        if self.committed_names.get(segment.name) is segment:
            del self.committed_names[segment.name]
        self.segments.pop(segment.number, None)
        self.changed.discard(segment)
        self.removed.append(segment.number)
        self.discard(files)

    def discard(self, files: Iterable[DataFile]) -> None:
        """Note files without any reference left."""
        for file in files:
            file.dead = True
            self.dirty.discard(file)
            self.loose.add(file.number)
            self.discarded.append(file)

    def wake(self, segment: Segment) -> None:
        """Let reads that wait for a segment try again, some now and the others soon."""
        if not segment.is_waking and segment.wake(_WOKEN_AT_ONCE):
            segment.is_waking = True
            self.call_soon(self._go_on_waking, segment)

    def _go_on_waking(self, segment: Segment) -> None:
        segment.is_waking = False
        self.wake(segment)

    def reset_names(self, names: Iterable[str]) -> None:
        """Roll the issued view of some names back to the committed one."""
        for name in names:
            self._set_name(name, self.committed_names.get(name))

    def forget_creation(self, segment: Segment) -> None:
        """Take back the creation of a segment."""
        segment.gone = True
        segment.dead = True
        segment.blocked = True
        self.segments.pop(segment.number, None)

    def file_synced(self, file: DataFile, mark: int) -> None:
        """Note that a sync that began when `file.writes` was `mark` has succeeded."""
        file.synced = max(file.synced, mark)
        if file.synced == file.writes:
            self.dirty.discard(file)
            owner = self.segments.get(file.owner)
            if owner is not None:
                owner.forget_bulk(file)

    def file_failed(self, file: DataFile, error: StoreError) -> None:
        """Note that a write or sync of a file failed: its segment takes no more appends.

        Unless the failure passes: nothing was written or synced then.
        """
        if isinstance(error, PASSING):
            self.is_full = self.is_full or isinstance(error, DiskFull)
            return
        owner = self.segments.get(file.owner)
        if owner is not None and owner.failure is None:
            log.error("segment failed segment=%s error=%s", owner.name, error)
            owner.failure = failure_of(error)
            owner.block()


def _group_of(name: str) -> str:
    """Return a name up to its second slash, or as far as it has slashes; a part's with its mark."""
    first = name.find("/") + 1
    second = name.find("/", first) + 1 if first else 0
    place = name[: second or first]
    for mark in PART_MARKS:
        if mark in name:
            return place + mark
    return place


def _at_once(call: Callable[..., object], *arguments: object) -> None:
    call(*arguments)


def failure_of(error: StoreError) -> StoreError:
    """Return the error that a segment keeps reporting after a failed write or sync."""
    return error if isinstance(error, SegmentFailed) else SegmentFailed(str(error))
