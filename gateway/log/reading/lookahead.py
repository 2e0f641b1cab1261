# cython: language_level=3, annotation_typing=False, nonecheck=True
"""Verification of stored chunks ahead of a reader: those that this process did not write.

The index notes the spans that were verified, so other readers need not wait for them. Damaged
chunks are noted for the reader, which skips them when it reaches them.
"""

import logging
from bisect import insort
from collections.abc import Callable
from typing import Final

from gateway.log.damage.resync import next_chunk
from gateway.log.damage.verification import Verified, verify
from gateway.log.derived.index import NO_END
from gateway.log.kernel.chunks import NEEDS_BYTES
from gateway.log.log import StreamLog
from gateway.log.reading.known_chunks import (
    ONE_CHUNK,
    end_of_damage,
    marks_of,
    say_damaged,
    span_around,
)
from gateway.pending import nothing
from hutch.formats.chunk import DATA_POSITION, EVENT_HEAD_BYTES
from store.api import APPEND_BYTES_MAX
from store.errors import StoreError

log = logging.getLogger(__name__)

PIECES_AHEAD: Final = 2
"""Pieces of `ahead_bytes` that are checked, or being checked, ahead of a reader."""


class Lookahead:
    """Verifies chunks of one log for one reader, on threads of the store.

    Attributes:
        verified_to: Up to this position the reader needs no check.
        damaged: Start and end of each damaged part ahead of the reader; none is delivered.
    """

    def __init__(
        self,
        stream_log: StreamLog,
        position: int,
        ahead_bytes: int,
        wake: Callable[[], object],
        failed: Callable[[StoreError, bool], object],
    ) -> None:
        """Begin with a reader at a position.

        Args:
            stream_log: The log that it reads.
            position: Where it begins.
            ahead_bytes: Bytes that are verified at once, if the index has entries close enough.
            wake: Called when a reader that waits may go on.
            failed: Told why nothing can be verified, and whether the same place failed before.
        """
        self._log = stream_log
        self._ahead_bytes = ahead_bytes
        self._wake = wake
        self._failed = failed
        # Where the reader was when it last asked, and whether it waits there.
        self._reader_at = position
        self._is_awaited = False
        self.damaged: list[tuple[int, int]] = []
        self.verified_to = NO_END
        # Chunks are checked from the start of a span on: its offset is in the index.
        if position < stream_log.index.trusted_position:
            self.verified_to = max(stream_log.index.span_start(position), stream_log.start)
        self._known: tuple[int, int | None] = (0, None)
        """A position behind checked chunks, and the offset of the next one."""
        self._is_checking = False
        # The position where checking failed once.
        self._failed_at = -1

    def close(self) -> None:
        """Call the reader no more, and drop the references to it: it holds this."""
        self._wake = self._failed = nothing

    def is_verified(self, position: int) -> bool:
        """Return whether the chunk at a position is verified; if not, `wake` will be called."""
        if position >= self.verified_to:
            index = self._log.index
            verified_end = index.verified_end(position)
            if position >= self._log.index.trusted_position:
                self.verified_to = NO_END
            elif verified_end > position:
                self.verified_to = verified_end
            else:
                span_start = max(index.span_start(position), self._log.start)
                self.verified_to = max(self.verified_to, span_start)
        if position < self.verified_to:
            return True
        self._is_awaited = True
        self.go_on(position)
        return False

    def go_on(self, position: int) -> None:
        """Verify the chunks ahead of a reader at `position`, unless a check is under way.

        One check follows another up to PIECES_AHEAD, so that neither the disk nor the thread that
        checks waits for the reader.
        """
        self._reader_at = position
        begin = self.verified_to
        if self._is_checking or begin >= self._log.index.trusted_position:
            return
        if begin - position > (PIECES_AHEAD - 1) * self._ahead_bytes:
            return
        if self._failed_at != begin:
            self._check(begin, self._log.index.span_end(begin, self._ahead_bytes))
        elif self._is_awaited:  # the reader is at bytes that could not be read: try one chunk
            head = self._log.reader.read_cached(begin, EVENT_HEAD_BYTES) or b""
            event_bytes = EVENT_HEAD_BYTES + int.from_bytes(head[4:], "big")
            self._check(begin, begin + max(event_bytes, DATA_POSITION))

    def skip(self, position: int, reason: int, found: int = 0) -> int:
        """Skip damaged bytes, up to the next chunk (at `found`, if found); return its position."""
        end = found if found > position else end_of_damage(self._log, position, reason)
        say_damaged(self._log, position, end)
        self.verified_to = end
        return end

    def past_damage(self, position: int) -> int:
        """Return where a reader at `position` goes on: behind any damage there."""
        while self.damaged and position >= self.damaged[0][0]:
            position = max(position, self.damaged.pop(0)[1])
        return position

    def _check(self, position: int, end: int) -> None:
        """Start a check of the chunks in [position, end): whole spans, if the index is right."""
        self._is_checking = True
        size = min(end - position, self._log.index.trusted_position - position, APPEND_BYTES_MAX)
        known_at, known = self._known
        first = known if known_at == position else None
        marks = marks_of(self._log, position, position + size)
        seed = self._log.seal_seed
        self._log.reader.check(
            position,
            size,
            lambda view: verify(view, seed, first, marks),
            done=lambda outcome: self._checked(position, size, outcome),
            fills=True,
        )

    def _checked(self, position: int, size: int, outcome: Verified | StoreError) -> None:
        """Act on the result of a check."""
        self._is_checking = False
        rest = min(self._log.index.trusted_position - position, APPEND_BYTES_MAX)
        if isinstance(outcome, StoreError):
            self._could_not_read(position, outcome)
            return
        if outcome.end:
            self._verified(position, outcome)
        elif outcome.reason == NEEDS_BYTES and size < rest:
            # No chunk ends at this end: the index is wrong.
            self._check(position, self._log.index.trusted_position)
            return
        elif outcome.reason in ONE_CHUNK:
            self._note_damage(position, outcome.reason, position + outcome.damaged_bytes)
            self._known = self.verified_to, outcome.following
        else:
            self._search(position, outcome.reason)
            return
        self._settled()
        if outcome.end and self._ahead_bytes and self._failed_at < 0:
            self.go_on(self._reader_at)

    def _verified(self, position: int, outcome: Verified) -> None:
        """Note that chunks from `position` on are sound."""
        index, reached = self._log.index, position + outcome.end
        self.verified_to = max(self.verified_to, reached)
        self._known = reached, outcome.next
        if outcome.first is not None and index.offset_at(position) not in {None, outcome.first}:
            log.warning("index is wrong stream=%s position=%d", self._log.stream, position)
            index.correct(position, outcome.first)
        is_rest_trusted = reached == self._log.index.trusted_position
        index.verify(position, reached, is_rest_trusted=is_rest_trusted)

    def _search(self, position: int, reason: int) -> None:
        """Skip bytes that are no chunk, to the next whole chunk."""
        self._is_checking = True
        size, first_offset, end_offset = span_around(self._log, position)
        seed = self._log.seal_seed

        def done(outcome: int | StoreError | None) -> None:
            self._is_checking = False
            if isinstance(outcome, StoreError):
                self._could_not_read(position, outcome)
                return
            self._note_damage(position, reason, 0 if outcome is None else position + outcome)
            self._settled()

        self._log.reader.check(
            position,
            min(size, APPEND_BYTES_MAX),
            lambda view: next_chunk(view, seed, first_offset, end_offset),
            done=done,
            fills=True,
        )

    def _note_damage(self, position: int, reason: int, found: int) -> None:
        insort(self.damaged, (position, self.skip(position, reason, found)))

    def _could_not_read(self, position: int, error: StoreError) -> None:
        is_again = self._failed_at == position
        self._failed_at = position
        self._is_awaited = False
        self._failed(error, is_again)

    def _settled(self) -> None:
        """Wake the reader if it waits for this check."""
        if self._is_awaited:
            self._is_awaited = False
            self._wake()
