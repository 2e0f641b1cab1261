"""Descriptions and plans of many streams, by the commands of pipelines: one request for all."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from hutch.client.connection import Connection
from hutch.client.errors import require_ok
from hutch.client.login import Endpoint
from hutch.stream import pipeline
from hutch.stream import pipeline as p
from hutch.stream.codes import ResponseCode
from pyspark_hutch.client.cluster import Bounds, Cluster

LOG: Final = logging.getLogger(__name__)

_PARCEL_BYTES: Final = 1_000_000
"""Most bytes of names or ranges in a request; a server takes frames of 1 MiB unless it says so."""
_NAME_BYTES: Final = 2
_RANGE_BYTES: Final = 2 + 3 * 8 + 4

T = TypeVar("T")


def described(connection: Connection, names: Sequence[str]) -> list[p.StreamDescription]:
    """Return a server's descriptions of streams, in the order of their names; each has a code."""
    found: list[p.StreamDescription] = []
    for parcel in _parcels(names, lambda name: _NAME_BYTES + len(name.encode())):
        found += _describe(connection, p.DescribeStreams(tuple(parcel), None))
    return found


def described_by(connection: Connection, pattern: str) -> Sequence[p.StreamDescription]:
    """Return a server's descriptions of the streams that a pattern matches; raises Refused."""
    return _describe(connection, p.DescribeStreams((), pattern))


def _describe(connection: Connection, request: p.DescribeStreams) -> Sequence[p.StreamDescription]:
    reply = connection.ask(p.StreamsDescribed, "describe_streams", request)
    require_ok("the description of streams", reply.code, reply.reason)
    return reply.streams


def bounds_of(description: p.StreamDescription) -> Bounds:
    """Return the range in a stream's description; raises Refused or ServerGone if it has none."""
    require_ok(f"stream {description.name!r}", description.code)
    return Bounds(
        description.first_offset,
        description.next_offset,
        description.generation,
        description.size_bytes,
    )


class Planned(NamedTuple):
    """Plans of ranges, in their order.

    Attributes:
        streams: Borders for each, or a code why there are none.
        run: The run of the server, with which the plans end.
    """

    streams: Sequence[p.StreamPlan]
    run: str


def planned(cluster: Cluster, ranges: Sequence[p.RangeToPlan]) -> Planned | None:
    """Plan ranges of streams, which keeps them from retention for a while.

    Args:
        cluster: The server, which must have the command.
        ranges: Each with the generation of its stream.

    Returns:
        The plans; None if the server refuses all of them, as at a limit of the user's plans.
        The log has its reason then.
    """

    def ask() -> Planned | None:
        found: list[p.StreamPlan] = []
        with cluster.connection() as connection:
            for parcel in _parcels(ranges, lambda one: _RANGE_BYTES + len(one.name.encode())):
                request = p.PlanStreams(tuple(parcel))
                reply = connection.ask(p.StreamsPlanned, "plan_streams", request)
                if reply.code != ResponseCode.OK:
                    LOG.warning(
                        "%s refuses a plan, so nothing keeps what it is about from retention: %s",
                        connection.endpoint,
                        reply.reason,
                    )
                    return None
                found += reply.streams
            return Planned(found, run_of(connection))

    return cluster.retried("a plan", ask)


def run_of(connection: Connection) -> str:
    """Return a text that another run of the server does not have."""
    return connection.peer_properties.get(pipeline.STARTED, "")


def place_of(connection: Connection, *, is_followed: bool) -> Endpoint:
    """Return where all streams of a server without others beside it are to be read.

    Args:
        connection: To the server.
        is_followed: Whether to go where it says that it can be reached, rather than stay.
    """
    said = connection.open_properties
    host, port = said.get("advertised_host"), said.get("advertised_port", "")
    if is_followed and host and port.isdigit():
        return Endpoint(host, int(port))
    return connection.endpoint


def _parcels(items: Sequence[T], bytes_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield the items in lists that fit into a request each."""
    parcel: list[T] = []
    size = 0
    for item in items:
        needed = bytes_of(item)
        if parcel and (size + needed > _PARCEL_BYTES or len(parcel) == p.STREAMS_MAX):
            yield parcel
            parcel, size = [], 0
        parcel.append(item)
        size += needed
    if parcel:
        yield parcel
