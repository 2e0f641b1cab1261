# cython: language_level=3, annotation_typing=False, nonecheck=True
"""Commit rounds: the changes of one turn of the loop, made durable and acknowledged together.

    loop       | gather round 1 | gather round 2 ...        | finish 1, hand over 2 | ...
    journal    |                | write 1, sync, 1 is done  |                       | write 2 ...

One round is on its way at a time; meanwhile the next one gathers. A round that needs no late write,
no sync of data and no new journal file is written by the loop itself, if nothing is on its way; if
it is to be synced, only that is done by another thread. For a single change, and while the disk is
quick, the loop syncs too: there is little else that it could do meanwhile.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from store.errors import DiskFull, StoreClosed, StoreError
from store.files import JournalSync
from store.local.commit.changes import AppendChange, Change, Key, Later
from store.local.commit.journal import Journal
from store.local.commit.records import APPEND_BYTES
from store.local.commit.round import Outcome, Round, RoundWriting
from store.local.state.catalogue import Catalogue
from store.local.state.data_file import OpenFiles
from store.local.state.segment import Gathered, Segment
from store.local.threads import Worker

log = logging.getLogger(__name__)

# Those of every round that is over.
_NO_CHANGES: Final[list[Change]] = []

# What the loop itself writes into the journal of a round that is synced.
LOOP_BYTES_MAX: Final = 1024 * 1024

# Bytes of the records of a round whose sync the loop may wait for: small, so that it is quick.
WAITED_BYTES_MAX: Final = 4096

_LOOK_BYTES: Final = 4096


class Rounds:
    """Gathers changes and commits them."""

    def __init__(  # noqa: PLR0913 (the parts of the store that a commit touches)
        self,
        writing: RoundWriting,
        journal: Journal,
        catalogue: Catalogue,
        open_files: OpenFiles,
        *,
        call_soon: Callable[..., object],
        call_soon_threadsafe: Callable[..., object],
        committed: Callable[[Round], bool],
        failed: Callable[[StoreClosed], object],
        sync: JournalSync | None,
    ) -> None:
        """Begin with nothing gathered.

        `committed` is called on the loop between rounds, when nothing is on its way, and tells
        whether it has to be called after the next round, however little that writes. `failed` is
        called when the journal has failed. With `sync` a round that waits for nothing but the
        journal's sync goes the short way.
        """
        self._writing = writing
        self._journal = journal
        self._catalogue = catalogue
        self._open_files = open_files
        self._call_soon = call_soon
        self._call_soon_threadsafe = call_soon_threadsafe
        self._committed = committed
        self._failed = failed
        self._thread = Worker("journal")
        self._sync = sync
        self._syncing: tuple[Round, Outcome] | None = None
        self.gathering = Round()
        self.in_flight: Round | None = None
        # Made once: each look-up of a method makes an object.
        self._call_close_round = self._close_round
        self._scheduled = False
        # What is due between rounds is looked at after so many bytes of records, or at once.
        self._looked_at_bytes = 0
        self.looks_soon = True
        # What is to be called before any round goes on.
        self._soon: list[Callable[[], object]] = []
        # Why nothing is accepted any more.
        self.closed: StoreClosed | None = None
        self._when_idle: Callable[[], object] | None = None

    # What the loop calls

    def add(self, change: Change, segment: Segment) -> None:
        """Put a change into the round that gathers."""
        segment.round = self.gathering
        self._put(change)

    def after(self, segment: Segment, call: Callable[[], object]) -> None:
        """Call something soon, after the changes issued for the segment before."""
        self._in_turn(segment.round, (segment.number,), call)

    def after_all(
        self,
        call: Callable[[], object],
        names: Sequence[str] = (),
        segments: Sequence[Segment] = (),
    ) -> None:
        """Call something soon, after all that was issued before.

        What is issued for the names and segments from now on comes after it.
        """
        round_ = self.gathering if self.gathering.changes else self.in_flight
        for segment in segments:
            segment.round = round_
        self._in_turn(round_, (*names, *(segment.number for segment in segments)), call)

    def _put(self, change: Change) -> None:
        round_ = self.gathering
        round_.changes.append(change)
        round_.record_bytes += len(change.record)
        if not self._scheduled:
            self._scheduled = True
            self._call_soon(self._call_close_round)

    def _in_turn(
        self, round_: Gathered | None, keys: tuple[Key, ...], call: Callable[[], object]
    ) -> None:
        if round_ is None or round_.finished:
            # Not simply call_soon: a round whose turn was asked for before must not overtake it.
            self._soon.append(call)
            self._call_soon(self._run_soon)
        elif round_ is self.gathering:
            self.gathering.has_later = True
            self._put(Later(keys, call))
        else:
            round_.call_after(call)

    def stop(self, reason: StoreClosed) -> None:
        """Accept nothing more."""
        if self.closed is None:
            self.closed = reason
            for segment in self._catalogue.segments.values():
                segment.blocked = True

    def when_idle(self, call: Callable[[], object]) -> None:
        """Call something once every round that was begun is finished."""
        if self.in_flight is None and not self.gathering.changes:
            self._call_soon(call)
        else:
            self._when_idle = call

    def stop_threads(self) -> None:
        """End the threads. Not on the loop."""
        self._thread.stop_threads()
        self._writing.stop_threads()

    # The life of a round

    def _run_soon(self) -> None:
        calls, self._soon = self._soon, []
        for call in calls:
            self._guarded(call)

    def _close_round(self, is_alone: bool = True) -> None:  # noqa: FBT001, FBT002 (a function in C)
        """Bring the changes that were gathered on their way, unless others are.

        `is_alone` is false where the callers of an earlier round may not have heard of it yet, or
        where this one has waited for it.
        """
        if self._soon:
            self._run_soon()
        self._scheduled = False
        round_ = self.gathering
        if self.in_flight is not None or not round_.changes:
            return
        self.gathering = Round()
        self.in_flight = round_
        if self._needs_thread(round_):
            self._hand_over(round_)
            return
        try:
            outcome = self._writing.perform(round_)
        except Exception as error:  # noqa: BLE001 (our bug, at the loop's edge)
            outcome = _broken(error)
        if not round_.must_sync and outcome.fatal is None:
            self._finish(round_, outcome)
        elif outcome.fatal is None:
            self._sync_and_finish(round_, outcome, is_alone)
        else:
            # Not at once: the callers of the round before may not have heard of it yet.
            self._call_soon(self._finish, round_, outcome)

    def _needs_thread(self, round_: Round) -> bool:
        if round_.pinned is not None or self._journal.failure is not None:
            return True
        if round_.must_sync and (self._sync is None or round_.record_bytes > LOOP_BYTES_MAX):
            return True
        return not self._journal.fits(round_.record_bytes)

    def _leaves_loop(self, round_: Round) -> bool:
        """Return whether the loop is free for other work while a round is on its way."""
        return round_.must_sync or self._needs_thread(round_)

    def _sync_and_finish(self, round_: Round, outcome: Outcome, is_alone: bool) -> None:  # noqa: FBT001 (as above)
        """Have the journal synced, where nothing but that is left to do for a round."""
        sync = self._sync
        fileno = self._journal.begin_sync() if sync is not None and sync.start() else None
        if fileno is None or sync is None:
            work = partial(self._writing.sync_journal, outcome)
            self._thread.submit(partial(self._on_thread, round_, work))
            return
        self._syncing = (round_, outcome)
        if (
            is_alone
            and len(round_.changes) == 1
            and round_.record_bytes <= WAITED_BYTES_MAX
            and sync.is_quick()
        ):
            self._synced(sync.sync_now(fileno))
        else:
            sync.sync(fileno, self._synced)

    def _synced(self, failure: StoreError | None) -> None:
        assert self._syncing is not None
        (round_, outcome), self._syncing = self._syncing, None
        try:
            self._journal.end_sync(failure)
        except StoreClosed as error:
            outcome.fatal = error
        self._finish(round_, outcome)

    def _hand_over(self, round_: Round) -> None:
        syncs = round_.syncs or {}
        for file in syncs:
            syncs[file] = file.writes
        work = partial(self._writing.perform_and_sync, round_)
        self._thread.submit(partial(self._on_thread, round_, work))

    def _on_thread(self, round_: Round, work: Callable[[], Outcome]) -> None:
        try:
            outcome = work()
        except Exception as error:  # noqa: BLE001 (our bug, at the thread's edge)
            outcome = _broken(error)
        self._call_soon_threadsafe(self._finish, round_, outcome)

    def _finish(self, round_: Round, outcome: Outcome) -> None:
        if self._soon:
            self._run_soon()
        self.in_flight = None
        if round_.pinned is not None:
            self._count_writes(round_, outcome)
        if outcome.fatal is not None:
            self._fail(round_, outcome.fatal)
        elif outcome.dropped:
            self._take_back(round_, outcome)
            self.looks_soon = self._committed(round_)
        else:
            self._commit(round_, outcome.at_ms)
        if self._is_overdue():
            self._close_round(False)  # noqa: FBT003 (as above)
        self._note_idle()

    def _commit(self, round_: Round, at_ms: int) -> None:
        if round_.has_later:
            # A query between two changes sees the first and not the second.
            for change in round_.changes:
                change.apply(at_ms)
                self._report(change, None)
            self._end(round_)
            self._look_between(round_)
            return
        for change in round_.changes:
            change.apply(at_ms)
        self._look_between(round_)
        # The next round is on its way while the callers hear of this one.
        if self._is_overdue() and self._leaves_loop(self.gathering):
            self._close_round(False)  # noqa: FBT003 (as above)
        for change in round_.changes:
            self._report(change, None)
        self._end(round_)

    def _look_between(self, round_: Round) -> None:
        """Look for work that is due between rounds, unless little has been written since."""
        self._looked_at_bytes += round_.record_bytes
        if (
            self.looks_soon
            or self._looked_at_bytes >= _LOOK_BYTES
            or round_.soon is not None
            or self._catalogue.discarded
            or self._catalogue.truncated
        ):
            self._looked_at_bytes = 0
            self.looks_soon = self._committed(round_)

    def _is_overdue(self) -> bool:
        """Return whether a round waits although its turn of the loop is over."""
        return bool(self.gathering.changes) and not self._scheduled and self.in_flight is None

    def _count_writes(self, round_: Round, outcome: Outcome) -> None:
        """Count the late writes and the syncs of a round: the files of both are pinned.

        Late writes were counted when they were issued too: a sync that began while they were on
        their way covers the earlier count only.
        """
        syncs = round_.syncs or {}
        whole = {file for file, mark in syncs.items() if file.writes == mark}
        for change in round_.changes:
            if change.late is not None and change.file is not None:
                change.file.writes += 1
                self._catalogue.dirty.add(change.file)
                if isinstance(change, AppendChange) and len(change.record) == APPEND_BYTES:
                    # The journal does not hold it, and a checkpoint that ended meanwhile may have
                    # taken it for synced.
                    change.segment.note_bulk(change.file)
        for file, mark in syncs.items():
            if file not in outcome.failed:
                # The round's own syncs came after its late writes.
                self._catalogue.file_synced(file, file.writes if file in whole else mark)

    def _end(self, round_: Round) -> None:
        round_.finished = True
        if round_.pinned is not None:
            for file in round_.pinned:
                self._open_files.unpin(file)
        if round_.after is not None:
            for call in round_.after:
                self._guarded(call)
        # Segments know their last round, perhaps for long: it must not keep what it wrote.
        round_.changes = _NO_CHANGES
        round_.after = None

    def _take_back(self, round_: Round, outcome: Outcome) -> None:
        """Roll back after a partial failure: drop dependent changes, then report all in order."""
        for change in round_.changes:
            if change not in outcome.dropped:
                change.apply(outcome.at_ms)
        late = self.gathering.changes
        self.gathering.changes = outcome.drop_dependent(late)
        self._reset(outcome)
        for change in round_.changes:
            self._report(change, outcome.dropped.get(change))
        self._end(round_)
        for change in late:
            if change in outcome.dropped:
                self._report(change, outcome.dropped[change])

    def _reset(self, outcome: Outcome) -> None:
        """Roll the issued view of the touched objects back to the committed one."""
        catalogue = self._catalogue
        for file, error in outcome.failed.items():
            catalogue.file_failed(file, error)
        if any(isinstance(error, DiskFull) for error in outcome.dropped.values()):
            catalogue.is_full = True
        for change in outcome.dropped:
            if isinstance(change, AppendChange) and change.extent is not None:
                catalogue.discard([change.extent[1]])
        catalogue.reset_names(key for key in outcome.touched if isinstance(key, str))
        for key, error in outcome.touched.items():
            segment = catalogue.segments.get(key) if isinstance(key, int) else None
            if segment is not None:
                segment.abort(error)

    def _fail(self, round_: Round, error: StoreClosed) -> None:
        """Stop after a failure of the journal: nothing more is acknowledged, now or later."""
        self.stop(error)
        late, self.gathering = self.gathering, Round()
        for change in round_.changes:
            self._report(change, error)
        self._end(round_)
        for change in late.changes:
            self._report(change, error)
        self._end(late)
        self._failed(error)

    def _note_idle(self) -> None:
        idle = self.in_flight is None and not self.gathering.changes
        if idle and self._when_idle is not None:
            call, self._when_idle = self._when_idle, None
            self._call_soon(call)

    def _report(self, change: Change, error: StoreError | None) -> None:
        try:
            change.report(error)
        except Exception:
            # The caller's bug must not keep the other results of the round from arriving.
            log.exception("a callback of the store's user failed")

    def _guarded(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception:
            log.exception("a callback of the store's user failed")


def _broken(error: Exception) -> Outcome:
    """Return the outcome of a round after a bug of ours: its writes are unknown."""
    log.error("commit failed", exc_info=error)
    outcome = Outcome(0)
    outcome.fatal = StoreClosed(f"the store has stopped after an internal error: {error!r}")
    return outcome
