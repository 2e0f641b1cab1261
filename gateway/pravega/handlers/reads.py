"""Reads. One at or behind the tail waits without a limit, and holds up nothing else."""

from typing import Final

from gateway.pravega.desk import Desk
from store.api import READ_BYTES_MAX, ReadResult
from store.errors import PositionOutOfRange, SegmentSealed, StoreClosed, StoreError
from store.wire.messages import ReadSegment, SegmentRead

READ_BYTES_MIN: Final = 8


def read_segment(desk: Desk, request: ReadSegment) -> None:
    """Send bytes from an offset on, once there are any."""

    def done(outcome: ReadResult | StoreError) -> None:
        if isinstance(outcome, ReadResult) and not outcome.data and not outcome.end_of_segment:
            _wait(desk, request)
        else:
            _answer(desk, request, outcome)

    desk.store.read(request.segment, request.offset, _size_of(request), done=done)


def _size_of(request: ReadSegment) -> int:
    return min(max(request.suggested_length, READ_BYTES_MIN), READ_BYTES_MAX)


def _wait(desk: Desk, request: ReadSegment) -> None:
    """Answer when there are bytes at the offset; give up when the connection is over."""
    if desk.is_over:
        return

    def done(outcome: ReadResult | StoreError) -> None:
        desk.forget(request_key)
        is_sealed = isinstance(outcome, ReadResult) and not outcome.data
        if is_sealed or isinstance(outcome, PositionOutOfRange):
            outcome = SegmentSealed(f"segment {request.segment!r} is sealed")
        elif isinstance(outcome, StoreClosed):  # as Pravega's readers expect it of a server's end
            outcome = ReadResult(request.offset, b"", end_of_segment=False, at_tail=True)
        _answer(desk, request, outcome)

    request_key = object()
    size = _size_of(request)
    cancel = desk.store.read(request.segment, request.offset, size, done=done, wait=True)
    desk.at_end(request_key, cancel)


def _answer(desk: Desk, request: ReadSegment, outcome: ReadResult | StoreError) -> None:
    if isinstance(outcome, StoreError):
        desk.refuse(request.request_id, request.segment, outcome, offset=request.offset)
        if isinstance(outcome, PositionOutOfRange):
            desk.close(str(outcome))
        return
    desk.reply(
        SegmentRead(
            request.segment,
            request.offset,
            outcome.at_tail,
            outcome.end_of_segment,
            outcome.data,
            request.request_id,
        )
    )
