"""Opening a data directory: recovery, then the first checkpoint and the journal of this opening.

On a full disk there may be no room for the checkpoint. Then the journal is gone on with where it
ends, upon the checkpoint that is there, and the next one is tried when something was committed.
"""

import logging
import secrets
from typing import Final, NamedTuple

from store.errors import DiskFull
from store.local.checkpoint import CheckpointWriter
from store.local.checkpoint_file import CheckpointHead, image_of
from store.local.data_file import DATA_DIRECTORY
from store.local.files import Files
from store.local.holes import punch_all
from store.local.journal import JOURNAL_DIRECTORY, Journal, JournalPlace, Tail
from store.local.recovery import Recovered, load_tables, recover, remove_leftovers
from store.local.reserve import Reserve

log = logging.getLogger(__name__)

# Of a journal file: what is kept for deletions, 4 MiB. The snapshot of a stream that is truncated
# takes up to 2.6 MB of it, and the checkpoint after that is written beside the last one.
RESERVE_PART: Final = 2


class Opening(NamedTuple):
    """A data directory that is ready; `has_checkpoint` unless there was no room for one."""

    recovered: Recovered
    writer: CheckpointWriter
    journal: Journal
    reserve: Reserve
    has_checkpoint: bool


def begin(
    files: Files, *, data_file_bytes: int, journal_file_bytes: int, spare_count_max: int
) -> Opening:
    """Recover what a directory holds, and make that durable.

    Raises:
        StoreError: The directory cannot be opened; the message says why.
    """
    files.make_directory(JOURNAL_DIRECTORY)
    files.make_directory(DATA_DIRECTORY)
    for directory in ("", JOURNAL_DIRECTORY, DATA_DIRECTORY):
        files.keep_open(directory)
    reserve = Reserve(files, journal_file_bytes // RESERVE_PART)
    try:
        recovered = recover(files, data_file_bytes)
    except DiskFull:
        if not reserve.give_up():
            raise
        recovered = recover(files, data_file_bytes)
    catalogue = recovered.catalogue
    salt = secrets.randbits(64)
    writer = CheckpointWriter(files)
    writer.note([image_of(segment) for segment in catalogue.changed], (), 0)
    catalogue.changed.clear()
    # No file has number 0: the first frame is found by its sequence, at the start of its file.
    place = JournalPlace(recovered.sequence, 0, 0)
    head = CheckpointHead(place, salt, catalogue.next_segment, catalogue.next_file, closed=False)
    tail = None
    try:
        writer.write(head)
    except DiskFull as error:
        if _can_go_on(recovered):
            tail = _tail_after(files, recovered, error)
        elif reserve.give_up():
            writer.write(head)
        else:
            raise
    remove_leftovers(files, catalogue)
    if tail is None:
        punch_all(files, catalogue.segments.values())
    load_tables(files, catalogue)
    journal = Journal(
        files,
        sequence=recovered.sequence if tail is None else tail.end.sequence,
        salt=salt if tail is None else tail.salt,
        file_bytes=journal_file_bytes,
        spare_count_max=spare_count_max,
        tail=tail,
        reserve=reserve,
    )
    reserve.take()
    return Opening(recovered, writer, journal, reserve, has_checkpoint=tail is None)


def _can_go_on(recovered: Recovered) -> bool:
    """Tell whether the journal can be gone on with.

    Not that of a new store; nor where what is built upon the segments as they are now would be lost
    with what the journal still says of them.
    """
    return recovered.reader is not None and not recovered.has_lost


def _tail_after(files: Files, recovered: Recovered, error: DiskFull) -> Tail:
    """Tell how to go on without a checkpoint."""
    assert recovered.reader is not None
    # Leftovers go next, and with them the proof of what is only in the journal; and journal files
    # that this checkpoint needs no more, but the one before it does, which a power cut may bring
    # back: the process that made this one may have died, or failed, before its name was durable.
    recovered.reader.sync()
    files.sync_directory("")
    log.error("disk is full, opened without a checkpoint: free some space error=%s", error)
    return recovered.reader.tail()
