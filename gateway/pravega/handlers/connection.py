"""Requests about the connection itself."""

from typing import Final

from gateway.pravega.desk import Desk
from hutch.pravega.messages import Hello, KeepAlive, Padding

HIGH_VERSION: Final = 17
LOW_VERSION: Final = 5


def hello(desk: Desk, request: Hello) -> None:
    """Answer with our versions, then end the connection if there is none in common.

    Replies have the same layout for every version.
    """
    desk.reply(Hello(HIGH_VERSION, LOW_VERSION))
    if request.low_version > HIGH_VERSION or request.high_version < LOW_VERSION:
        desk.close(f"the client speaks versions {request.low_version} to {request.high_version}")


def keep_alive(desk: Desk, request: KeepAlive) -> None:
    """Send it back."""
    desk.reply(request)


def padding(desk: Desk, request: Padding) -> None:
    """Ignore it."""
