"""Opening a data directory: recovery, then the journal of this opening and its first checkpoint.

On a full disk there may be no room for the checkpoint. Then the journal continues where it ends,
upon the old checkpoint, and the next checkpoint is tried after a commit.
"""

import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from store.errors import DiskFull
from store.files import Files
from store.local.commit.journal import Journal
from store.local.commit.journal_files import JOURNAL_DIRECTORY, SpareFiles
from store.local.damage import Findings
from store.local.recovery.checkpoint import CheckpointWriter, head_of
from store.local.recovery.checkpoint_file import image_of
from store.local.recovery.holes import punch_all
from store.local.recovery.leftovers import leftovers, remove_leftovers
from store.local.recovery.recovery import Recovered, recover
from store.local.reserve import Reserve
from store.local.state.data_file import DATA_DIRECTORY

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
    files: Files,
    *,
    data_file_bytes: int,
    journal_file_bytes: int,
    spare_count_max: int,
    findings: Findings | None = None,
) -> Opening:
    """Recover the contents of a directory, and make them durable.

    Args:
        files: The directory.
        data_file_bytes: Size at which another data file is begun.
        journal_file_bytes: Size of a journal file.
        spare_count_max: Journal files that are kept to be used again.
        findings: Takes the damage that is found.

    Raises:
        StoreError: The directory cannot be opened; the message says why.
    """
    files.make_directory(JOURNAL_DIRECTORY)
    files.make_directory(DATA_DIRECTORY)
    for directory in ("", JOURNAL_DIRECTORY, DATA_DIRECTORY):
        files.keep_open(directory)
    # The process that renamed this checkpoint may have died before that was durable. What the one
    # before it needs is about to go.
    files.sync_directory("")
    reserve = Reserve(files, journal_file_bytes // RESERVE_PART)
    recovered = _recovered(files, data_file_bytes, findings or Findings(), reserve)
    catalogue = recovered.catalogue
    spares = partial(
        SpareFiles,
        files,
        reserve,
        store_id=recovered.store_id or secrets.randbits(64),
        file_bytes=journal_file_bytes,
        count_max=spare_count_max,
    )
    catalogue.loose.update(map(int, leftovers(files, catalogue)))
    # What a process that died has unlinked is not among them, and must not come back.
    files.sync_directory(DATA_DIRECTORY)
    writer = CheckpointWriter(files)
    writer.note([image_of(segment) for segment in catalogue.changed], (), 0)
    catalogue.changed.clear()
    journal, has_checkpoint = _journal_and_checkpoint(files, spares, recovered, writer, reserve)
    remove_leftovers(files, catalogue)
    if has_checkpoint:
        journal.release_kept()
        punch_all(files, catalogue.segments.values())
    reserve.take()
    return Opening(recovered, writer, journal, reserve, has_checkpoint)


def _recovered(
    files: Files, data_file_bytes: int, findings: Findings, reserve: Reserve
) -> Recovered:
    try:
        return recover(files, data_file_bytes, findings)
    except DiskFull:
        if not reserve.give_up():
            raise
        findings.clear()
        return recover(files, data_file_bytes, findings)


def _journal_and_checkpoint(
    files: Files,
    spares: Callable[[], SpareFiles],
    recovered: Recovered,
    writer: CheckpointWriter,
    reserve: Reserve,
) -> tuple[Journal, bool]:
    """Begin the journal; on a full disk perhaps without the checkpoint, which the flag tells."""
    try:
        return _begin_journal(files, spares(), recovered, writer), True
    except DiskFull as error:
        if _can_go_on(recovered):
            return _go_on_with_journal(files, spares(), recovered, error), False
        reserve.give_up()
        return _begin_journal(files, spares(), recovered, writer, may_be_small=True), True


def _begin_journal(
    files: Files,
    spares: SpareFiles,
    recovered: Recovered,
    writer: CheckpointWriter,
    *,
    may_be_small: bool = False,
) -> Journal:
    """Begin the journal of this opening, and put a checkpoint in the place of the last one.

    The first frame is synced before that, so that a journal without it is damaged.

    Raises:
        DiskFull: There is no space for that; the last checkpoint is as it was.
    """
    journal = Journal(
        files,
        spares,
        sequence=recovered.sequence,
        salt=secrets.randbits(64),
        kept=recovered.kept,
        may_be_small=may_be_small,
    )
    try:
        journal.append([], 0)
        journal.sync()
        writer.write(head_of(journal, recovered.catalogue, closed=False))
    except BaseException:
        journal.close()
        raise
    return journal


def _can_go_on(recovered: Recovered) -> bool:
    """Return whether the journal can be continued.

    A new store's cannot. Nor can it if recovery dropped records that the journal still has: the
    next recovery would drop later changes with them.
    """
    return recovered.reader is not None and not recovered.has_lost


def _go_on_with_journal(
    files: Files, spares: SpareFiles, recovered: Recovered, error: DiskFull
) -> Journal:
    """Continue where the journal ends, upon the old checkpoint.

    A frame says that there was this opening, where the checkpoint says that the store was closed.
    """
    assert recovered.reader is not None
    # Leftovers go next, and with them the proof of what is only in the journal.
    recovered.reader.sync()
    log.error("disk is full, opened without a checkpoint: free some space error=%s", error)
    journal = Journal.going_on(files, spares, recovered.reader.tail())
    try:
        if recovered.clean:
            with suppress(DiskFull):
                journal.append([], 0, gives_space=True)
                journal.sync()
    except BaseException:
        journal.close()
        raise
    return journal
