"""Subscriptions with their credit and their groups, and the offsets that consumers store.

Source: RabbitMQ stream protocol; order of checks and codes as observed on RabbitMQ 4.3.
"""

import logging
from collections.abc import Mapping
from typing import Final

from gateway.broker.errors import BrokerError, PreconditionFailed, StreamNotAvailable
from gateway.broker.groups import NO_PARTITION
from gateway.log.log import StreamLog
from gateway.log.reading.locations import Start, tell_removed
from gateway.logs import NameInHost
from gateway.stream.consuming import CreditSubscription
from gateway.stream.handlers.publishers import REFERENCE_BYTES_MAX, size_of
from gateway.stream.handlers.streams import OK, locate_spec
from gateway.stream.link import IDS_MAX, Link, carry_out
from gateway.stream.membership import Membership, Question
from gateway.stream.properties import Properties, TooLarge
from gateway.stream.refusals import Refusal
from hutch.stream import messages as m
from hutch.stream.codec import Decoded
from hutch.stream.codes import ResponseCode, in_words
from hutch.stream.commands import Permission
from hutch.stream.offsets import OffsetSpec, OffsetType
from store.errors import StoreError

log = logging.getLogger(__name__)

_FIRST_CHUNK_MS: Final = 1
"""Delay of the first chunk. The Node client resolves Subscribe only after it has processed all of a
read. A chunk in the same read would reach a consumer that its caller does not hold yet."""


async def subscribe(link: Link, request: m.Subscribe) -> m.Status:
    """Start delivering a stream from a place; chunks come after this reply."""
    if len(link.subscriptions) >= IDS_MAX:
        raise Refusal(ResponseCode.PRECONDITION_FAILED, "256 subscriptions on this connection")
    name = request.properties.get("name", "")
    link.require(Permission.READ, request.stream)
    if size_of(name) > REFERENCE_BYTES_MAX:
        raise Refusal(ResponseCode.PRECONDITION_FAILED, "the name is above 255 bytes")
    stream = link.streams.find(request.stream)
    if request.subscription_id in link.subscriptions:
        raise Refusal(ResponseCode.SUBSCRIPTION_ID_ALREADY_EXISTS)
    is_single = request.properties.get("single-active-consumer") == "true"
    if is_single and "name" not in request.properties:
        raise Refusal(ResponseCode.PRECONDITION_FAILED, "a single active consumer needs a name")
    properties = _kept(link, request.properties)
    stream_log = await link.streams.logs.of(stream)
    # A member of a group gets its place when it is asked to start.
    start = None if is_single else await _located(stream_log, request.offset)
    if stream_log.failure is not None:  # its users were told; this link is not one yet
        raise Refusal(ResponseCode.STREAM_NOT_AVAILABLE, str(stream_log.failure))
    link.require(Permission.READ, request.stream)  # the right may have been taken away meanwhile
    link.watch(stream)
    subscription = CreditSubscription(
        request.subscription_id,
        stream,
        stream_log,
        request.credit,
        properties,
        link,
    )
    if start is None:
        _join(link, subscription, name, request.offset)
    else:
        found = start
        link.after_reply(lambda: _begin(link, subscription, found))
    link.subscriptions[request.subscription_id] = subscription
    return OK


def _kept(link: Link, given: Mapping[str, str]) -> Properties:
    """Return a subscription's properties, if the connection may keep them. Raises Refusal."""
    kept = (each.properties for each in link.subscriptions.values())
    others_bytes = sum(each.wire_bytes for each in kept if isinstance(each, Properties))
    try:
        return Properties(given, others_bytes)
    except TooLarge as error:
        raise Refusal(ResponseCode.PRECONDITION_FAILED, str(error)) from None


async def _located(stream_log: StreamLog, spec: OffsetSpec) -> Start:
    """Find the place where a subscription begins. Raises StreamNotAvailable."""
    start = await locate_spec(stream_log, spec)
    if spec.type is OffsetType.OFFSET:
        tell_removed(stream_log, spec.value)
    return start


def _begin(link: Link, subscription: CreditSubscription, start: Start) -> None:
    link.reads_at(subscription.stream, start.offset)
    subscription.begin(
        start.position,
        chunk_bytes_max=link.host.settings.chunk_bytes_max,
        takes_regions=link.ports.takes_regions,
    )
    link.ports.later(_FIRST_CHUNK_MS, subscription.wake)


def _join(link: Link, subscription: CreditSubscription, name: str, spec: OffsetSpec) -> None:
    """Enter a group with a single active consumer; its orders are carried out after the reply.

    Raises:
        PreconditionFailed: The group has another partition index.
    """
    membership = Membership(link, subscription, name, spec)
    stream = subscription.stream
    super_stream = subscription.properties.get("super-stream")
    index = NO_PARTITION
    if super_stream is not None:
        index = link.virtual_host.partition_index(super_stream, stream.name)
    try:
        order = link.virtual_host.groups.join(stream.entry.generation, name, index, membership)
    except PreconditionFailed:
        link.unwatch_if_unused(stream)
        raise
    subscription.is_single = True
    link.memberships[subscription.subscription_id] = membership
    group = link.virtual_host.groups.of(membership.generation, name)
    if super_stream is None and stream.bound_by and group is not None and len(group.members) == 2:  # noqa: PLR2004 - said once, not for each
        log.warning(
            "consumers of a partition name no super stream, one reads all stream=%s name=%r",
            link.shown(stream),
            name,
        )
    if order is not None:
        link.after_reply(order.carry_out)


