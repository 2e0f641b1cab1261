"""Requests for bytes of a segment, and for places in it."""

from typing import Final

from gateway.pravega.connection import SegmentConnection
from gateway.pravega.segments import CREATED_AT
from hutch.pravega.codec import HEAD, HEAD_BYTES
from hutch.pravega.messages import LocateOffset, OffsetLocated, ReadSegment
from store.api import ReadResult, SegmentInfo
from store.errors import StoreError

_READ_BYTES: Final = 64 * 1024
_SEARCHED_BYTES_MAX: Final = 32 * 1024 * 1024
_EVENT: Final = 0


class Locating:
    """A search for the beginning of the event that holds an offset.

    It goes from the last noted append on, by the heads of events. Bytes that are no events end the
    search. Before the first append that is noted, the answer is the segment's start.
    """

    def __init__(self, connection: SegmentConnection, request: LocateOffset) -> None:
        self._connection = connection
        self._request = request
        self._info = SegmentInfo(
            request.segment, 0, 0, sealed=False, is_table=False, modified_at_ms=0
        )
        self._begin = 0
        self._position = 0

    def begin(self) -> None:
        """Answer once the event is found."""
        self._connection.store.info(self._request.segment, done=self._described)

    def _described(self, outcome: SegmentInfo | StoreError) -> None:
        target = self._request.target_offset
        if isinstance(outcome, StoreError):
            self._refuse(outcome)
        elif target >= outcome.length:
            self._answer(outcome.length)
        elif target <= outcome.start:
            self._answer(outcome.start)
        else:
            self._info = outcome
            self._connection.store.get_attribute(
                self._request.segment, CREATED_AT, done=self._dated
            )

    def _dated(self, outcome: int | StoreError) -> None:
        if isinstance(outcome, StoreError):
            self._refuse(outcome)
            return
        target = self._request.target_offset
        noted = self._connection.context.boundaries.below(self._request.segment, outcome, target)
        self._position = self._begin = max(noted, self._info.start)
        if noted or target - self._position < _SEARCHED_BYTES_MAX:
            self._look()
        else:
            self._answer(self._position)

    def _look(self) -> None:
        """Read heads of events from the position on."""
        segment, position = self._request.segment, self._position
        self._connection.store.read(segment, position, _READ_BYTES, done=self._read)

    def _read(self, outcome: ReadResult | StoreError) -> None:
        if isinstance(outcome, StoreError):
            self._refuse(outcome)
            return
        target, data, first = self._request.target_offset, outcome.data, self._position
        end = first + len(data)
        while self._position + HEAD_BYTES <= end:
            code, size = HEAD.unpack_from(data, self._position - first)
            behind = self._position + HEAD_BYTES + size
            if code != _EVENT or size < 0 or behind > target:
                self._answer(self._position)
                return
            self._position = behind
        if self._position == first or self._position - self._begin > _SEARCHED_BYTES_MAX:
            self._answer(self._position)
        else:
            self._look()

    def _answer(self, offset: int) -> None:
        request = self._request
        self._connection.reply(OffsetLocated(request.request_id, request.segment, offset))

    def _refuse(self, error: StoreError) -> None:
        request = self._request
        self._connection.refuse(
            request.request_id, request.segment, error, offset=request.target_offset
        )


def read_segment(connection: SegmentConnection, request: ReadSegment) -> None:
    """Send bytes from an offset on, once there are any."""
    connection.reads.ask(request)


def locate_offset(connection: SegmentConnection, request: LocateOffset) -> None:
    """Answer where the event begins that holds an offset."""
    Locating(connection, request).begin()
