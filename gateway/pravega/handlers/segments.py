"""Requests about segments: their life, facts of them, and their attributes."""

from gateway.pending import Pending, asked
from gateway.pravega.connection import SegmentConnection
from gateway.pravega.segments import CREATED_AT, ROLLOVER_SIZE, SCALE_RATE, SCALE_TYPE, check_room
from hutch.pravega import messages as m
from store.api import AttributeUpdate, SegmentInfo
from store.errors import AttributeMismatch, StoreError


def create_segment(connection: SegmentConnection, request: m.CreateSegment) -> None:
    """Create a segment together with its policy."""

    def reply(_result: object) -> m.SegmentCreated:
        return m.SegmentCreated(request.request_id, request.segment)

    values = {
        CREATED_AT: connection.context.clock_ms(),
        SCALE_TYPE: request.scale_type,
        SCALE_RATE: request.target_rate,
        ROLLOVER_SIZE: request.rollover_size,
    }
    attributes = [AttributeUpdate(name, value) for name, value in values.items()]
    store, segment = connection.store, request.segment
    done = connection.answering(request.request_id, segment, reply)

    async def create() -> None:
        await check_room(store, segment)
        if not connection.is_over:
            made: Pending[None] = asked(
                lambda done: store.create_segment(segment, done=done, attributes=attributes)
            )
            await made

    # What follows on the connection may be about the segment.
    connection.hold_for(create(), done)


def create_transient_segment(
    connection: SegmentConnection, request: m.CreateTransientSegment
) -> None:
    """Create a segment that goes with the connection."""

    def reply(name: str) -> m.SegmentCreated:
        return m.SegmentCreated(request.request_id, name)

    done = connection.answering(request.request_id, request.parent, reply)
    connection.transients.create(request.parent, request.writer_id, connection.user, done=done)


def update_segment_policy(connection: SegmentConnection, request: m.UpdateSegmentPolicy) -> None:
    """Change scale type and rate together."""

    def reply(_result: object) -> m.SegmentPolicyUpdated:
        return m.SegmentPolicyUpdated(request.request_id, request.segment)

    updates = [
        AttributeUpdate(SCALE_TYPE, request.scale_type),
        AttributeUpdate(SCALE_RATE, request.target_rate),
    ]
    done = connection.answering(request.request_id, request.segment, reply)
    connection.store.update_attributes(request.segment, updates, done=done)


def seal_segment(connection: SegmentConnection, request: m.SealSegment) -> None:
    """Let a segment take no more."""

    def reply(_result: object) -> m.SegmentSealed:
        return m.SegmentSealed(request.request_id, request.segment)

    done = connection.answering(request.request_id, request.segment, reply)
    connection.store.seal_segment(request.segment, done=done)


def truncate_segment(connection: SegmentConnection, request: m.TruncateSegment) -> None:
    """Truncate at an offset."""

    def reply(_result: object) -> m.SegmentTruncated:
        return m.SegmentTruncated(request.request_id, request.segment)

    done = connection.answering(request.request_id, request.segment, reply, offset=request.offset)
    connection.store.truncate_segment(request.segment, request.offset, done=done)


def delete_segment(connection: SegmentConnection, request: m.DeleteSegment) -> None:
    """Delete a segment; its name is free at once."""

    def reply(_result: object) -> m.SegmentDeleted:
        connection.context.boundaries.forget(request.segment)
        connection.transients.forget(request.segment)
        return m.SegmentDeleted(request.request_id, request.segment)

    done = connection.answering(request.request_id, request.segment, reply)
    connection.store.delete_segment(request.segment, done=done)


def get_info(connection: SegmentConnection, request: m.GetStreamSegmentInfo) -> None:
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

    done = connection.answering(request.request_id, request.segment, reply)
    connection.store.info(request.segment, done=done)


def get_attribute(connection: SegmentConnection, request: m.GetSegmentAttribute) -> None:
    """Answer with the value of an attribute, however long the segment was idle."""

    def reply(value: int) -> m.SegmentAttribute:
        return m.SegmentAttribute(request.request_id, value)

    done = connection.answering(request.request_id, request.segment, reply)
    connection.store.get_attribute(request.segment, request.attribute_id, done=done)


def update_attribute(connection: SegmentConnection, request: m.UpdateSegmentAttribute) -> None:
    """Set an attribute if it has the expected value."""

    def done(outcome: StoreError | None) -> None:
        if outcome is None or isinstance(outcome, AttributeMismatch):
            connection.reply(m.SegmentAttributeUpdated(request.request_id, outcome is None))
        else:
            connection.refuse(request.request_id, request.segment, outcome)

    update = AttributeUpdate(request.attribute_id, request.new_value, request.expected_value)
    connection.store.update_attributes(request.segment, [update], done=done)
