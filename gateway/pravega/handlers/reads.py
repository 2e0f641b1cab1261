"""Requests for bytes of a segment."""

from gateway.pravega.desk import Desk
from store.wire.messages import ReadSegment


def read_segment(desk: Desk, request: ReadSegment) -> None:
    """Send bytes from an offset on, once there are any."""
    desk.reads.ask(request)
