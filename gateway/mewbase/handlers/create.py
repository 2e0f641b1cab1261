"""CREATECHANNEL: a client makes a channel.

Source: a client of 2017; the page has no such frame.
"""

from functools import partial

from gateway.broker.access.model import Right
from gateway.broker.errors import PreconditionFailed, StreamExists
from gateway.broker.naming import check_given_name, clean_name
from gateway.mewbase.link import Link
from gateway.mewbase.refusals import Refusal
from gateway.mewbase.wire import writing
from gateway.mewbase.wire.errors import Code
from gateway.mewbase.wire.frames import RESPONSE
from gateway.mewbase.wire.reading import Request


async def create_channel(link: Link, request: Request) -> None:
    """Make a stream, if the user may configure it; one that there is stays as it is.

    Raises Refusal or BrokerError.
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
        raise Refusal(Code.BAD_REQUEST, f"CREATECHANNEL: {error}") from error
    request_id = request.values["rID"]
    link.ports.send(writing.answer(RESPONSE, rID=request_id, ok=True, exists=existed))
