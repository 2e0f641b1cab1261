"""Readers that have stopped reading must not keep the space of what is deleted.

A chunk on its way out of a file keeps the file, also a deleted one, and with a client that does not
read that has no end.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from gateway.server.connections.connection import Connection

log = logging.getLogger(__name__)

_LOOKED_AT_IN_A_TURN: Final = 500


async def let_go_of_deleted(
    connections: Callable[[], Iterable[Connection]], timeout_s: float
) -> None:
    """Cut off, for ever, the clients that keep deleted files by not reading.

    Args:
        connections: Gives those that are alive.
        timeout_s: A client that takes not one byte for so long, and at most twice that, is cut off.
    """
    while True:
        await asyncio.sleep(timeout_s)
        for number, connection in enumerate(list(connections()), start=1):
            if connection.edge.is_stuck_on_deleted():
                log.warning(
                    "client does not read a deleted chunk, cut off peer=%s", connection.peer
                )
                connection.abort()
            if number % _LOOKED_AT_IN_A_TURN == 0:
                await asyncio.sleep(0)
