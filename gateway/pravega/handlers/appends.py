"""Set-ups of writers, and their appends."""

from uuid import UUID

from gateway.pravega.desk import Desk
from gateway.pravega.writer import SetUp
from store.api import Appended, Writer
from store.errors import EventNumberTooLow, LengthMismatch, StoreError, WriterFenced
from store.wire import messages as m
from store.wire.block import append_pieces
from store.wire.error_messages import InvalidEventNumber
from store.wire.errors import WireError


def setup_append(desk: Desk, request: m.SetupAppend) -> None:
    """Open a session of a writer; what comes next waits for it."""

    def done(outcome: Writer | StoreError) -> None:
        if desk.is_over:
            return
        if isinstance(outcome, StoreError):
            desk.set_ups.pop(request.writer_id, None)
            desk.refuse(request.request_id, request.segment, outcome)
        else:
            set_up = SetUp(request.writer_id, request.segment, outcome)
            desk.set_ups[request.writer_id] = set_up
            last = outcome.event_number
            setup = m.AppendSetup(request.request_id, request.segment, request.writer_id, last)
            desk.reply(setup)
        desk.release()

    desk.hold()
    desk.store.open_writer(request.segment, request.writer_id, done=done)


def append_block_end(desk: Desk, request: m.AppendBlockEnd) -> None:
    """Append what the block and its end bring."""
    try:
        data = b"".join(append_pieces(None, request))
    except WireError as error:
        desk.close(str(error))
        return
    _append(desk, request.writer_id, request.last_event_number, data, request.request_id)


def conditional_block_end(desk: Desk, request: m.ConditionalBlockEnd) -> None:
    """Append bytes if the segment has the expected length."""
    number, expected = request.event_number, request.expected_offset
    _append(desk, request.writer_id, number, request.data, request.request_id, expected)


def _append(
    desk: Desk,
    writer_id: UUID,
    number: int,
    data: bytes,
    request_id: int,
    expected_length: int | None = None,
) -> None:
    set_up = desk.set_ups.get(writer_id)
    if set_up is None:
        desk.close(f"an append of writer {writer_id}, which is not set up")
        return
    if set_up.is_broken:
        return
    if number < max(set_up.writer.event_number, 0):
        desk.close(f"event number {number} is below {set_up.writer.event_number}")
        return

    def done(outcome: Appended | StoreError) -> None:
        if isinstance(outcome, EventNumberTooLow):  # the number that the set-up began with
            outcome = Appended(set_up.writer.length, 0, number)
        if isinstance(outcome, StoreError):
            _failed(desk, set_up, number, request_id, outcome)
            return
        previous, set_up.acknowledged = set_up.acknowledged, number
        length = outcome.position + outcome.size
        desk.reply(m.DataAppended(writer_id, number, previous, request_id, length))

    set_up.writer.append(data, number, done=done, expected_length=expected_length)


def _failed(desk: Desk, set_up: SetUp, number: int, request_id: int, error: StoreError) -> None:
    if isinstance(error, LengthMismatch):
        desk.reply(m.ConditionalCheckFailed(set_up.writer_id, number, request_id))
    elif isinstance(error, WriterFenced):
        desk.reply(InvalidEventNumber(set_up.writer_id, request_id, str(error), number))
        desk.close(str(error))
    elif not set_up.is_broken:
        set_up.is_broken = True
        desk.refuse(request_id, set_up.segment, error)
