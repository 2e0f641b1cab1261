import json
from collections.abc import Iterator

import pytest

from hutch.client.errors import ClientError, Refused, ServerGone
from pyspark_hutch.client.range_reader import DataLoss
from pyspark_hutch.offsets.position import Position, StreamPlace, document_of
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.places import Point, PointKind, Where
from pyspark_hutch.options.read_settings import Budgets, ReadSettings, ReadSource
from pyspark_hutch.planning.streaming_plan import StreamPlanner
from pyspark_hutch.planning.tails import LIST_S, LOOK_S
from tests.fake_server import FakeServer, chunks
from tests.reading_rig import cluster_of, settings_of
from tests.waiting import wait_until

EARLIEST = Point(PointKind.EARLIEST)
LATEST = Point(PointKind.LATEST)


class Clock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        fake.streams = {"a": chunks(*[10] * 10), "b": chunks(*[10] * 2)}
        fake.super_streams["p"] = ("a", "b")
        yield fake


@pytest.fixture
def clock() -> Clock:
    return Clock()


def planner_of(
    server: FakeServer,
    clock: Clock,
    *,
    source: ReadSource = ReadSource(streams=("a", "b")),  # noqa: B008  # frozen
    start: Point = EARLIEST,
    **more: object,
) -> StreamPlanner:
    cluster = cluster_of(server, planner_retries=0, poll_timeout_ms=60_000)
    settings = ReadSettings(
        connection=settings_of(server, planner_retries=0, poll_timeout_ms=60_000),
        source=source,
        starting=Where("startingOffsets", start),
        ending=None,
        **more,  # type: ignore[arg-type]  # as a test says
    )
    return StreamPlanner(cluster, settings, clock)


def at(**offsets: int) -> dict[str, StreamPlace]:
    return {stream: StreamPlace(offset) for stream, offset in offsets.items()}


def go_on(planner: StreamPlanner, clock: Clock, start: Position) -> Position:
    clock.now += LOOK_S
    return planner.advance(start, has_one_batch=False)


def test_a_query_begins_where_it_first_said_although_the_streams_grow(
    server: FakeServer, clock: Clock
) -> None:
    planner = planner_of(server, clock, start=LATEST)

    first = planner.begin()
    server.streams["a"] += chunks(5, first=100)

    assert first == planner.begin() == at(a=100, b=20)


def test_the_first_batch_of_a_new_query_is_empty_and_pins_its_beginning(
    server: FakeServer, clock: Clock
) -> None:
    planner = planner_of(server, clock)
    beginning = planner.begin()

    assert planner.advance(beginning, has_one_batch=False) is beginning
    assert go_on(planner, clock, beginning) == at(a=100, b=20)


def test_a_first_batch_that_was_not_committed_stays_empty_though_a_new_run_begins_later(
    server: FakeServer, clock: Clock
) -> None:
    planned = planner_of(server, clock, start=LATEST).begin()
    server.streams["a"] += chunks(5, first=100)
    again = planner_of(server, clock, start=LATEST)

    assert again.splits(again.begin(), planned) == []
    end = go_on(again, clock, planned)
    assert [(s.place.stream, s.low, s.high) for s in again.splits(planned, end)] == [
        ("a", 100, 105)
    ]


def test_a_query_that_goes_on_pins_nothing(server: FakeServer, clock: Clock) -> None:
    assert go_on(planner_of(server, clock), clock, at(a=3, b=4)) == at(a=100, b=20)


def test_nothing_new_is_the_same_position_to_the_letter(server: FakeServer, clock: Clock) -> None:
    planner = planner_of(server, clock)
    start = at(b=20, a=100)

    assert go_on(planner, clock, start) is start
    ended = go_on(planner, clock, at(b=1, a=2))
    assert json.dumps(document_of(ended)) == '{"a": {"o": 100}, "b": {"o": 20}}'


def test_an_idle_query_asks_a_few_times_a_second(server: FakeServer, clock: Clock) -> None:
    planner = planner_of(server, clock)
    start = at(a=100, b=20)
    for _ in range(100):
        clock.now += 0.01
        planner.advance(start, has_one_batch=False)

    assert server.count("stream_stats") <= 2 * 10
    assert server.reads < 40


