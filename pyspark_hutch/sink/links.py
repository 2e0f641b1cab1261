"""The connections of one task: one for each server and each 256 publishers there."""

import select
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from hutch.client.connection import Connection
from hutch.client.errors import ClientError
from hutch.client.login import Endpoint
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.sink.outlet import Outlet

_TURN_S: Final = 0.1
"""Seconds to watch several connections before each is asked, since TLS may hold bytes back."""

_ASK_S: Final = 0.001


class _Lane(NamedTuple):
    endpoint: Endpoint
    slot: int


@dataclass(slots=True, eq=False)
class ServerLink:
    """A connection and the outlets that publish on it.

    Attributes:
        connection: Lent by the pool.
        stack: Gives it back.
        outlets: By publisher id.
        frames_waiting: Sent and not confirmed.
    """

    connection: Connection
    stack: ExitStack
    outlets: dict[int, Outlet] = field(default_factory=dict)
    frames_waiting: int = 0

    def forget_publishers(self) -> None:
        """End the publishers, so that the next task may use the connection.

        Their rows are confirmed by now, so a server that is gone is no failure.
        """
        wanted: list[tuple[str, m.Message]] = [
            ("delete_publisher", m.DeletePublisher(publisher_id)) for publisher_id in self.outlets
        ]
        try:
            answers = list(self.connection.requests(wanted))
        except ClientError:
            answers = []
        if any(answer != m.Status(ResponseCode.OK) for answer in answers) or not answers:
            self.connection.disconnect()

    def is_serving(self, stream: str) -> bool:
        """Return whether one of the outlets publishes to a stream."""
        return any(outlet.stream == stream for outlet in self.outlets.values())


class Links:
    """All connections of a task."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._links: dict[_Lane, ServerLink] = {}

    def link_to(self, endpoint: Endpoint, outlet: Outlet) -> ServerLink:
        """Return the connection that an outlet is to use; makes it if there is none.

        Raises:
            ClientError: The server cannot be reached, or refuses.
        """
        lane = _Lane(endpoint, outlet.slot)
        link = self._links.get(lane)
        if link is None:
            stack = ExitStack()
            link = ServerLink(stack.enter_context(self._cluster.connection(endpoint)), stack)
            self._links[lane] = link
        return link

    def waiting(self) -> list[ServerLink]:
        """Return those on which confirms are missing."""
        return [link for link in self._links.values() if link.frames_waiting]

    def give_back(self) -> None:
        """End all publishers and return the connections, for the next task."""
        for link in self._links.values():
            link.forget_publishers()
        self._close()

    def drop(self) -> None:
        """End the connections; their servers forget the publishers."""
        for link in self._links.values():
            link.connection.disconnect()
        self._close()

    def _close(self) -> None:
        links, self._links = self._links, {}
        for link in links.values():
            link.stack.close()


def heard_from(links: Sequence[ServerLink], deadline: float) -> list[ServerLink]:
    """Wait until a server may have said something; return whose, which may be all."""
    if len(links) == 1:
        return list(links)
    poll = select.poll()
    by_number = {link.connection.fileno(): link for link in links}
    for number in by_number:
        poll.register(number, select.POLLIN)
    pause_s = max(0.0, min(_TURN_S, deadline - time.monotonic()))
    found = [by_number[number] for number, _ in poll.poll(pause_s * 1000)]
    return found or list(links)


def patience_with(links: Sequence[ServerLink], deadline: float) -> float:
    """Return until when each of these is awaited: one alone to the end, several a moment each."""
    return deadline if len(links) == 1 else time.monotonic() + _ASK_S
