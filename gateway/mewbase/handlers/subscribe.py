"""SUBSCRIBE, ACKEV, UNSUBSCRIBE and SUBCLOSE: events of a channel out.

A durable subscription that two connections ask for is the later one's: the earlier one gets nothing
more, and is not told.
"""

import dataclasses
from typing import Final

from gateway.broker.access.model import Right
from gateway.broker.streams.catalogue import Stream
from gateway.log.log import StreamLog
from gateway.log.ports import when_all_committed
from gateway.log.reading.locations import StartKind, locate
from gateway.mewbase import durable
from gateway.mewbase.link import ChannelLink
from gateway.mewbase.matcher import BadMatcher, Matcher, read_matcher
from gateway.mewbase.refusals import RequestRefusal
from gateway.mewbase.subscription import ChannelSubscription, WantedEvents
from gateway.mewbase.window import Window
from gateway.mewbase.wire import writing
from gateway.mewbase.wire.errors import Code
from gateway.mewbase.wire.frames import SUBRESPONSE
from gateway.mewbase.wire.reading import Request

_NONE_GIVEN: Final = -1


async def subscribe(link: ChannelLink, request: Request) -> None:
    """Deliver a channel from a place on; the answer comes before the first event."""
    values, settings = request.values, link.host.settings
    channel = values["channel"]
    _check(request)
    if len(link.subscriptions) >= settings.subscriptions_max:
        most = settings.subscriptions_max
        reason = f"the connection has {most} subscriptions (mewbase.subscriptions_max)"
        raise RequestRefusal(Code.BAD_REQUEST, reason)
    matcher = await _matcher(link, values["matcher"])
    link.require(Right.READ, channel)
    stream = link.streams.find(channel)
    stream_log = await link.streams.logs.of(stream)
    since_ms = max(values["startTimestamp"] or 0, 0)
    name = _durable_name(values["durableID"])
    if name is None:
        position = await _start(stream_log, values["startPos"], since_ms)
        wanted = WantedEvents(position=position, since_ms=since_ms, matcher=matcher)
        _begin(link, values["rID"], stream, stream_log, wanted)
        return
    async with link.host.durables.changing(durable.key_of(stream, name)):
        known = await _taken_over(link, stream, name)
        if known is None:
            position = await _start(stream_log, values["startPos"], since_ms)
            await durable.begin(link.streams.logs, stream, name, position, link.user)
            wanted = WantedEvents(position=position, since_ms=since_ms, matcher=matcher)
        else:
            wanted = WantedEvents(position=known, since_ms=since_ms, matcher=matcher)
        _begin(link, values["rID"], stream, stream_log, wanted, name)


def _begin(
    link: ChannelLink,
    request_id: int,
    stream: Stream,
    stream_log: StreamLog,
    wanted: WantedEvents,
    name: bytes | None = None,
) -> None:
    """Answer, and deliver from now on; `name` is that of a durable one.

    Raises RequestRefusal or BrokerError.
    """
    settings = link.host.settings
    link.require(Right.READ, stream.name)  # the right may have been taken away meanwhile
    link.watch(stream)
    kept = None
    if name is not None:
        kept = durable.Durable(link.streams.logs, stream, name, wanted.position)
    wanted = dataclasses.replace(wanted, durable=kept, bad_sub_batches=settings.bad_sub_batches)
    number = link.session.new_subscription()
    subscription = ChannelSubscription(
        number,
        stream,
        stream_log,
        wanted,
        Window(settings.window_bytes, settings.window_resume_bytes),
        link.sources,
        lambda: link.end(f"channel {stream.name!r} cannot be read"),
    )
    if wanted.durable is not None:
        link.host.durables.take(wanted.durable.key, subscription.close)
    link.subscriptions[number] = subscription
    link.ports.send(writing.answer(SUBRESPONSE, rID=request_id, ok=True, subID=number))
    subscription.wake()


