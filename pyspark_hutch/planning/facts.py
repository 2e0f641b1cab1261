"""The facts that a plan rests on: the streams, their ranges, the places to cut them.

There are two sources of them. `stock.py` has the commands of the protocol, which every server
serves. `pipeline.py` has those that Hutch serves beside them.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from hutch.client.login import Endpoint
from pyspark_hutch.client.cluster import Bounds
from pyspark_hutch.offsets.streams import PartitionStream
from pyspark_hutch.options.read_settings import ReadSource, Splitting
from pyspark_hutch.planning.splits import Split, StreamRange


class StreamsFound(NamedTuple):
    """The streams of a query.

    Attributes:
        places: The streams by name.
        leaders: Where each lives.
        bounds: The range that each holds.
        missing: Names of those that a query asks for, and that do not exist.
    """

    places: Mapping[str, PartitionStream]
    leaders: Mapping[str, Endpoint]
    bounds: Mapping[str, Bounds]
    missing: Sequence[str]


class Reach(NamedTuple):
    """The rows of a stream that a batch could take: offsets from `low` to before `high`."""

    low: int
    high: int


class PlanFacts(Protocol):
    """A source of facts. All of its methods ask a server, about all streams at once."""

    def find(self, source: ReadSource) -> StreamsFound:
        """Find the streams of a query.

        Raises:
            WrongOption: The option that names them does not fit the streams there.
            ClientError: One cannot be used, or no server answers.
        """

    def look(self, leaders: Mapping[str, Endpoint]) -> dict[str, Bounds]:
        """Return the ranges of streams that were found before.

        Raises:
            Refused: One has gone.
            ClientError: One cannot be used, or no server answers.
        """

    def chunks_at(self, found: StreamsFound, offsets: Mapping[str, int]) -> dict[str, int]:
        """Return the first offset of the chunk that has an offset, for each stream."""

    def within(
        self,
        found: StreamsFound,
        reaches: Mapping[str, Reach],
        bytes_max: int,
        passed: Mapping[str, int],
    ) -> dict[str, int]:
        """Return how many rows of each stream fit into a number of bytes, in proportion.

        Args:
            found: The streams.
            reaches: The rows of which some are wanted; none is empty.
            bytes_max: Bytes of all streams, at least 1.
            passed: As for `share`.

        Returns:
            Rows of each stream, at least 1 in all.
        """

    def split(
        self, found: StreamsFound, ranges: Sequence[StreamRange], splitting: Splitting
    ) -> list[Split]:
        """Cut ranges into splits, one for each task; empty ranges have none.

        Raises:
            WrongOption: There would be far too many splits.
            ClientError: No server answers.
        """
