"""The streams that a query reads: those named, and the partitions of super streams."""

import logging
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Final

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.read_settings import ReadSource

LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class PartitionStream:
    """One stream.

    Attributes:
        stream: Its name.
        super_stream: The super stream it belongs to; None for a plain stream.
        partition: Its place in the super stream, from 0; 0 for a plain stream.
    """

    stream: str
    super_stream: str | None = None
    partition: int = 0


def streams_of(cluster: Cluster, source: ReadSource) -> tuple[PartitionStream, ...]:
    """Find the streams of a query, each once; asks the server for those of super streams.

    Raises:
        WrongOption: Two super streams share a partition, or `assign` names one that is not there.
        ClientError: A super stream does not exist, or no server answers.
    """
    if source.streams:
        return tuple(map(PartitionStream, source.streams))
    assigned: dict[str, tuple[int, ...] | None] = dict.fromkeys(source.super_streams)
    assigned.update(source.assigned)
    found: dict[str, PartitionStream] = {}
    for super_stream, indexes in assigned.items():
        for place in _partitions(cluster, super_stream, indexes):
            if place.stream in found:
                other = found[place.stream].super_stream
                raise WrongOption(
                    f"option {source.option}: stream {place.stream!r} is a partition of both "
                    f"{other!r} and {super_stream!r}"
                )
            found[place.stream] = place
    return tuple(found.values())


def _partitions(
    cluster: Cluster, super_stream: str, indexes: tuple[int, ...] | None
) -> list[PartitionStream]:
    streams = cluster.partitions(super_stream)
    for index in indexes or ():
        if index >= len(streams):
            raise WrongOption(
                f"option assign: super stream {super_stream!r} has {len(streams)} partitions, "
                f"no partition {index}"
            )
    for stream, count in Counter(streams).items():
        if count > 1:
            _warn_of_twins(super_stream, stream)
    wanted: dict[str, int] = {}
    for index, stream in enumerate(streams):
        if indexes is None or index in indexes:
            wanted.setdefault(stream, index)
    return [PartitionStream(stream, super_stream, index) for stream, index in wanted.items()]


@cache  # partitions are listed every few seconds
def _warn_of_twins(super_stream: str, stream: str) -> None:
    LOG.warning(
        "partition %r is bound to super stream %r more than once, and is read once; the server's "
        "list of bindings names them",
        stream,
        super_stream,
    )
