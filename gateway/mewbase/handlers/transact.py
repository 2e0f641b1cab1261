"""STARTTX, COMMITTX, ABORTTX: events of several channels that are stored together.

A transaction belongs to a session of one connection; a session is a number that the client picks.
Its events are kept in memory until its commit, which stores all of them or none.
"""

from gateway.broker.access.model import Right
from gateway.mewbase.events import record_of
from gateway.mewbase.link import ChannelLink
from gateway.mewbase.refusals import RequestRefusal
from gateway.mewbase.wire import writing
from gateway.mewbase.wire.errors import Code
from gateway.mewbase.wire.reading import Request


async def begin(link: ChannelLink, request: Request) -> None:
    """Begin a transaction."""
    link.transactions.begin(_session(request))
    link.ports.send(writing.stored(request.values["rID"]))


def add(link: ChannelLink, request: Request) -> None:
    """Keep an event for its commit; the answer means that it is taken, not that it is stored.

    Raises RequestRefusal or BrokerError. The transaction stays as it is, but for one that got too
    large.
    """
    values = request.values
    channel = values["channel"]
    link.require(Right.WRITE, channel)
    stream = link.streams.find(channel)
    link.transactions.add(values["sessID"], stream, record_of(values["event"]))
    link.ports.send(writing.stored(values["rID"]))


async def commit(link: ChannelLink, request: Request) -> None:
    """Store the events of a transaction, all or none, and end it.

    Raises RequestRefusal or BrokerError: none is stored.
    """
    session = _session(request)
    if session in link.transactions:
        link.require_disk()
    with link.transactions.ending(session) as batch:
        await link.virtual_host.commits.publish(
            link.user, batch, lambda channel: link.require(Right.WRITE, channel)
        )
    link.ports.send(writing.stored(request.values["rID"]))


async def abort(link: ChannelLink, request: Request) -> None:
    """Drop a transaction."""
    link.transactions.abort(_session(request))
    link.ports.send(writing.stored(request.values["rID"]))


def _session(request: Request) -> int:
    """Return the session of a request. Raises RequestRefusal: it is none."""
    session: int = request.values["sessID"]
    if session < 0:
        raise RequestRefusal(Code.BAD_REQUEST, f"{request.type}: sessID {session} is below 0")
    return session
