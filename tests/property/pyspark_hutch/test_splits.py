"""Splits are the range: for any chunks and budgets every row is read once, in whole chunks.

Only a largest number of rows cuts inside of chunks, and it is kept.
"""

from collections.abc import Iterable, Mapping
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from hutch.client.login import Endpoint
from hutch.stream.offsets import OffsetSpec
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.offsets.streams import PartitionStream
from pyspark_hutch.options.connection_settings import BrokerSettings
from pyspark_hutch.options.read_settings import Splitting
from pyspark_hutch.planning.splits import StreamRange, plan
from tests.reading_rig import NAME

LEADER = Endpoint("h", 1)


class Known(Cluster):
    """Knows where the chunks of its streams begin, and asks no server."""

    def __init__(self, begins: Mapping[str, list[int]]) -> None:
        super().__init__(BrokerSettings((LEADER,)), NAME)
        self._begins = begins

    def resolve(
        self, leaders: Mapping[str, Endpoint], places: Iterable[tuple[str, OffsetSpec]]
    ) -> list[int]:
        assert leaders
        return [max(b for b in self._begins[s] if b <= place.value) for s, place in places]


@st.composite
def ranges(draw: st.DrawFn, stream: str) -> tuple[list[int], StreamRange]:
    """Beginnings of chunks, and a range of the stream."""
    first = draw(st.integers(0, 1_000))
    sizes = draw(st.lists(st.integers(1, 50), min_size=1, max_size=40))
    begins = list(accumulate(sizes, initial=first))
    end = begins.pop()
    low = draw(st.integers(first, end))
    high = draw(st.integers(low, end))
    return begins, StreamRange(PartitionStream(stream), low, high)


splittings = st.builds(
    Splitting,
    partitions_min=st.none() | st.integers(1, 200),
    records_max=st.none() | st.integers(1, 500),
)


@given(ranges("a"), ranges("b"), splittings)
def test_splits_of_any_ranges_are_the_ranges(
    one: tuple[list[int], StreamRange], other: tuple[list[int], StreamRange], splitting: Splitting
) -> None:
    drawn = {"a": one, "b": other}
    cluster = Known({stream: begins for stream, (begins, _) in drawn.items()})
    leaders = dict.fromkeys(drawn, LEADER)

    splits = plan(cluster, leaders, [wanted for _, wanted in drawn.values()], splitting)

    for stream, (begins, wanted) in drawn.items():
        own = [split for split in splits if split.place.stream == stream]
        bounds = [(split.low, split.high) for split in own]
        assert [n for low, high in bounds for n in range(low, high)] == list(
            range(wanted.low, wanted.high)
        )
        assert all(low < high for low, high in bounds)
        if splitting.records_max is None:
            assert all(low in begins for low, _ in bounds[1:])
        else:
            assert all(high - low <= splitting.records_max for low, high in bounds)
