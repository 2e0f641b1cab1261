"""The handler of each frame that a client may send."""

from collections.abc import Callable, Coroutine
from typing import Any, Final

from gateway.mewbase.handlers import transact
from gateway.mewbase.handlers.connect import connect
from gateway.mewbase.handlers.publish import publish
from gateway.mewbase.handlers.subscribe import acknowledge, end_subscription, subscribe
from gateway.mewbase.link import Link
from gateway.mewbase.wire import writing
from gateway.mewbase.wire.errors import Code
from gateway.mewbase.wire.reading import Request
from gateway.pending import Pending

Handler = Callable[[Link, Request], Coroutine[Pending[Any], None, None]]


async def ignore(_link: Link, _request: Request) -> None:
    """Do nothing: the frame is a sign of life, or acknowledges a result of a query."""


async def query(link: Link, request: Request) -> None:
    """Answer that the binder does not exist: there are none."""
    number, binder = request.values["queryID"], request.values["binder"]
    reason = "QUERY: binder is missing" if binder is None else f"no such binder {binder}"
    as_text = link.errors_as_text()
    link.ports.send(writing.no_result(number, Code.NO_BINDER, reason, as_text=as_text))


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
    "QUERY": query,
    "QUERYACK": ignore,
    "PING": ignore,
}