@pytest.mark.parametrize("budget", [1, 7, 10, 25, 60, 119, 120, 500])
def test_a_batch_takes_its_budget_of_rows_to_a_tenth_while_more_wait(
    server: FakeServer, clock: Clock, budget: int
) -> None:
    planner = planner_of(server, clock, budgets=Budgets(offsets_max=budget))
    start: Position = at(a=0, b=0)
    left = 120
    while (end := go_on(planner, clock, start)) != start:
        rows = sum(end[stream].offset - start[stream].offset for stream in end)
        assert 0.9 * min(budget, left) <= rows <= budget
        if budget >= 60:
            assert all(place.offset % 10 == 0 for place in end.values()), "a border is near"
        start, left = end, left - rows

    assert start == at(a=100, b=20)


def test_rows_that_are_gone_count_in_a_budget_as_those_that_are_there(
    server: FakeServer, clock: Clock
) -> None:
    server.streams["a"] = chunks(*[10] * 5, first=50)
    planner = planner_of(
        server, clock, source=ReadSource(streams=("a",)), budgets=Budgets(offsets_max=10)
    )

    assert go_on(planner, clock, at(a=20)) == at(a=30)


def test_no_stream_waits_more_than_two_batches_though_the_budget_has_no_row_for_each(
    server: FakeServer, clock: Clock
) -> None:
    names = tuple("abcde")
    server.streams = {
        name: chunks(*[10] * size) for name, size in zip(names, [9, 1, 7, 1, 5], strict=True)
    }
    source, budgets = ReadSource(streams=names), Budgets(offsets_max=2)
    planner = planner_of(server, clock, source=source, budgets=budgets)
    start: Position = at(**dict.fromkeys(names, 0))
    waited = dict.fromkeys(names, 0)
    for _ in range(20):
        end = go_on(planner, clock, start)
        assert sum(end[name].offset - start[name].offset for name in names) == 2
        for name in names:
            waited[name] = 0 if end[name] != start[name] else waited[name] + 1
        assert max(waited.values()) <= 2
        start = end


def test_a_chunk_larger_than_the_budget_is_cut(server: FakeServer, clock: Clock) -> None:
    server.streams["a"] = chunks(100)
    planner = planner_of(
        server, clock, source=ReadSource(streams=("a",)), budgets=Budgets(offsets_max=30)
    )

    assert go_on(planner, clock, at(a=0)) == at(a=30)
    assert go_on(planner, clock, at(a=30)) == at(a=60)


def test_a_budget_of_bytes_goes_by_the_size_of_rows(server: FakeServer, clock: Clock) -> None:
    server.streams["a"] = chunks(*[10] * 10, body_bytes=96)  # 100 with their size
    planner = planner_of(
        server, clock, source=ReadSource(streams=("a",)), budgets=Budgets(bytes_max=3_500)
    )

    assert go_on(planner, clock, at(a=0)) == at(a=35)
    asked = server.count("subscribe")
    assert go_on(planner, clock, at(a=35)) == at(a=70)
    assert server.count("subscribe") == asked, "an estimate is used for a while"
    assert not server.talks[0].readings


def test_a_minimum_of_rows_is_waited_for(server: FakeServer, clock: Clock) -> None:
    budgets = Budgets(offsets_min=50, delay_ms_max=10_000)
    planner = planner_of(server, clock, budgets=budgets)
    start = at(a=70, b=20)

    assert go_on(planner, clock, start) is start
    clock.now += 10
    assert go_on(planner, clock, start) == at(a=100, b=20)


def test_a_query_of_what_is_there_now_ends_there(server: FakeServer, clock: Clock) -> None:
    planner = planner_of(server, clock, budgets=Budgets(offsets_max=50, offsets_min=500))
    planner.aim()
    server.streams["a"] += chunks(50, first=100)
    start: Position = at(a=0, b=0)
    for _ in range(10):
        start = go_on(planner, clock, start)

    assert start == at(a=100, b=20)