def _check(request: Request) -> None:
    """Refuse a start that cannot be. Raises RequestRefusal."""
    start = request.values["startPos"]
    if start is not None and start < _NONE_GIVEN:
        raise RequestRefusal(Code.BAD_REQUEST, f"SUBSCRIBE: startPos {start} is below 0")


def _durable_name(text: str | None) -> bytes | None:
    """Return the name of a durable subscription; None for any other. Raises RequestRefusal."""
    if text is None:
        return None
    name = text.encode()
    if not 0 < len(name) <= durable.NAME_BYTES_MAX:
        most = durable.NAME_BYTES_MAX
        reason = f"SUBSCRIBE: durableID has {len(name)} bytes, and 1 to {most} are taken"
        raise RequestRefusal(Code.BAD_REQUEST, reason)
    return name


async def _taken_over(link: ChannelLink, stream: Stream, name: bytes) -> int | None:
    """Take a durable subscription from the connection that has it; return where it goes on.

    None if there is none of the name. Raises RequestRefusal: it is another user's.
    """
    tracking, key = link.streams.logs.tracking, durable.key_of(stream, name)
    known = await tracking.reader_of(*key)
    if known is None:
        link.host.durables.take_over(key)
        return None
    owner = known.owner.decode()
    if owner not in {"", link.user} and link.host.access.user(owner) is not None:
        reason = f"the durable subscription {name.decode()!r} belongs to another user"
        raise RequestRefusal(Code.NOT_AUTHORISED, reason)
    tracking.use_reader(*key)
    try:
        link.host.durables.take_over(key)  # which moves the place
        known = await tracking.reader_of(*key)
        if known is not None and owner != link.user:
            await durable.begin(link.streams.logs, stream, name, known.place, link.user)
    finally:
        tracking.leave_reader(*key)
    return None if known is None else known.place


async def _matcher(link: ChannelLink, document: bytes | None) -> Matcher | None:
    """Return the matcher of events; None for all events. Raises RequestRefusal."""
    if document is None or document == writing.document():
        return None
    try:
        return await read_matcher(document, link.sources.reading.turns)
    except BadMatcher as error:
        raise RequestRefusal(Code.BAD_REQUEST, f"SUBSCRIBE: {error}") from error


async def _start(stream_log: StreamLog, wanted: int | None, since_ms: int) -> int:
    """Return a position before which no event is wanted. Raises RequestRefusal."""
    await when_all_committed(stream_log)  # what came before this request is not new
    end = stream_log.committed_next_offset
    if wanted is not None and wanted > end:
        raise RequestRefusal(
            Code.PAST_END, f"startPos {wanted} lies behind the channel's end, {end}"
        )
    has_position = wanted is not None and wanted != _NONE_GIVEN
    if not since_ms:
        return wanted if wanted is not None and has_position else end
    start = (await locate(stream_log, StartKind.TIMESTAMP, since_ms)).offset
    return max(start, wanted) if wanted is not None and has_position else start


async def acknowledge(link: ChannelLink, request: Request) -> None:
    """Take an acknowledgement; one of a subscription that is gone may have crossed its end."""
    subscription = link.subscriptions.get(request.values["subID"])
    if subscription is not None:
        subscription.acknowledge(request.values["pos"])


async def end_subscription(link: ChannelLink, request: Request) -> None:
    """Deliver nothing more to a subscription; UNSUBSCRIBE forgets the place of a durable one."""
    number = request.values["subID"]
    subscription = link.subscriptions.get(number)
    if subscription is None:
        raise RequestRefusal(Code.NO_SUBSCRIPTION, f"no subscription {number}")
    is_taken_over = subscription.is_closed  # the place is another connection's by now
    link.drop(subscription)
    link.unwatch_if_unused(subscription.stream)
    forgets = request.type == "UNSUBSCRIBE" and not is_taken_over
    if subscription.durable is not None and forgets:
        durables, key = link.host.durables, subscription.durable.key
        async with durables.changing(key):
            if key not in durables:  # another connection may have taken it meanwhile
                name = subscription.durable.name
                await durable.forget(link.streams.logs, subscription.stream, name)
    link.ports.send(writing.stored(request.values["rID"]))
