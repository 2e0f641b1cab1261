"""A virtual host: a world of its own of names, for the connections that opened it."""

from dataclasses import dataclass

from gateway.broker.streams import Streams


@dataclass(slots=True, eq=False)
class VirtualHost:
    """What the connections of one virtual host share."""

    name: str
    streams: Streams
