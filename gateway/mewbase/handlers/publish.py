"""PUB: an event into a channel."""

from gateway.broker.access.model import Right
from gateway.log.records.writing import NoRoom, RecordTooLarge
from gateway.mewbase.handlers import transact
from gateway.mewbase.link import Link
from gateway.mewbase.publishing import Publisher
from gateway.mewbase.refusals import Refusal
from gateway.mewbase.wire.errors import Code
from gateway.mewbase.wire.reading import Request
from gateway.pending import Pending
from hutch.formats.chunk import OFFSETS_END
from store.errors import StoreError


def take(link: Link, request: Request) -> bool:
    """Put an event if that can be done at once; False if `publish` has to look at it."""
    values = request.values
    publisher, event = link.publishers.get(values["channel"]), values["event"]
    if publisher is None or publisher.has_failed or len(event) > link.event_bytes_max:
        return False
    if values["sessID"] in link.transactions:
        return False
    if not link.host.service.takes_publishers:
        return False
    try:
        publisher.put(event, values["rID"])
    except (NoRoom, RecordTooLarge, StoreError):
        return False
    return True


async def publish(link: Link, request: Request) -> None:
    """Put an event; it is answered when it is stored. Raises Refusal or BrokerError.

    One of a transaction is answered when it is taken.
    """
    values = request.values
    channel, event = values["channel"], values["event"]
    most = link.event_bytes_max
    if len(event) > most:
        reason = (
            f"the event has {len(event)} bytes, and {most} are the most (mewbase.event_bytes_max)"
        )
        raise Refusal(Code.NOT_STORED, reason)
    link.require_disk()
    if values["sessID"] in link.transactions:
        transact.add(link, request)
        return
    while not link.is_closed:
        publisher = link.publishers.get(channel)
        if publisher is None or publisher.has_failed:
            publisher = await _publisher(link, channel)
        room: Pending[None] = Pending()
        try:
            publisher.put(event, values["rID"])
        except NoRoom:
            publisher.when_room(lambda settle=room.settle: settle(None))  # type: ignore[misc]
            await room
        except (RecordTooLarge, StoreError) as error:
            raise Refusal(Code.NOT_STORED, str(error)) from error
        else:
            return


async def _publisher(link: Link, channel: str) -> Publisher:
    """Return a publisher to a channel. Raises Refusal or BrokerError."""
    link.require(Right.WRITE, channel)
    stream = link.streams.find(channel)
    stream_log = await link.streams.logs.of(stream)
    if stream_log.read_only is not None:
        raise Refusal(Code.NOT_STORED, str(stream_log.read_only))
    if stream_log.committed_next_offset >= OFFSETS_END:
        raise Refusal(Code.NOT_STORED, f"channel {channel} has no positions left")
    link.require(Right.WRITE, channel)  # from here on `Link.rights_changed` looks
    link.watch(stream)
    publisher = Publisher(stream, stream_log, link.ports, link.errors_as_text)
    link.publishers[channel] = publisher
    return publisher
