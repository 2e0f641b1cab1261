import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.pool import Name
from pyspark_hutch.encoding.errors import BadColumn, NoRoute
from pyspark_hutch.encoding.murmur import murmur3
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.sink.publishing_ids import TaskIdentity
from pyspark_hutch.sink.targets import Targets
from pyspark_hutch.sink.task import RowsWritten, check_schema, require_one_task_each, write_rows
from tests.sink_rig import (
    FakeSink,
    batch_of,
    bodies_of,
    settings_for,
    streaming_settings_for,
    write,
)
from tests.stage_rig import PURPOSE, FakeStages, stage
from tests.waiting import HANG_S

DEDUP = {"delivery": "dedup", "producerName": "name"}
BY_PLACE = DEDUP | {"dedupUnsafePlan": "true"}
BY_COLUMN = DEDUP | {"publishingIdColumn": "n", "producerKeyColumn": "k"}


@pytest.fixture
def server() -> Iterator[FakeSink]:
    with FakeSink("a", "s-0", "s-1", "s-2") as fake:
        fake.super_streams = {"s": ("s-0", "s-1", "s-2")}
        yield fake


def test_rows_of_all_batches_reach_the_stream(server: FakeSink) -> None:
    found = write(
        settings_for(server, stream="a"),
        batch_of(bodies_of(50)),
        batch_of([]),
        batch_of(bodies_of(50, first=50)),
    )

    assert found == RowsWritten(100, 0)
    assert server.stored["a"] == bodies_of(100)


def test_a_task_without_rows_publishes_nothing(server: FakeSink) -> None:
    assert write(settings_for(server, stream="a"), batch_of([])) == RowsWritten(0, 0)
    assert server.count("declare_publisher") == 0


def test_a_row_goes_to_the_partition_of_its_keys_hash(server: FakeSink) -> None:
    keys = [f"key {number}" for number in range(60)]
    hashes = murmur3(pa.array([key.encode() for key in keys], pa.large_binary()))

    write(settings_for(server, superStream="s"), batch_of(bodies_of(60), routing_key=keys))

    for partition in range(3):
        meant = [
            body for body, one in zip(bodies_of(60), hashes, strict=True) if one % 3 == partition
        ]
        assert server.stored[f"s-{partition}"] == meant != []


def test_a_row_goes_to_the_stream_that_it_names(server: FakeSink) -> None:
    batch = batch_of([b"1", b"2", b"3"], stream=["a", "s-1", "a"])

    write(settings_for(server), batch)

    assert server.stored["a"] == [b"1", b"3"]
    assert server.stored["s-1"] == [b"2"]


def test_a_row_that_names_no_partition_is_refused(server: FakeSink) -> None:
    settings = settings_for(server, superStream="s", routing="column")

    write(settings, batch_of([b"1"], stream=["s-2"]))
    with pytest.raises(NoRoute, match="'a' is no partition"):
        write(settings, batch_of([b"1"], stream=["a"]))


def test_the_second_run_of_a_task_writes_what_the_first_did_not(server: FakeSink) -> None:
    settings = settings_for(server, stream="a", **BY_PLACE)

    assert write(settings, batch_of(bodies_of(60))) == RowsWritten(60, 0)
    again = write(settings, batch_of(bodies_of(40)), batch_of(bodies_of(60, first=40)))

    assert again == RowsWritten(40, 60)
    assert server.stored["a"] == bodies_of(100)
    assert server.last_ids == {("a", "name-p0"): 100}


def test_tasks_and_batches_number_apart(server: FakeSink) -> None:
    settings = settings_for(server, stream="a", **BY_PLACE)

    for task in (
        TaskIdentity(0, "q" * 8, 0),
        TaskIdentity(1, "q" * 8),
        TaskIdentity(0, "q" * 8, 1),
    ):
        assert write(settings, batch_of(bodies_of(3)), task=task) == RowsWritten(3, 0)

    assert server.last_ids == {
        ("a", "name-qqqqqqqq-p0"): (1 << 32) + 3,
        ("a", "name-qqqqqqqq-p1"): 3,
    }


