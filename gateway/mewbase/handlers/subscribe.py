"""SUBSCRIBE, UNSUBSCRIBE and SUBCLOSE: events of a channel out."""

from typing import Final

from gateway.broker.access.model import Right
from gateway.log.barrier import when_all_committed
from gateway.log.log import StreamLog
from gateway.log.records.reading import reader_from
from gateway.mewbase.link import Link
from gateway.mewbase.refusals import Refusal
from gateway.mewbase.subscription import Subscription
from gateway.mewbase.wire import writing
from gateway.mewbase.wire.errors import Code
from gateway.mewbase.wire.reading import Request

_NONE_GIVEN: Final = -1
_MATCHES_ALL: Final = writing.document()


async def subscribe(link: Link, request: Request) -> None:
    """Deliver a channel from a position on; the answer comes before the first event."""
    values = request.values
    channel, most = values["channel"], link.host.settings.subscriptions_max
    _check_options(request)
    if len(link.subscriptions) >= most:
        reason = f"the connection has {most} subscriptions (mewbase.subscriptions_max)"
        raise Refusal(Code.BAD_REQUEST, reason)
    link.require(Right.READ, channel)
    stream = link.streams.find(channel)
    stream_log = await link.streams.logs.of(stream)
    start = await _start(stream_log, values["startPos"])
    number = link.session.new_subscription()
    subscription = Subscription(
        number,
        stream,
        stream_log,
        link.ports,
        lambda: link.end(f"channel {channel!r} cannot be read"),
    )
    reader = await reader_from(stream_log, start, subscription.wake)
    try:
        link.require(Right.READ, channel)  # the right may have been taken away meanwhile
        link.watch(stream)
    except BaseException:
        reader.close()
        raise
    link.subscriptions[number] = subscription
    link.ports.send(writing.subscribed(values["rID"], number))
    subscription.begin(reader)


def _check_options(request: Request) -> None:
    """Refuse the fields that are not served. Raises Refusal."""
    values = request.values
    given = {
        "durableID": values["durableID"] is not None,
        "matcher": values["matcher"] not in {None, _MATCHES_ALL},
        "startTimestamp": (values["startTimestamp"] or 0) > 0,
    }
    for name, is_given in given.items():
        if is_given:
            raise Refusal(Code.BAD_REQUEST, f"SUBSCRIBE: {name} is not served")


async def _start(stream_log: StreamLog, wanted: int | None) -> int:
    """Return the position of the first event that is wanted. Raises Refusal."""
    if wanted is not None and wanted < _NONE_GIVEN:
        raise Refusal(Code.BAD_REQUEST, f"SUBSCRIBE: startPos {wanted} is below 0")
    await when_all_committed(stream_log)  # what came before this request is not new
    end = stream_log.committed_next_offset
    if wanted is None or wanted == _NONE_GIVEN:
        return end
    if wanted > end:
        raise Refusal(Code.PAST_END, f"startPos {wanted} lies behind the channel's end, {end}")
    return wanted


async def end_subscription(link: Link, request: Request) -> None:
    """Deliver nothing more to a subscription."""
    number = request.values["subID"]
    subscription = link.subscriptions.pop(number, None)
    if subscription is None:
        raise Refusal(Code.NO_SUBSCRIPTION, f"no subscription {number}")
    subscription.close()
    link.unwatch_if_unused(subscription.stream)
    link.ports.send(writing.stored(request.values["rID"]))
