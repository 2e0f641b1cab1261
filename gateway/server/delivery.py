# cython: language_level=3, annotation_typing=False, nonecheck=True
"""Which subscription of a connection is served next, and how much in one turn."""

from collections import deque
from typing import Final

from gateway.server.edge import PlainEdge
from gateway.stream.consuming import Subscription
from gateway.stream.session.session import Session

_FRAMES_A_TURN: Final = 8
"""Then the other connections get theirs."""


class Delivery:
    """The subscriptions of one connection that may have something to send, in turn."""

    def __init__(self, edge: PlainEdge, session: Session, scratch: bytearray) -> None:
        self._edge = edge
        self._session = session
        self._scratch = scratch
        self._ready: deque[Subscription] = deque()

    def wake(self, subscription: Subscription) -> None:
        """Put a subscription in line."""
        if not subscription.is_queued:
            subscription.is_queued = True
            self._ready.append(subscription)

    def serve(self) -> bool:
        """Send chunks while the socket takes them; True if there is more to do in a later turn."""
        for _ in range(_FRAMES_A_TURN):
            if not self._ready or not self._edge.is_drained:
                return False
            subscription = self._ready.popleft()
            subscription.is_queued = False
            frame = subscription.next(self._session.deliver_version, self._scratch)
            if frame is None:
                if subscription.is_sifting:
                    self.wake(subscription)
                continue
            self._edge.write(frame.head)
            if frame.region is not None:
                self._edge.write_region(frame.region)
            self._edge.flush()
            if subscription.credit > 0:
                self.wake(subscription)
        return bool(self._ready) and self._edge.is_drained
