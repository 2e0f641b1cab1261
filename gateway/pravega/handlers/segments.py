"""Requests about segments: their life, and facts of them."""

from functools import partial

from gateway.pravega.core_attributes import CREATED_AT, ROLLOVER_SIZE, SCALE_RATE, SCALE_TYPE
from gateway.pravega.desk import Desk
from store.api import AttributeUpdate, SegmentInfo
from store.errors import StoreError
from store.wire import messages as m


def create_segment(desk: Desk, request: m.CreateSegment) -> None:
    """Create a segment together with its policy."""

    def done(outcome: StoreError | None) -> None:
        if outcome is None:
            desk.reply(m.SegmentCreated(request.request_id, request.segment))
        else:
            desk.refuse(request.request_id, request.segment, outcome)

    values = {
        CREATED_AT: desk.host.clock_ms(),
        SCALE_TYPE: request.scale_type,
        SCALE_RATE: request.target_rate,
        ROLLOVER_SIZE: request.rollover_size,
    }
    attributes = [AttributeUpdate(name, value) for name, value in values.items()]
    desk.store.create_segment(request.segment, done=done, attributes=attributes)


def create_transient_segment(desk: Desk, request: m.CreateTransientSegment) -> None:
    """Create a segment that goes with the connection."""
    transients = desk.host.transients

    def done(outcome: str | StoreError) -> None:
        if isinstance(outcome, StoreError):
            desk.refuse(request.request_id, request.parent, outcome)
        elif desk.is_over:
            transients.delete(outcome)
        else:
            desk.at_end(outcome, partial(transients.delete, outcome))
            desk.reply(m.SegmentCreated(request.request_id, outcome))

    transients.create(request.parent, request.writer_id, done=done)


def update_segment_policy(desk: Desk, request: m.UpdateSegmentPolicy) -> None:
    """Change scale type and rate together."""

    def done(outcome: StoreError | None) -> None:
        if outcome is None:
            desk.reply(m.SegmentPolicyUpdated(request.request_id, request.segment))
        else:
            desk.refuse(request.request_id, request.segment, outcome)

    updates = [
        AttributeUpdate(SCALE_TYPE, request.scale_type),
        AttributeUpdate(SCALE_RATE, request.target_rate),
    ]
    desk.store.update_attributes(request.segment, updates, done=done)


def seal_segment(desk: Desk, request: m.SealSegment) -> None:
    """Let a segment take no more."""

    def done(outcome: int | StoreError) -> None:
        if isinstance(outcome, StoreError):
            desk.refuse(request.request_id, request.segment, outcome)
        else:
            desk.reply(m.SegmentSealed(request.request_id, request.segment))

    desk.store.seal_segment(request.segment, done=done)


def truncate_segment(desk: Desk, request: m.TruncateSegment) -> None:
    """Give up what lies before an offset."""

    def done(outcome: StoreError | None) -> None:
        if outcome is None:
            desk.reply(m.SegmentTruncated(request.request_id, request.segment))
        else:
            desk.refuse(request.request_id, request.segment, outcome, offset=request.offset)

    desk.store.truncate_segment(request.segment, request.offset, done=done)


def delete_segment(desk: Desk, request: m.DeleteSegment) -> None:
    """Delete a segment; its name is free at once."""

    def done(outcome: StoreError | None) -> None:
        if outcome is None:
            desk.host.boundaries.forget(request.segment)
            desk.reply(m.SegmentDeleted(request.request_id, request.segment))
        else:
            desk.refuse(request.request_id, request.segment, outcome)

    desk.store.delete_segment(request.segment, done=done)


def get_info(desk: Desk, request: m.GetStreamSegmentInfo) -> None:
    """Give length, start and state."""

    def done(outcome: SegmentInfo | StoreError) -> None:
        if isinstance(outcome, StoreError):
            desk.refuse(request.request_id, request.segment, outcome)
            return
        desk.reply(
            m.StreamSegmentInfo(
                request.request_id,
                request.segment,
                exists=True,
                is_sealed=outcome.sealed,
                is_deleted=False,
                last_modified=outcome.modified_at_ms,
                write_offset=outcome.length,
                start_offset=outcome.start,
            )
        )

    desk.store.info(request.segment, done=done)
