"""Requests about attributes of a segment."""

from gateway.pravega.desk import Desk
from hutch.pravega import messages as m
from store.api import AttributeUpdate
from store.errors import AttributeMismatch, StoreError


def get_attribute(desk: Desk, request: m.GetSegmentAttribute) -> None:
    """Answer with the value of an attribute, however long the segment was idle."""

    def reply(value: int) -> m.SegmentAttribute:
        return m.SegmentAttribute(request.request_id, value)

    done = desk.answering(request.request_id, request.segment, reply)
    desk.store.get_attribute(request.segment, request.attribute_id, done=done)


def update_attribute(desk: Desk, request: m.UpdateSegmentAttribute) -> None:
    """Set an attribute if it has the expected value."""

    def done(outcome: StoreError | None) -> None:
        if outcome is None or isinstance(outcome, AttributeMismatch):
            desk.reply(m.SegmentAttributeUpdated(request.request_id, outcome is None))
        else:
            desk.refuse(request.request_id, request.segment, outcome)

    update = AttributeUpdate(request.attribute_id, request.new_value, request.expected_value)
    desk.store.update_attributes(request.segment, [update], done=done)
