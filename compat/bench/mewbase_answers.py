"""A `hutch` that answers mewbase's events and stores none, to see what storing costs."""

import sys

from gateway.cli import main
from gateway.mewbase.handlers import publish
from gateway.mewbase.link import ChannelLink
from gateway.mewbase.wire import writing
from gateway.mewbase.wire.reading import Request


def take(link: ChannelLink, request: Request) -> bool:
    """Answer an event."""
    link.ports.send(writing.stored(request.values["rID"]))
    return True


if __name__ == "__main__":
    publish.take = take
    sys.exit(main())
