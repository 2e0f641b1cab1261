"""A cursor with a filter: what it gives, what it reads for that, and that it lets others in."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.log.derived.filters import SubscriptionFilter
from gateway.log.log import StreamLog
from store.api import Done, Reader
from tests.chunks import SubBatch
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import LogRig, Tap

LARGE = bytes(200_000)
BATCH = SubBatch.of([b"a", b"b"])


def wants(*values: bytes, unfiltered: bool = False) -> SubscriptionFilter:
    return SubscriptionFilter(values, unfiltered=unfiltered)


class CountingReader:
    """A reader that counts the bytes it is asked for; `is_cold`: nothing is in memory at first."""

    def __init__(self, reader: Reader, *, is_cold: bool = False) -> None:
        self._reader = reader
        self._warm: list[tuple[int, int]] | None = [] if is_cold else None
        self.bytes_read = 0
        self.check_count = 0

    @property
    def start(self) -> int:
        return self._reader.start

    @property
    def length(self) -> int:
        return self._reader.length

    def _is_warm(self, position: int, size: int) -> bool:
        return self._warm is None or any(
            start <= position and position + size <= end for start, end in self._warm
        )

    def read_cached(self, position: int, size: int) -> bytes | None:
        if not self._is_warm(position, size):
            return None
        self.bytes_read += size
        return self._reader.read_cached(position, size)

    def region(self, position: int, size: int) -> Any:  # noqa: ANN401 - as the reader's
        return self._reader.region(position, size)

    def is_cached(self, position: int, size: int) -> bool:
        return self._is_warm(position, size)

    def check(
        self,
        position: int,
        size: int,
        look: Callable[[memoryview], Any],
        *,
        done: Done[Any],
        fills: bool = False,
    ) -> None:
        self.check_count += 1
        self.bytes_read += size
        if self._warm is not None:
            self._warm.append((position, position + size))
        self._reader.check(position, size, look, done=done, fills=fills)


def count_reading(log: StreamLog, *, is_cold: bool = False) -> CountingReader:
    counting = CountingReader(log.reader, is_cold=is_cold)
    log.reader = counting
    return counting


def bodies(tap: Tap) -> list[bytes]:
    return [record for chunk in tap.all_now() for record in chunk.records()]


def write(rig: LogRig, log: StreamLog, values: Iterable[Iterable[bytes]], padding: int = 0) -> None:
    """One chunk for each set of values, the body tells its number."""
    for number, of_chunk in enumerate(values):
        rig.commit(log, b"%d" % number + bytes(padding), values=of_chunk)


@pytest.mark.parametrize("padding", [0, 100, 5_000, 40_000, 70_000])
def test_only_chunks_that_the_filter_lets_through_are_given(rig: LogRig, padding: int) -> None:
    log = rig.create()
    write(rig, log, [{b"fig"}, {b"pear"}, {b""}, set(), {b"fig", b"pear"}, {b"", b"plum"}], padding)

    def numbers(wanted: SubscriptionFilter) -> list[int]:
        return [int(body.rstrip(b"\0")) for body in bodies(rig.cursor(log, wanted=wanted))]

    assert numbers(wants(b"fig")) == [0, 4]
    assert numbers(wants(b"pear", b"plum")) == [1, 4, 5]
    assert numbers(wants(b"fig", unfiltered=True)) == [0, 2, 3, 4, 5]
    assert numbers(wants(unfiltered=True)) == [2, 3, 5]
    assert numbers(wants(b"apple")) == []


def test_each_part_of_a_joined_chunk_was_let_through_on_its_own(rig: LogRig) -> None:
    log = rig.create()
    write(rig, log, [{b"b" if 10 <= n < 20 or n >= 25 else b"a"} for n in range(30)])

    chunks = rig.cursor(log, wanted=wants(b"b")).all_now()

    assert [(chunk.chunk_id, chunk.record_count) for chunk in chunks] == [(10, 10), (25, 5)]


@pytest.mark.parametrize("takes_regions", [True, False])
def test_large_chunks_that_are_skipped_are_hardly_read(rig: LogRig, *, takes_regions: bool) -> None:
    log = rig.create()
    for number in range(20):
        rig.commit(log, LARGE, values={b"%d" % (number % 10)})
    counting = count_reading(log)
    tap = rig.cursor(log, wanted=wants(b"3"), takes_regions=takes_regions)

    assert [chunk.chunk_id for chunk in tap.all_now()] == [3, 13]

    delivered = 0 if takes_regions else 2 * len(LARGE)
    assert counting.bytes_read - delivered < 20 * 200 + 2 * 5000


def test_cold_and_unchecked_chunks_that_are_skipped_are_hardly_read_either(rig: LogRig) -> None:
    log = rig.create()
    for number in range(20):
        rig.commit(log, LARGE * 2, values={b"%d" % (number % 10)})
    log = rig.open()
    counting = count_reading(log, is_cold=True)

    tap = rig.cursor(log, wanted=wants(b"3"), takes_regions=True)
    assert [chunk.chunk_id for chunk in tap.all_now()] == [3, 13]

    # Checked and sent: what is delivered, and the heads and filter values of the others.
    assert counting.bytes_read < 2 * 2 * len(LARGE) + 20 * 40_000
    assert counting.bytes_read < 20 * 2 * len(LARGE) / 4


def test_small_chunks_not_in_memory_are_read_many_at_once(rig: LogRig) -> None:
    log = rig.create()
    write(rig, log, [{b"pear" if n == 70 else b"fig"} for n in range(100)], padding=1000)
    counting = count_reading(log, is_cold=True)

    assert len(bodies(rig.cursor(log, wanted=wants(b"pear")))) == 1

    assert counting.check_count <= 2


def test_who_finds_nothing_stops_to_let_others_in_and_goes_on_when_asked(rig: LogRig) -> None:
    log = rig.create()
    write(rig, log, [{b"fig"}] * 150, padding=33_000)
    assert log.saved.filter_pages is not None
    log.saved.filter_pages.load()
    rig.loop.run_until(lambda: log.saved.filter_pages.is_loaded)  # type: ignore[union-attr]  # asserted above
    tap = rig.cursor(log, wanted=wants(b"pear"))

    assert tap.next() is None
    has_more = tap.cursor.is_sifting
    assert has_more
    assert 0 < tap.cursor.position < log.committed_length / 4
    assert tap.all_now() == []
    assert tap.sift_count > 3
    assert tap.next() is None
    has_more = tap.cursor.is_sifting
    assert not has_more
    assert tap.wake_count == 0

    rig.commit(log, b"found", values={b"pear"})
    assert tap.wake_count == 1
    assert bodies(tap) == [b"found"]


def test_a_filter_at_the_tail_gives_what_comes_later(rig: LogRig) -> None:
    log = rig.create()
    tap = rig.cursor(log, wanted=wants(b"pear"))

    for number in range(20):
        assert tap.next() is None
        rig.commit(log, b"%d" % number, values={b"pear" if number % 3 == 0 else b"fig"})
        assert bodies(tap) == ([b"%d" % number] if number % 3 == 0 else [])


def test_after_a_restart_the_filter_works_as_before(make_rig: MakeRig) -> None:
    rig = make_rig()
    log = rig.create()
    write(rig, log, [{b"fig"}, {b"pear"}, set()] * 5, padding=50_000)
    rig.save(log)
    log = rig.open()

    chunks = rig.cursor(log, wanted=wants(b"pear")).all_now()

    assert [chunk.chunk_id for chunk in chunks] == [1, 4, 7, 10, 13]


def test_a_chunk_of_sub_batches_has_no_filter_values(rig: LogRig) -> None:
    log = rig.create()
    rig.commit(log, BATCH)
    rig.commit(log, b"x", values={b"fig"})

    (chunk,) = rig.cursor(log, wanted=wants(b"pear", unfiltered=True)).all_now()

    assert chunk.record_count == 2


@given(
    sizes=st.lists(
        st.tuples(
            st.sampled_from([0, 10, 3000, 40_000, 70_000]),
            st.sets(st.sampled_from([b"", b"a", b"b", b"c"])),
        ),
        max_size=25,
    ),
    wanted=st.sets(st.sampled_from([b"a", b"b", b"c", b"d"])),
    unfiltered=st.booleans(),
    reopens=st.booleans(),
    saves=st.booleans(),
)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # each example makes its own rig
)
def test_a_filter_gives_exactly_the_chunks_that_hold_what_is_wanted(
    make_rig: MakeRig,
    sizes: list[tuple[int, set[bytes]]],
    wanted: set[bytes],
    *,
    unfiltered: bool,
    reopens: bool,
    saves: bool,
) -> None:
    rig = make_rig()
    log = rig.create()
    expected: list[bytes] = []
    for number, (padding, values) in enumerate(sizes):
        body = b"%d" % number + bytes(padding)
        rig.commit(log, body, values=values)
        has_unfiltered = not values or b"" in values
        if values & wanted or (unfiltered and has_unfiltered):
            expected.append(body)
        if saves and number == len(sizes) // 2:
            rig.save(log)
    if reopens:
        log = rig.open()

    found = bodies(rig.cursor(log, wanted=SubscriptionFilter(wanted, unfiltered=unfiltered)))
    rig.close()

    assert found == expected
