"""A client of the stream protocol: one thread, bounded waits, no event loop.

    from hutch.client import FIRST, Client

    with Client.connect("rabbitmq-stream://guest:guest@localhost:5552/%2f") as client:
        client.create_stream("orders")
        client.publish("orders", [b"one", b"two"])
        orders = client.subscribe("orders", FIRST)
        print(next(orders), next(orders))  # (0, b'one') (1, b'two')
        client.store_offset("clerk", "orders", 1)
        print(client.query_offset("clerk", "orders"))  # 1
        client.delete_stream("orders")

`Client` is for programs; docs/client.md shows all of it. Beneath it, `Connection` has each command
with the ids that its user chooses, and `Channel` the frames of a socket, right or wrong ones. All
errors are ClientErrors.

Programs import what `__all__` lists, which stays; the modules may change. It needs nothing but
Python's own library: Spark's workers have the client, too, and little else.
"""

from hutch.client.client import Client
from hutch.client.connection import Connection
from hutch.client.errors import (
    BadAnswer,
    ClientError,
    ClosedByServer,
    ConnectionLost,
    Refused,
    ServerBusy,
    ServerGone,
    ServerSilent,
)
from hutch.client.login import Endpoint, Login
from hutch.client.publisher import Publisher
from hutch.client.subscription import Subscription
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST, LAST, NEXT, OffsetSpec, at_offset, at_timestamp

__all__ = [
    "FIRST",
    "LAST",
    "NEXT",
    "BadAnswer",
    "Client",
    "ClientError",
    "ClosedByServer",
    "Connection",
    "ConnectionLost",
    "Endpoint",
    "Login",
    "OffsetSpec",
    "Publisher",
    "Refused",
    "ResponseCode",
    "ServerBusy",
    "ServerGone",
    "ServerSilent",
    "Subscription",
    "at_offset",
    "at_timestamp",
]
