"""The handler of each frame that a client may send."""

from collections.abc import Callable, Coroutine
from typing import Any, Final

from gateway.mewbase.handlers import query, transact
from gateway.mewbase.handlers.connect import connect
from gateway.mewbase.handlers.publish import create_channel, publish
from gateway.mewbase.handlers.subscribe import acknowledge, end_subscription, subscribe
from gateway.mewbase.link import ChannelLink
from gateway.mewbase.wire.reading import Request
from gateway.pending import Pending

Handler = Callable[[ChannelLink, Request], Coroutine[Pending[Any], None, None]]


async def ignore(_link: ChannelLink, _request: Request) -> None:
    """Do nothing: the frame is a sign of life."""


HANDLERS: Final[dict[str, Handler]] = {
    "CONNECT": connect,
    "PUB": publish,
    "STARTTX": transact.begin,
    "COMMITTX": transact.commit,
    "ABORTTX": transact.abort,
    "SUBSCRIBE": subscribe,
    "UNSUBSCRIBE": end_subscription,
    "SUBCLOSE": end_subscription,
    "ACKEV": acknowledge,
    "QUERY": query.query,
    "QUERYACK": query.acknowledge,
    "FINDBYID": query.find,
    "CREATECHANNEL": create_channel,
    "PING": ignore,
}
