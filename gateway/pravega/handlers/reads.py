"""Requests for bytes of a segment, and for places in it."""

from gateway.pravega.desk import Desk
from gateway.pravega.locating import Locating
from hutch.pravega.messages import LocateOffset, ReadSegment


def read_segment(desk: Desk, request: ReadSegment) -> None:
    """Send bytes from an offset on, once there are any."""
    desk.reads.ask(request)


def locate_offset(desk: Desk, request: LocateOffset) -> None:
    """Answer where the event begins that holds an offset."""
    Locating(desk, request).begin()
