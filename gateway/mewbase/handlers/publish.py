"""CREATECHANNEL and PUB: a client makes a channel, and puts an event into one.

Source: a client of 2017 for the first; the page has no such frame.
"""

from functools import partial

from gateway.broker.access.model import Right
from gateway.broker.errors import PreconditionFailed, StreamExists
from gateway.broker.naming import check_given_name, clean_name
from gateway.log.records.writing import NoRoom, RecordTooLarge
from gateway.mewbase.handlers import transact
from gateway.mewbase.link import ChannelLink
from gateway.mewbase.publishing import ChannelPublisher
from gateway.mewbase.refusals import RequestRefusal
from gateway.mewbase.wire import writing
from gateway.mewbase.wire.errors import Code
from gateway.mewbase.wire.frames import RESPONSE
from gateway.mewbase.wire.reading import Request
from gateway.pending import Pending
from hutch.formats.chunk import OFFSETS_END
from store.errors import StoreError


async def create_channel(link: ChannelLink, request: Request) -> None:
    """Make a stream, if the user may configure it; one that there is stays as it is.

    Raises RequestRefusal or BrokerError.
    """
    existed = False
    try:
        name = clean_name(request.values["name"])
        check_given_name(name)
        may = partial(link.require, Right.CONFIGURE, name)
        may()
        await link.streams.create(name, {}, check=may)
    except StreamExists:
        existed = True
    except PreconditionFailed as error:
        raise RequestRefusal(Code.BAD_REQUEST, f"CREATECHANNEL: {error}") from error
    request_id = request.values["rID"]
    link.ports.send(writing.answer(RESPONSE, rID=request_id, ok=True, exists=existed))


def take(link: ChannelLink, request: Request) -> bool:
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


async def publish(link: ChannelLink, request: Request) -> None:
    """Put an event; it is answered when it is stored. Raises RequestRefusal or BrokerError.

    One of a transaction is answered when it is taken.
    """
    values = request.values
    channel, event = values["channel"], values["event"]
    most = link.event_bytes_max
    if len(event) > most:
        reason = (
            f"the event has {len(event)} bytes, and {most} are the most (mewbase.event_bytes_max)"
        )
        raise RequestRefusal(Code.NOT_STORED, reason)
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
            raise RequestRefusal(Code.NOT_STORED, str(error)) from error
        else:
            return


async def _publisher(link: ChannelLink, channel: str) -> ChannelPublisher:
    """Return a publisher to a channel. Raises RequestRefusal or BrokerError."""
    link.require(Right.WRITE, channel)
    stream = link.streams.find(channel)
    stream_log = await link.streams.logs.of(stream)
    if stream_log.read_only is not None:
        raise RequestRefusal(Code.NOT_STORED, str(stream_log.read_only))
    if stream_log.committed_next_offset >= OFFSETS_END:
        raise RequestRefusal(Code.NOT_STORED, f"channel {channel} has no positions left")
    link.require(Right.WRITE, channel)  # from here on `Link.rights_changed` looks
    link.watch(stream)
    publisher = ChannelPublisher(stream, stream_log, link.ports, link.errors_as_text)
    link.add_publisher(publisher)
    return publisher
