"""Plans of reads as Spark asks for them, without Spark."""

from __future__ import annotations

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.pool import Name
from pyspark_hutch.offsets.position import Position
from pyspark_hutch.options.read_rules import read_settings
from pyspark_hutch.planning.batch import plan_batch
from pyspark_hutch.planning.splits import Split
from pyspark_hutch.planning.streaming_plan import StreamPlanner
from pyspark_hutch.planning.tails import LOOK_S
from tests.integration.server import HutchServer
from tests.spark.proxy import Proxy


class Clock:
    """A clock that a test moves on."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Query:
    """A streaming query as Spark runs it, without Spark.

    Attributes:
        end: Where it is.
    """

    def __init__(self, server: HutchServer | Proxy, **options: str) -> None:
        self.end: Position = {}
        self._options = options | {"endpoints": f"{server.host}:{server.port}"}
        self.restart()

    def restart(self, **options: str) -> None:
        self._options |= options
        settings = read_settings(self._options, is_streaming=True)
        self._clock = Clock()
        self._planner = StreamPlanner(
            Cluster(settings.connection, Name("test")), settings, self._clock
        )

    def begin(self) -> None:
        """Begin as a new query does."""
        self.end = self._planner.begin()
        self._planner.advance(self.end, has_one_batch=False)

    def begin_again(self) -> list[Split]:
        """Plan the first batch anew, as Spark does where it was not committed; give its splits."""
        return self._planner.splits(self._planner.begin(), self.end)

    def batch(self, after_s: float = LOOK_S) -> list[Split]:
        """Plan the next batch; give its splits."""
        self._clock.now += after_s
        start, self.end = self.end, self._planner.advance(self.end, has_one_batch=False)
        return self._planner.splits(start, self.end)

    def offsets(self) -> dict[str, int]:
        return {stream: place.offset for stream, place in self.end.items()}


def batch(server: HutchServer | Proxy, **options: str) -> list[Split]:
    options |= {"endpoints": f"{server.host}:{server.port}"}
    settings = read_settings(options, is_streaming=False)
    return plan_batch(Cluster(settings.connection, Name("test")), settings)


def ranges(splits: list[Split]) -> list[tuple[str, int, int]]:
    return [(split.place.stream, split.low, split.high) for split in splits]