def test_a_query_of_one_batch_takes_all(server: FakeServer, clock: Clock) -> None:
    planner = planner_of(server, clock, budgets=Budgets(offsets_max=5))
    beginning = planner.begin()

    assert planner.advance(beginning, has_one_batch=True) == at(a=100, b=20)


def test_a_partition_that_is_added_begins_at_its_first_row(
    server: FakeServer, clock: Clock
) -> None:
    planner = planner_of(server, clock, source=ReadSource(super_streams=("p",)), start=LATEST)
    start = planner.advance(planner.begin(), has_one_batch=False)
    server.streams["c"] = chunks(10, 10, first=5)
    server.super_streams["p"] = ("a", "b", "c")
    clock.now += LIST_S

    end = go_on(planner, clock, start)

    assert end == at(a=100, b=20, c=25)
    splits = planner.splits(start, end)
    assert [(s.place.stream, s.place.partition, s.low, s.high) for s in splits] == [("c", 2, 5, 25)]


def test_an_empty_partition_that_is_added_is_in_the_position_at_once(
    server: FakeServer, clock: Clock
) -> None:
    planner = planner_of(server, clock, source=ReadSource(super_streams=("p",)))
    server.streams["c"] = []
    server.super_streams["p"] = ("a", "b", "c")

    end = go_on(planner, clock, at(a=100, b=20))

    assert end == at(a=100, b=20, c=0)
    assert go_on(planner, clock, end) is end


def test_a_partition_that_retention_emptied_since_its_first_batch_was_planned_gives_no_split(
    server: FakeServer, clock: Clock
) -> None:
    server.streams["c"] = chunks(10, first=30)
    planner = planner_of(server, clock, source=ReadSource(streams=("a", "b", "c")))

    assert planner.splits(at(a=100, b=20), at(a=100, b=20, c=25)) == []


# ---- trouble -----------------------------------------------------------------------------------


def test_a_server_that_is_away_means_nothing_new_for_a_while(
    server: FakeServer, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    planner = planner_of(server, clock)
    start = go_on(planner, clock, at(a=0, b=0))
    server.go()
    for _ in range(20):
        clock.now += 0.01
        planner.advance(start, has_one_batch=False)
    for _ in range(5):
        assert go_on(planner, clock, start) is start

    assert caplog.text.count("the query waits for the server") == 1
    server.is_away = False
    server.streams["a"] += chunks(5, first=100)
    assert go_on(planner, clock, start) == at(a=105, b=20)


def test_a_server_that_stays_away_ends_the_query_with_one_line(
    server: FakeServer, clock: Clock
) -> None:
    planner = planner_of(server, clock)
    start = go_on(planner, clock, at(a=0, b=0))
    server.go()
    begun = clock.now

    def wait() -> None:
        while clock.now - begun < 100:
            clock.now += 0.05
            planner.advance(start, has_one_batch=False)

    with pytest.raises(ServerGone) as caught:
        wait()

    assert 60 <= clock.now - begun < 62
    assert f":{server.port}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_server_that_goes_while_a_batch_is_cut_to_size_is_waited_for(
    server: FakeServer, clock: Clock
) -> None:
    good = server.handlers["resolve_offset_spec"]
    server.handlers["resolve_offset_spec"] = lambda _talk, _asked: server.cut()
    planner = planner_of(server, clock, budgets=Budgets(offsets_max=30))
    start = at(a=0, b=0)

    assert go_on(planner, clock, start) is start
    server.handlers["resolve_offset_spec"] = good
    wait_until(lambda: go_on(planner, clock, start) != start)  # a connection may yet be cut


def test_a_stream_that_is_not_there_at_the_beginning_is_refused(
    server: FakeServer, clock: Clock
) -> None:
    planner = planner_of(server, clock, source=ReadSource(streams=("a", "none")))
    planner.aim()

    with pytest.raises(Refused, match="stream 'none' does not exist"):
        planner.begin()


def test_a_beginning_beyond_the_end_is_refused(server: FakeServer, clock: Clock) -> None:
    planner = planner_of(server, clock, start=Point(PointKind.OFFSET, 50))

    with pytest.raises(WrongOption, match="offset 50 of stream 'b' is beyond its end, 20"):
        planner.begin()