def test_numbers_from_a_column_do_not_depend_on_the_cut(server: FakeSink) -> None:
    settings = settings_for(server, stream="a", **BY_COLUMN)

    def rows(key: str, first: int, following: int) -> pa.RecordBatch:
        numbers = range(first, following)
        bodies = [f"{key}{number}".encode() for number in numbers]
        return batch_of(bodies, n=pa.array(numbers, pa.int64()), k=[key] * len(numbers))

    write(settings, rows("x", 0, 30), rows("y", 0, 10), task=TaskIdentity(0))
    again = [
        write(settings, rows("y", 0, 20), task=TaskIdentity(5)),
        write(settings, rows("x", 0, 17), rows("x", 17, 50), task=TaskIdentity(1)),
    ]

    assert again == [RowsWritten(10, 10), RowsWritten(20, 30)]
    meant = [f"x{n}".encode() for n in range(50)] + [f"y{n}".encode() for n in range(20)]
    assert sorted(server.stored["a"]) == sorted(meant)


def test_queries_without_a_producer_name_drop_no_row_of_each_other(server: FakeSink) -> None:
    unnamed = {name: text for name, text in BY_COLUMN.items() if name != "producerName"}
    settings = streaming_settings_for(server, stream="a", **unnamed)
    even = batch_of([b"0", b"2", b"4"], n=[0, 2, 4], k=["x"] * 3)
    odd = batch_of([b"1", b"3"], n=[1, 3], k=["x"] * 2)

    for query, rows, written in (
        ("first query", even, RowsWritten(3, 0)),
        ("other query", odd, RowsWritten(2, 0)),
        ("first query", even, RowsWritten(0, 3)),
    ):
        assert write(settings, rows, task=TaskIdentity(0, query)) == written

    assert server.stored["a"] == [b"0", b"2", b"4", b"1", b"3"]


def test_wrong_numbers_are_found_before_any_row_of_their_batch_is_published(
    server: FakeSink,
) -> None:
    batch = batch_of(bodies_of(3), n=[0, 2, 1], k=["x"] * 3)

    with pytest.raises(BadColumn, match="1 comes behind 2"):
        write(settings_for(server, stream="a", **BY_COLUMN), batch)

    assert server.count("publish") == 0


def test_rows_are_sorted_before_they_are_numbered(server: FakeSink) -> None:
    settings = settings_for(
        server, stream="a", dedupOrderBy="first,second", ignoreUnknownColumns="true", **BY_PLACE
    )
    one = batch_of([b"d", b"a"], first=[2, 1], second=["x", "x"])
    two = batch_of([b"c", b"b"], first=[1, 1], second=["z", "y"])

    write(settings, one, two)
    assert write(settings, two, one) == RowsWritten(0, 4)

    assert server.stored["a"] == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("unordered", [pa.array([[1]]), pa.array([{"x": 1}])])
def test_rows_cannot_be_sorted_by_what_has_no_order(server: FakeSink, unordered: pa.Array) -> None:
    settings = settings_for(server, stream="a", dedupOrderBy="c", **BY_PLACE)

    with pytest.raises(BadColumn, match=r"^column 'c': is .*, must be a type that has an order"):
        check_schema(batch_of([b""], c=unordered).schema, settings)


