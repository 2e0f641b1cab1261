# cython: language_level=3, annotation_typing=False, nonecheck=True
"""The order in which a connection's sources are asked, and how much each sends in one turn."""

from typing import Final

from gateway.server.connections.edge import PlainEdge
from gateway.server.front import DeliverySource

_PIECES_A_TURN: Final = 8
"""Then the other connections get theirs."""


class SourceQueue:
    """The sources of one connection that may have something to send, in turn."""

    def __init__(self, edge: PlainEdge, scratch: bytearray) -> None:
        self._edge = edge
        self._scratch = scratch
        # In line: first those of `_line` from its end on, then those of `_ready` from its start on.
        self._line: list[DeliverySource] = []
        self._ready: list[DeliverySource] = []

    def wake(self, source: DeliverySource) -> None:
        """Put a source in line."""
        if not source.is_queued:
            source.is_queued = True
            self._ready.append(source)

    def _take(self) -> DeliverySource | None:
        """Return the next in line; None if there is none."""
        if not self._line:
            self._line, self._ready = self._ready, self._line
            self._line.reverse()
        return self._line.pop() if self._line else None

    def serve(self) -> bool:
        """Send while the socket takes it; True if there is more to do in a later turn.

        Everything queued before has been sent.
        """
        for _ in range(_PIECES_A_TURN):
            source = self._take()
            if source is None:
                return False
            source.is_queued = False
            piece = source.next(self._scratch)
            if piece is None:
                if source.is_sifting:
                    self.wake(source)
                continue
            self._edge.write(piece.head)
            if piece.region is not None:
                self._edge.write_region(piece.region)
            is_drained = self._edge.flush()
            if source.wants_more():
                self.wake(source)
            if not is_drained:
                return False
        return bool(self._line) or bool(self._ready)