async def credit(link: Link, request: m.Credit) -> m.CreditRefused | None:
    """Allow a subscription more chunks; answered only if it does not exist, or may not read."""
    subscription = link.subscriptions.get(request.subscription_id)
    if subscription is None:
        code = ResponseCode.SUBSCRIPTION_ID_DOES_NOT_EXIST
        return m.CreditRefused(code, request.subscription_id)
    subscription.add_credit(request.credit)
    if subscription.is_single and not subscription.is_reading:
        return m.CreditRefused(ResponseCode.PRECONDITION_FAILED, request.subscription_id)
    return None


async def unsubscribe(link: Link, request: m.Unsubscribe) -> m.Status:
    """End a subscription; chunks on their way still arrive before the reply."""
    subscription = link.subscriptions.get(request.subscription_id)
    if subscription is None:
        raise Refusal(ResponseCode.SUBSCRIPTION_ID_DOES_NOT_EXIST)
    orders = link.take_out([subscription])
    link.unwatch_if_unused(subscription.stream)
    link.after_reply(lambda: carry_out(orders))
    return OK


async def store_offset(link: Link, request: m.StoreOffset) -> None:
    """Store a consumer's offset; one that cannot be stored is dropped without an answer."""
    try:
        if size_of(request.reference) > REFERENCE_BYTES_MAX:
            return
        stream = link.streams.find(request.stream)
        # The right of a subscriber was checked when it subscribed.
        if not any(each.stream is stream for each in link.subscriptions.values()):
            link.require(Permission.READ, request.stream)
        link.watch(stream)
    except (BrokerError, Refusal) as error:
        shown = NameInHost(request.stream, link.virtual_host_name)
        log.debug("offset not stored peer=%s stream=%s reason=%s", link.peer, shown, error)
        return
    reference = request.reference.encode("utf-8", "surrogateescape")
    link.streams.logs.store_offset(stream, reference, request.offset)


async def query_offset(link: Link, request: m.QueryOffset) -> m.StoredOffset:
    """Return the offset that was stored last and acknowledged."""
    link.require(Permission.READ, request.stream)
    stream = link.streams.find(request.stream)
    link.watch(stream)
    if size_of(request.reference) > REFERENCE_BYTES_MAX:
        raise Refusal(ResponseCode.NO_OFFSET)
    reference = request.reference.encode("utf-8", "surrogateescape")
    try:
        offset = await link.streams.logs.stored_offset(stream, reference)
    except StoreError as error:
        raise Refusal(ResponseCode.STREAM_NOT_AVAILABLE, str(error)) from error
    if offset is None:
        raise Refusal(ResponseCode.NO_OFFSET)
    return m.StoredOffset(ResponseCode.OK, offset)


async def consumer_update(link: Link, answer: Decoded) -> None:
    """Take a client's answer: start delivering to the active consumer, or promote the next one.

    An answer to no open question is ignored. So is the answer's code: a client that says it failed
    to start is started, and one that says it failed to stop is stopped.
    """
    reply = answer.message
    assert isinstance(reply, m.ConsumerUpdateReply)
    assert answer.correlation_id is not None
    question = link.questions.answered(answer.correlation_id)
    if question is None:
        log.info(
            "answer without a question ignored peer=%s id=%d",
            link.ports.peer,
            answer.correlation_id,
        )
        return
    membership = question.membership
    if reply.code != ResponseCode.OK:
        log.warning(
            "consumer answered with an error, which changes nothing peer=%s name=%r code=%s",
            link.ports.peer,
            membership.name,
            in_words(reply.code),
        )
    if question.is_active:
        await _start(link, question, reply.offset)
        return
    groups = link.virtual_host.groups
    order = groups.stepped_down(membership.generation, membership.name, membership)
    if order is not None:
        order.carry_out()


async def _start(link: Link, question: Question, given: OffsetSpec) -> None:
    """Deliver to a consumer that became active, from the place that its client says."""
    membership = question.membership
    subscription = membership.subscription
    is_given = given.type is not OffsetType.NONE
    spec = given if is_given else membership.spec
    log.info(
        "consumer active stream=%s name=%r peer=%s subscription=%d offset=%s given_by=%s",
        link.shown(subscription.stream),
        membership.name,
        link.ports.peer,
        subscription.subscription_id,
        f"{spec.type.name.lower()}/{spec.value}",
        "answer" if is_given else "subscribe",
    )
    try:
        start = await _located(subscription.log, spec)
    except StreamNotAvailable:
        if membership.question is question:
            link.lose(subscription.stream)
        return
    if membership.question is question:  # it was not asked to step down meanwhile
        _begin(link, subscription, start)