@pytest.mark.parametrize(
    ("options", "columns", "error", "said"),
    [
        ({"stream": "a"}, {"bodi": [b""]}, BadColumn, "is it 'bodi'"),
        ({"stream": "a"}, {"body": [1]}, BadColumn, "'body': is bigint, must be binary or string"),
        ({"stream": "a"}, {"body": [b""], "x": [1]}, BadColumn, "'x'"),
        ({"superStream": "s"}, {"body": [b""]}, BadColumn, "'routing_key': missing"),
        (
            {"superStream": "s", "routing": "column"},
            {"body": [b""]},
            BadColumn,
            "'stream': missing",
        ),
        ({}, {"body": [b""]}, WrongOption, "rows have no target"),
        ({"stream": "a"} | BY_COLUMN, {"body": [b""], "k": ["x"]}, BadColumn, "'n': missing"),
        (
            {"stream": "a"} | BY_COLUMN,
            {"body": [b""], "k": ["x"], "n": ["1"]},
            BadColumn,
            "'n': is string, must be bigint or int",
        ),
        (
            {"stream": "a"} | BY_COLUMN,
            {"body": [b""], "k": [b"\xff"], "n": [1]},
            BadColumn,
            "'k': is binary, must be string, bigint or int",
        ),
        (
            {"superStream": "s", "routing": "key", "routingKeyColumn": "k"},
            {"body": [b""], "k": [b"\xff"]},
            BadColumn,
            "'k': is binary, must be string, bigint or int",
        ),
        (
            {"stream": "a", "compression": "zstd"},
            {"body": [b""], "filter_value": [""]},
            BadColumn,
            "cannot be written together with option compression=zstd",
        ),
    ],
)
def test_wrong_columns_are_refused_before_any_task(
    server: FakeSink,
    options: dict[str, str],
    columns: dict[str, list[object]],
    error: type[Exception],
    said: str,
) -> None:
    with pytest.raises(error, match=said):
        check_schema(pa.RecordBatch.from_pydict(columns).schema, settings_for(server, **options))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit(), RuntimeError("rows")])
def test_a_task_that_fails_leaves_no_publisher(server: FakeSink, error: BaseException) -> None:
    settings = settings_for(server, stream="a", **{"pool.idleTimeoutMs": "30000"})

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch_of(bodies_of(10))
        raise error

    cluster = Cluster(settings.connection, Name("test"))
    with pytest.raises(type(error)):
        write_rows(cluster, settings, Targets("a"), TaskIdentity(0), batches())

    talk = next(talk for talk in server.talks if "declare_publisher" in talk.names)
    deadline = time.monotonic() + HANG_S
    while talk.socket.fileno() != -1:
        assert time.monotonic() < deadline, "the connection is kept"
        time.sleep(0.01)
    assert write(settings, batch_of(bodies_of(1))) == RowsWritten(1, 0)


def test_rows_of_one_producer_in_two_tasks_are_told_when_the_batch_ends() -> None:
    first = RowsWritten(10, 0, (("orders", "copy-a"), ("orders", "copy-b")))

    require_one_task_each([first, RowsWritten(5, 0, (("returns", "copy-a"),)), RowsWritten(1, 0)])
    with pytest.raises(BadColumn, match="'copy-b' for stream 'orders' were in two tasks"):
        require_one_task_each([first, RowsWritten(5, 0, (("orders", "copy-b"),))])


def test_a_staged_task_routes_rows_as_a_publishing_one_does() -> None:
    keys = [f"key {number}" for number in range(60)]
    rows = batch_of(bodies_of(60), routing_key=keys)
    with FakeSink("s-0", "s-1", "s-2") as published, FakeStages("s-0", "s-1", "s-2") as server:
        for fake in (published, server):
            fake.super_streams = {"s": ("s-0", "s-1", "s-2")}
        write(settings_for(published, superStream="s"), rows)

        found = stage(settings_for(server, superStream="s"), [rows], partition=7)

        assert {name: server.staged(name) for name in server.streams} == published.stored
    assert (found.purpose, found.partition, found.rows) == (PURPOSE, 7, 60)
    assert {one.stream: one.rows for one in found.stages} == {
        name: len(bodies) for name, bodies in published.stored.items()
    }


def test_a_staged_task_whose_row_cannot_be_written_discards_what_it_has() -> None:
    bad: list[Any] = [b"1", None]
    rows = [batch_of([b"1"], stream=["a"]), batch_of(bad, stream=["a", "a"])]
    with FakeStages("a") as server:
        with pytest.raises(BadColumn, match="null in row 1"):
            stage(settings_for(server), rows)

        assert server.stages == {}
