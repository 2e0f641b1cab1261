"""CREATECHANNEL: a client makes a channel.

Source: a client of 2017; the page has no such frame.
"""

from functools import partial
from typing import Final

from gateway.broker.access.model import Right
from gateway.broker.errors import PreconditionFailed, StreamExists
from gateway.broker.naming import clean_name
from gateway.mewbase.link import Link
from gateway.mewbase.refusals import Refusal
from gateway.mewbase.wire import writing
from gateway.mewbase.wire.errors import Code
from gateway.mewbase.wire.reading import Request

_NAME_BYTES_MAX: Final = 255
"""Longest name of a channel that is made, as over HTTP."""


async def create_channel(link: Link, request: Request) -> None:
    """Make a stream, if the user may configure it; one that there is stays as it is.

    Raises Refusal or BrokerError.
    """
    existed = False
    name: str = request.values["name"]
    if len(name.encode()) > _NAME_BYTES_MAX:
        reason = f"CREATECHANNEL: a name has at most {_NAME_BYTES_MAX} bytes"
        raise Refusal(Code.BAD_REQUEST, reason)
    try:
        name = clean_name(name)
        may = partial(link.require, Right.CONFIGURE, name)
        may()
        await link.streams.create(name, {}, check=may)
    except StreamExists:
        existed = True
    except PreconditionFailed as error:
        raise Refusal(Code.BAD_REQUEST, f"CREATECHANNEL: {error}") from error
    link.ports.send(writing.made(request.values["rID"], existed=existed))
