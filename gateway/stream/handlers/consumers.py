"""Subscriptions with their credit, and the offsets that consumers store.

Source: RabbitMQ stream protocol; order of checks and codes as observed on RabbitMQ 4.3.
"""

import logging

from gateway.broker.errors import BrokerError
from gateway.stream.consuming import Subscription
from gateway.stream.handlers.publishers import REFERENCE_BYTES_MAX, size_of
from gateway.stream.handlers.streams import OK, locate_spec
from gateway.stream.link import IDS_MAX, Link
from gateway.stream.refusals import Refusal
from gateway.stream.wire import messages as m
from gateway.stream.wire.codes import ResponseCode
from gateway.stream.wire.commands import Permission
from store.errors import StoreError

log = logging.getLogger(__name__)


async def subscribe(link: Link, request: m.Subscribe) -> m.Status:
    """Start delivering a stream from a place; what is delivered comes after this reply."""
    if len(link.subscriptions) >= IDS_MAX:
        raise Refusal(ResponseCode.PRECONDITION_FAILED, "256 subscriptions on this connection")
    name = request.properties.get("name", "")
    link.require(Permission.READ, request.stream)
    if size_of(name) > REFERENCE_BYTES_MAX:
        raise Refusal(ResponseCode.PRECONDITION_FAILED, "the name is above 255 bytes")
    stream = link.streams.find(request.stream)
    if request.subscription_id in link.subscriptions:
        raise Refusal(ResponseCode.SUBSCRIPTION_ID_ALREADY_EXISTS)
    if request.properties.get("single-active-consumer") == "true":
        reason = "single active consumer is not supported" if name else "it needs a name"
        raise Refusal(ResponseCode.PRECONDITION_FAILED, reason)
    stream_log = await link.streams.log_of(stream)
    start = await locate_spec(stream_log, request.offset)
    if stream_log.failure is not None:  # who watched was told; this link did not yet
        raise Refusal(ResponseCode.STREAM_NOT_AVAILABLE, str(stream_log.failure))
    link.watch(stream)
    subscription = Subscription(
        request.subscription_id,
        stream,
        stream_log,
        request.credit,
        request.properties,
        link.ports,
    )
    link.subscriptions[request.subscription_id] = subscription
    link.ports.after_reply(
        lambda: subscription.begin(
            start.position,
            frame_bytes_max=link.host.settings.frame_bytes_max,
            takes_regions=link.ports.takes_regions,
        )
    )
    return OK


async def credit(link: Link, request: m.Credit) -> m.CreditRefused | None:
    """Allow a subscription more chunks; answered only when there is no such subscription."""
    subscription = link.subscriptions.get(request.subscription_id)
    if subscription is None:
        code = ResponseCode.SUBSCRIPTION_ID_DOES_NOT_EXIST
        return m.CreditRefused(code, request.subscription_id)
    subscription.add_credit(request.credit)
    return None


async def unsubscribe(link: Link, request: m.Unsubscribe) -> m.Status:
    """End a subscription; chunks on their way still arrive before the reply."""
    subscription = link.subscriptions.get(request.subscription_id)
    if subscription is None:
        raise Refusal(ResponseCode.SUBSCRIPTION_ID_DOES_NOT_EXIST)
    link.drop_subscription(subscription)
    link.unwatch_if_unused(subscription.stream)
    return OK


async def store_offset(link: Link, request: m.StoreOffset) -> None:
    """Remember a consumer's offset; what cannot be is dropped without a word."""
    try:
        if size_of(request.reference) > REFERENCE_BYTES_MAX:
            return
        stream = link.streams.find(request.stream)
        # Who subscribes to it was asked then.
        if not any(each.stream is stream for each in link.subscriptions.values()):
            link.require(Permission.READ, request.stream)
        link.watch(stream)
    except (BrokerError, Refusal) as error:
        log.debug("offset not stored stream=%r reason=%s", request.stream, error)
        return
    reference = request.reference.encode("utf-8", "surrogateescape")
    link.streams.tracking.store_offset(stream.entry.generation, reference, request.offset)


async def query_offset(link: Link, request: m.QueryOffset) -> m.StoredOffset:
    """Give the offset that was stored last and acknowledged."""
    link.require(Permission.READ, request.stream)
    stream = link.streams.find(request.stream)
    link.watch(stream)
    if size_of(request.reference) > REFERENCE_BYTES_MAX:
        raise Refusal(ResponseCode.NO_OFFSET)
    reference = request.reference.encode("utf-8", "surrogateescape")
    try:
        offset = await link.streams.tracking.query_offset(stream.entry.generation, reference)
    except StoreError as error:
        raise Refusal(ResponseCode.STREAM_NOT_AVAILABLE, str(error)) from error
    if offset is None:
        raise Refusal(ResponseCode.NO_OFFSET)
    return m.StoredOffset(ResponseCode.OK, offset)


async def consumer_update(_link: Link, _reply: m.ConsumerUpdateReply) -> None:
    """Ignore an answer to a question that was never asked, as RabbitMQ does."""
