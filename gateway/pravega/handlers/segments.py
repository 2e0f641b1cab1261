"""Requests about segments: their life, and facts of them."""

from gateway.pending import Pending, asked
from gateway.pravega.core_attributes import CREATED_AT, ROLLOVER_SIZE, SCALE_RATE, SCALE_TYPE
from gateway.pravega.desk import Desk
from gateway.pravega.room import check_room
from hutch.pravega import messages as m
from store.api import AttributeUpdate, SegmentInfo


def create_segment(desk: Desk, request: m.CreateSegment) -> None:
    """Create a segment together with its policy."""

    def reply(_result: object) -> m.SegmentCreated:
        return m.SegmentCreated(request.request_id, request.segment)

    values = {
        CREATED_AT: desk.host.clock_ms(),
        SCALE_TYPE: request.scale_type,
        SCALE_RATE: request.target_rate,
        ROLLOVER_SIZE: request.rollover_size,
    }
    attributes = [AttributeUpdate(name, value) for name, value in values.items()]
    store, segment = desk.store, request.segment
    done = desk.answering(request.request_id, segment, reply)

    async def create() -> None:
        await check_room(store, segment)
        if not desk.is_over:
            made: Pending[None] = asked(
                lambda done: store.create_segment(segment, done=done, attributes=attributes)
            )
            await made

    # What follows on the connection may be about the segment.
    desk.hold_for(create(), done)


def create_transient_segment(desk: Desk, request: m.CreateTransientSegment) -> None:
    """Create a segment that goes with the connection."""

    def reply(name: str) -> m.SegmentCreated:
        return m.SegmentCreated(request.request_id, name)

    done = desk.answering(request.request_id, request.parent, reply)
    desk.transients.create(request.parent, request.writer_id, desk.user, done=done)


def update_segment_policy(desk: Desk, request: m.UpdateSegmentPolicy) -> None:
    """Change scale type and rate together."""

    def reply(_result: object) -> m.SegmentPolicyUpdated:
        return m.SegmentPolicyUpdated(request.request_id, request.segment)

    updates = [
        AttributeUpdate(SCALE_TYPE, request.scale_type),
        AttributeUpdate(SCALE_RATE, request.target_rate),
    ]
    done = desk.answering(request.request_id, request.segment, reply)
    desk.store.update_attributes(request.segment, updates, done=done)


def seal_segment(desk: Desk, request: m.SealSegment) -> None:
    """Let a segment take no more."""

    def reply(_result: object) -> m.SegmentSealed:
        return m.SegmentSealed(request.request_id, request.segment)

    done = desk.answering(request.request_id, request.segment, reply)
    desk.store.seal_segment(request.segment, done=done)


def truncate_segment(desk: Desk, request: m.TruncateSegment) -> None:
    """Truncate at an offset."""

    def reply(_result: object) -> m.SegmentTruncated:
        return m.SegmentTruncated(request.request_id, request.segment)

    done = desk.answering(request.request_id, request.segment, reply, offset=request.offset)
    desk.store.truncate_segment(request.segment, request.offset, done=done)


def delete_segment(desk: Desk, request: m.DeleteSegment) -> None:
    """Delete a segment; its name is free at once."""

    def reply(_result: object) -> m.SegmentDeleted:
        desk.host.boundaries.forget(request.segment)
        desk.transients.forget(request.segment)
        return m.SegmentDeleted(request.request_id, request.segment)

    done = desk.answering(request.request_id, request.segment, reply)
    desk.store.delete_segment(request.segment, done=done)


def get_info(desk: Desk, request: m.GetStreamSegmentInfo) -> None:
    """Answer with length, start and state."""

    def reply(info: SegmentInfo) -> m.StreamSegmentInfo:
        return m.StreamSegmentInfo(
            request.request_id,
            request.segment,
            exists=True,
            is_sealed=info.sealed,
            is_deleted=False,
            last_modified=info.modified_at_ms,
            write_offset=info.length,
            start_offset=info.start,
        )

    done = desk.answering(request.request_id, request.segment, reply)
    desk.store.info(request.segment, done=done)