@pytest.mark.parametrize("when", ["restart", "in the middle"])
def test_a_stream_that_has_gone_is_a_loss(server: FakeServer, clock: Clock, when: str) -> None:
    planner = planner_of(server, clock)
    start: Position = at(a=50, b=20)
    if when == "in the middle":
        start = go_on(planner, clock, start)
    del server.streams["b"]

    with pytest.raises(DataLoss, match=r"stream 'b': nothing from 20 on: .* not exist any more"):
        go_on(planner, clock, start)


@pytest.mark.parametrize("when", ["restart", "in the middle"])
def test_a_stream_that_has_gone_is_left_out_where_that_is_allowed(
    server: FakeServer, clock: Clock, when: str, caplog: pytest.LogCaptureFixture
) -> None:
    planner = planner_of(server, clock, fail_on_data_loss=False)
    start: Position = at(a=50, b=20)
    if when == "in the middle":
        start = go_on(planner, clock, start)
    del server.streams["b"]

    end = go_on(planner, clock, start)

    assert end == at(a=100)
    planner.splits(start, end)
    caplog.clear()
    for _ in range(5):
        assert go_on(planner, clock, end) is end
    assert not caplog.records, "it is told once"


def test_a_stream_that_a_query_never_read_must_be_there(server: FakeServer, clock: Clock) -> None:
    planner = planner_of(server, clock, source=ReadSource(streams=("a", "typo")))

    with pytest.raises(ClientError, match="stream 'typo' does not exist"):
        go_on(planner, clock, at(a=0))


def test_a_stream_that_was_made_again_is_a_loss_by_its_shorter_end(
    server: FakeServer, clock: Clock
) -> None:
    planner = planner_of(server, clock)
    server.streams["a"] = chunks(5)

    with pytest.raises(DataLoss, match=r"stream 'a': offsets 5 to 99 are lost: .* made again"):
        go_on(planner, clock, at(a=100, b=20))


def test_a_stream_that_was_made_again_is_read_from_its_first_row_where_that_is_allowed(
    server: FakeServer, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    planner = planner_of(server, clock, fail_on_data_loss=False)
    server.streams["a"] = []
    start = at(a=100, b=20)

    middle = go_on(planner, clock, start)
    caplog.clear()
    assert go_on(planner, clock, middle) is middle
    assert not caplog.records, "it is told once"
    server.streams["a"] = chunks(5)
    end = go_on(planner, clock, middle)

    assert (middle, end) == (at(a=0, b=20), at(a=5, b=20))
    assert [(s.low, s.high) for s in planner.splits(middle, end)] == [(0, 5)]


def test_rows_that_retention_took_are_a_loss_with_their_range(
    server: FakeServer, clock: Clock
) -> None:
    server.streams["a"] = chunks(*[10] * 5, first=50)

    with pytest.raises(DataLoss, match="stream 'a': offsets 20 to 49 are lost: retention"):
        planner_of(server, clock).splits(at(a=20, b=20), at(a=100, b=20))
    lenient = planner_of(server, clock, fail_on_data_loss=False)
    assert [(s.low, s.high) for s in lenient.splits(at(a=20, b=20), at(a=100, b=20))] == [(50, 100)]


def test_a_batch_is_planned_alike_whenever_it_is_asked_for(
    server: FakeServer, clock: Clock
) -> None:
    first = planner_of(server, clock).splits(at(a=3, b=0), at(a=77, b=20))
    server.streams["a"] += chunks(50, first=100)
    again = planner_of(server, clock).splits(at(a=3, b=0), at(a=77, b=20))

    assert first == again
    assert [(s.place.stream, s.low, s.high) for s in first] == [("a", 3, 77), ("b", 0, 20)]


def test_the_ends_as_last_seen_are_told_for_the_progress(server: FakeServer, clock: Clock) -> None:
    planner = planner_of(server, clock)
    assert planner.latest() is None

    go_on(planner, clock, at(a=0, b=0))

    assert planner.latest() == at(a=100, b=20)
