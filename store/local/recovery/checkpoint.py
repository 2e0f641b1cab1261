"""Checkpoints: sync the data, write every segment down, set journal files free.

loop        | capture: images of changed segments, dirty files |            ... note, free files
checkpoint  |                        | sync files | encode | write, rename |
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from store.errors import DiskFull, StoreError
from store.files import Files
from store.local.commit.journal import Journal
from store.local.recovery.checkpoint_file import (
    CheckpointHead,
    SegmentImage,
    bytes_of_checkpoint,
    bytes_of_segment,
    image_of,
)
from store.local.recovery.holes import Holes
from store.local.state.catalogue import Catalogue
from store.local.state.data_file import DATA_DIRECTORY, DataFile, OpenFiles
from store.local.threads import Worker

log = logging.getLogger(__name__)

CHECKPOINT: Final = "checkpoint"
_UNFINISHED: Final = "checkpoint.new"

# The thread gives way after this many segments, so that encoding never holds the loop up for long.
_ENCODE_SLICE: Final = 32
_GIVE_WAY_S: Final = 0.0005


class CheckpointWriter:
    """Writes checkpoints; keeps the bytes of each segment, and encodes only changed ones."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._encoded: dict[int, bytes] = {}

    def note(self, changed: Iterable[SegmentImage], removed: Iterable[int], pause_s: float) -> None:
        """Take in the changes, pausing now and then."""
        for count, image in enumerate(changed, 1):
            self._encoded[image.number] = bytes_of_segment(image)
            if count % _ENCODE_SLICE == 0 and pause_s:
                time.sleep(pause_s)
        for number in removed:
            self._encoded.pop(number, None)

    def write(self, head: CheckpointHead) -> None:
        """Replace the checkpoint, in one step and durably."""
        data = bytes_of_checkpoint(head, self._encoded.values(), len(self._encoded))
        # Not the file of a try that failed: what a failed sync left behind is unknown.
        self._files.remove(_UNFINISHED)
        file = self._files.open(_UNFINISHED, create=True)
        try:
            file.write_at(data, 0)
            file.sync()
        except DiskFull:
            # What fitted would only be in the way.
            with contextlib.suppress(StoreError):
                self._files.remove(_UNFINISHED)
            raise
        finally:
            file.close()
        self._files.rename(_UNFINISHED, CHECKPOINT)
        self._files.sync_directory("")


def head_of(journal: Journal, catalogue: Catalogue, *, closed: bool) -> CheckpointHead:
    """Return the head of a checkpoint of the committed state."""
    return CheckpointHead(
        place=journal.place(),
        salt=journal.salt,
        next_segment=catalogue.next_segment,
        next_file=catalogue.next_file,
        closed=closed,
        store_id=journal.store_id,
        journal_size=journal.file_size,
        loose=tuple(sorted(catalogue.loose)),
    )


class Capture:
    """The store between two rounds."""

    def __init__(
        self, catalogue: Catalogue, holes: Holes, journal: Journal, *, closed: bool
    ) -> None:
        self.holes = holes.capture()
        self.images = [image_of(segment) for segment in catalogue.changed]
        self.removed = catalogue.removed
        # A file that is not made yet has nothing committed in it.
        self.files = [(file, file.writes) for file in catalogue.dirty if file.made]
        self.head = head_of(journal, catalogue, closed=closed)
        catalogue.changed = set()
        catalogue.removed = []
        for file, _ in self.files:
            file.pins += 1


class Checkpointer:
    """Makes a checkpoint when there is reason to."""

    def __init__(
        self,
        files: Files,
        writer: CheckpointWriter,
        journal: Journal,
        catalogue: Catalogue,
        open_files: OpenFiles,
        holes: Holes,
        call_soon_threadsafe: Callable[..., object],
    ) -> None:
        self._holes = holes
        self._files = files
        self._writer = writer
        self._journal = journal
        self._catalogue = catalogue
        self._open_files = open_files
        self._call_soon_threadsafe = call_soon_threadsafe
        self._worker = Worker("checkpoint")
        self.running = False

    def stop_threads(self) -> None:
        """End the thread."""
        self._worker.stop_threads()

    def begin(self, done: Callable[[StoreError | None], object], *, closed: bool = False) -> None:
        """Begin a checkpoint; between rounds only, one at a time. `done` comes on the loop."""
        self.running = True
        capture = Capture(self._catalogue, self._holes, self._journal, closed=closed)
        self._worker.submit(partial(self._write, capture, done))

    def _write(self, capture: Capture, done: Callable[[StoreError | None], object]) -> None:
        failed: dict[DataFile, StoreError] = {}
        for file, _ in capture.files:
            try:
                self._open_files.sync(file)
            except StoreError as error:
                failed[file] = error
        failure = next(iter(failed.values()), None)
        try:
            # Also after a failure: what was captured is not captured again.
            self._writer.note(capture.images, capture.removed, _GIVE_WAY_S)
            if failure is None:
                # A journal that does not have these frames is not the one of this checkpoint.
                self._journal.sync_before(capture.head.place)
                # Also of the files that went, which the checkpoint does not name any more.
                self._files.sync_directory(DATA_DIRECTORY)
                self._holes.in_room(capture.holes, partial(self._writer.write, capture.head))
        except StoreError as error:
            failure = error
        self._call_soon_threadsafe(self._finish, capture, failed, failure, done)

    def _finish(
        self,
        capture: Capture,
        failed: dict[DataFile, StoreError],
        error: StoreError | None,
        done: Callable[[StoreError | None], object],
    ) -> None:
        self.running = False
        for file, mark in capture.files:
            if file not in failed:
                file.in_directory = file.in_directory or error is None
                self._catalogue.file_synced(file, mark)
            self._open_files.unpin(file)
        for file, failure in failed.items():
            self._catalogue.file_failed(file, failure)
        if error is None:
            self._journal.release_before(capture.head.place)
            self._holes.made(capture.holes)
        else:
            self._holes.not_made(capture.holes)
            # The journal keeps what the checkpoint would have held: nothing is lost.
            log.error("checkpoint failed, the journal grows error=%s", error)
        done(error)
