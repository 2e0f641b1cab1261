"""A query: the documents of a binder that match, in the order of their ids, as QUERYRESULT frames.

It sees the binder as it was at its start. Documents that change before it comes to them are kept
for it. One match is held back, since the last one has to say that it is.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from gateway.broker.yielding import Slice
from gateway.mewbase.binders.binder import Binder, Kept
from gateway.mewbase.matcher import Matcher
from gateway.mewbase.sources import SourcePorts
from gateway.mewbase.window import Window
from gateway.mewbase.wire.frames import QUERYRESULT
from gateway.mewbase.wire.writing import answer
from gateway.pending import run
from gateway.server.front import DeliverySource, SendPiece

log = logging.getLogger(__name__)

_PIECE_BYTES: Final = 64 * 1024
"""Frames are joined to pieces of about this size, and as much is read at once."""
_READ_MAX: Final = 32
"""Documents that are read at once where those before were small; each may have 1 MiB."""
_KEPT_BYTES: Final = 4 * _PIECE_BYTES
"""Bytes of documents that were read above which no more are kept."""
_LOOKED_AT_BYTES: Final = 8 * 1024
"""Bytes of documents, and of the matcher, that are looked at before the clock is."""
_DOCUMENT_BYTES: Final = 64
"""Bytes that an empty document counts for."""
_NAME_BYTES: Final = 64
"""Memory that an id takes in a set, besides its bytes."""


class Query(DeliverySource):
    """One query of a connection, and a `Reader` of its binder.

    Attributes:
        number: Its id on the connection.
        binder: The binder.
    """

    def __init__(
        self,
        number: int,
        binder: Binder,
        matcher: Matcher | None,
        window: Window,
        kept_bytes_max: int,
        sources: SourcePorts,
        ended: Callable[[str], object],
    ) -> None:
        """Begin; `ended` is told the reason of the end: an error, or empty after the last result.

        Args:
            number: Its id on the connection.
            binder: The binder, to which it was added.
            matcher: What documents have to match; None for all.
            window: What is not acknowledged.
            kept_bytes_max: Bytes of documents that are kept because they change.
            sources: The surroundings of the connection's queries.
            ended: Called at the end.
        """
        super().__init__()
        self.number = number
        self.binder = binder
        self._matcher = matcher
        self._window = window
        self._kept_bytes_max = kept_bytes_max
        self._ports = sources.ports
        self._reading = sources.reading
        self._turns = sources.reading.turns
        self._slice = Slice(every=1)
        self._ended = ended
        self._read_to: bytes | None = None
        self._found: deque[bytes] = deque()
        self._held: bytes | None = None
        self._kept: dict[bytes, bytes | None] = {}
        self._kept_bytes = 0
        self._next_count = 1
        self._is_reading = False
        self._is_read = False
        self._is_closed = False

    def wake(self) -> None:
        """Have the server ask for results."""
        self._ports.wake(self)

    def acknowledge(self) -> None:
        """Take the client's word that it has the oldest result."""
        self._window.acknowledge(None)
        if not self._window.is_full:
            self.wake()

    def close(self) -> None:
        """Stop."""
        self._is_closed = True
        self.binder.readers.discard(self)
        self._found.clear()
        self._kept.clear()

    def keep(self, name: bytes, content: bytes | None) -> None:
        """Keep a document that is about to change; None: there is none yet, so it is passed."""
        is_behind = self._read_to is not None and name <= self._read_to
        if self._is_closed or self._is_read or is_behind or name in self._kept:
            return
        self._kept[name] = content
        self._kept_bytes += len(name) + _NAME_BYTES + len(content or b"")
        if self._kept_bytes > self._kept_bytes_max:
            self._fail(
                f"more than {self._kept_bytes_max} bytes of documents changed before the query "
                "came to them (mewbase.query_kept_bytes_max)"
            )

    def _fail(self, reason: str) -> None:
        self.close()
        self._ended(reason)

    def wants_more(self) -> bool:
        """Return whether the client takes more."""
        return not self._is_closed and not self._window.is_full

    def next(self, scratch: bytearray) -> SendPiece | None:
        """Return the next results; None while there are none, or too many are on their way."""
        del scratch
        self.is_sifting = False
        time_slice = self._slice
        if not self.wants_more() or not self._turns.begin(self, self.wake, time_slice):
            return None
        frames = self._matches(time_slice)
        if not self._found and not self._window.is_full:
            if self._is_read:
                frames.append(self._framed(self._held, is_last=True))
                self.close()
                self._ended("")
            elif not frames:
                self._read()
        self._turns.end(time_slice)
        return SendPiece(b"".join(frames)) if frames else None

    def _matches(self, time_slice: Slice) -> list[bytes]:
        """Return the frames of the next piece; sets `is_sifting` if it found none in its time."""
        frames: list[bytes] = []
        size = looked_at = 0
        each = _DOCUMENT_BYTES + (0 if self._matcher is None else self._matcher.size)
        while self._found and size < _PIECE_BYTES and not self._window.is_full:
            document = self._found.popleft()
            if self._matcher is None or self._matcher.matches(document):
                if self._held is not None:
                    frames.append(self._framed(self._held, is_last=False))
                    size += len(frames[-1])
                self._held = document
            looked_at += len(document) + each
            if looked_at < _LOOKED_AT_BYTES:
                continue
            looked_at = 0
            if time_slice.is_over():
                self.is_sifting = not frames
                break
        return frames

    def _framed(self, document: bytes | None, *, is_last: bool) -> bytes:
        frame = answer(QUERYRESULT, queryID=self.number, ok=True, result=document, last=is_last)
        self._window.sent(0, len(frame))
        return frame

    # Documents

    def _read(self) -> None:
        """Read the next documents."""
        if self._is_reading:
            return
        names = self.binder.names_behind(self._read_to, self._next_count)
        if not names:
            self._is_read = True
            self.wake()
            return
        self._is_reading = True
        reading = self._reading.alone(self.binder.read(names))
        run(reading, lambda outcome: self._took(names, outcome))

    def _took(self, names: Sequence[bytes], outcome: list[Kept] | BaseException) -> None:
        self._is_reading = False
        if self._is_closed:
            return
        if isinstance(outcome, BaseException):
            log.error("binder cannot be read binder=%s error=%s", self.binder.name, outcome)
            self._fail("the documents cannot be read: the server's log says why")
            return
        size = count = 0
        for name, kept in zip(names, outcome, strict=True):
            if size > _KEPT_BYTES:
                break  # those before were small; what follows is read again
            self._read_to, count = name, count + 1
            content = kept.content
            if name in self._kept:
                content = self._kept.pop(name)
                self._kept_bytes -= len(name) + _NAME_BYTES + len(content or b"")
            if content is not None:
                self._found.append(content)
                size += len(content)
        average = max(size // count, 1)
        self._next_count = min(max(_PIECE_BYTES // average, 1), _READ_MAX)
        self.wake()
