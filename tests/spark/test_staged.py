"""Staged writes: nothing is seen before the commit, and every row once after it.

What kills do to them is in `test_chaos.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hutch.stream import messages as m
from tests.client import Client
from tests.integration.administrator import ctl
from tests.integration.server import HutchServer
from tests.sink_rig import bodies_in
from tests.spark import copying
from tests.spark.conftest import Place
from tests.spark.proxy import Proxy
from tests.spark.publishing import append, bodies_of, create_super_stream
from tests.spark.queries import WAIT_S, refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from compat.broker.running import RunningBroker

pytestmark = pytest.mark.timeout(300)

COUNT = 300
RAW = {"bodyFormat": "raw"}
PATIENT = {"planner.retries": "20", "planner.retryIntervalMs": "500"}


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.range(COUNT, numPartitions=3).selectExpr("concat('row ', id) body")


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    with place.client() as opened:
        yield opened


def save(frame: DataFrame, options: dict[str, str], **more: object) -> None:
    texts = RAW | options | {name: str(value) for name, value in more.items()}
    frame.write.format("hutch").options(**texts).mode("append").save()


def through(proxy: Proxy) -> dict[str, str]:
    """Return the options that lead through a proxy, with patience."""
    return proxy.options | PATIENT


class Moment:
    """Does something the first time that a request passes a proxy."""

    def __init__(self, proxy: Proxy, name: str, work: Callable[[], object]) -> None:
        self.results: list[object] = []
        self._name = name
        self._work = work
        proxy.on_request = self

    def __call__(self, name: str) -> None:
        if name == self._name and not self.results:
            self.results.append(self._work())


# ---- batches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("delivery", ["auto", "staged"])
def test_a_save_is_seen_as_a_whole_when_it_is_committed(
    place: Place, client: Client, stream: str, rows: DataFrame, delivery: str
) -> None:
    client.create(stream)
    with Proxy(place.host, place.port) as proxy:
        before = Moment(proxy, "commit_stages", lambda: bodies_in(place, stream))
        save(rows, through(proxy), stream=stream, delivery=delivery)
        names = set(proxy.requests)

    assert before.results == [[]]
    assert bodies_in(place, stream) == bodies_of(COUNT), "tasks in their order"
    assert "publish" not in names
    assert "stage" in names


def test_a_save_reaches_the_partitions_of_a_super_stream_at_once(
    place: Place, client: Client, stream: str, rows: DataFrame
) -> None:
    partitions = create_super_stream(client, stream, 3)
    keyed = rows.selectExpr("body", "body routing_key")

    def found() -> list[int]:
        return [len(bodies_in(place, name)) for name in partitions]

    with Proxy(place.host, place.port) as proxy:
        before = Moment(proxy, "commit_stages", found)
        save(keyed, through(proxy), superStream=stream, compression="gzip", subBatchSize=7)

    assert before.results == [[0, 0, 0]]
    assert sum(found()) == COUNT
    assert all(found())


def test_a_save_with_a_number_is_done_once(place: Place, stream: str, rows: DataFrame) -> None:
    options = place.options | {"stream": stream, "createStream": "true", "txnAppId": stream}
    for version in (3, 3, 2, 4):
        save(rows, options, txnVersion=version)

    assert sorted(bodies_in(place, stream)) == sorted(bodies_of(COUNT) * 2)


def test_a_save_without_a_number_counts_alone(place: Place, stream: str, rows: DataFrame) -> None:
    for _ in range(2):
        save(rows, place.options, stream=stream, createStream=True)

    assert sorted(bodies_in(place, stream)) == sorted(bodies_of(COUNT) * 2)


def test_a_save_without_rows_counts_in_a_series_that_has_some(
    place: Place, stream: str, rows: DataFrame
) -> None:
    options = place.options | {"stream": stream, "createStream": "true", "txnAppId": stream}
    nothing = rows.where("body = ''")

    for some, version in ((nothing, 1), (rows, 1), (rows, 1), (nothing, 2), (rows, 2)):
        save(some, options, txnVersion=version)

    assert sorted(bodies_in(place, stream)) == sorted(bodies_of(COUNT))


def test_rows_of_a_task_that_is_tried_again_are_there_once(
    place: Place, stream: str, rows: DataFrame
) -> None:
    from pyspark import TaskContext

    def failing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 1 and context.attemptNumber() == 0:
            raise RuntimeError("tried again")

    save(rows.mapInArrow(failing, "body string"), place.options, stream=stream, createStream=True)

    assert bodies_in(place, stream) == bodies_of(COUNT)


def test_a_save_that_fails_shows_nothing(place: Place, stream: str, rows: DataFrame) -> None:
    broken = rows.selectExpr("if(body = 'row 250', null, body) body")

    said = refusal(lambda: save(broken, place.options, stream=stream, createStream=True))

    assert said.startswith("column 'body': null in row")
    assert bodies_in(place, stream) == []


def test_a_stream_that_is_deleted_before_the_commit_is_named(
    place: Place, client: Client, stream: str, rows: DataFrame
) -> None:
    for name in (stream, f"{stream}-2"):
        client.create(name)
    named = rows.selectExpr("body", f"if(body < 'row 2', '{stream}', '{stream}-2') stream")

    with Proxy(place.host, place.port) as proxy:
        Moment(
            proxy,
            "commit_stages",
            lambda: client.must("delete_stream", m.DeleteStream(f"{stream}-2")),
        )
        said = refusal(lambda: save(named, through(proxy)))

    assert f"{stream}-2" in said
    assert bodies_in(place, stream) == []


def test_a_right_that_is_lost_before_the_commit_is_missed(
    spark: SparkSession, stream: str, rows: DataFrame, tmp_path: Path
) -> None:
    del spark
    with HutchServer(tmp_path / "data") as server:
        place = Place("hutch", server.host, server.port)
        with place.client() as client:
            client.create(stream)
        ctl(server, "add_user", "clerk", stdin=b"secret\n")
        ctl(server, "set_permissions", "clerk", "", ".*", "")
        with Proxy(place.host, place.port) as proxy:
            Moment(
                proxy,
                "commit_stages",
                lambda: ctl(server, "set_permissions", "clerk", "", "other", ".*"),
            )
            login = {"username": "clerk", "password": "secret"}
            said = refusal(lambda: save(rows, through(proxy) | login, stream=stream))

        assert stream in said
        assert "access refused" in said
        assert bodies_in(place, stream) == []


def test_another_broker_is_told_where_stages_are_asked_for(
    rabbitmq: RunningBroker, stream: str, rows: DataFrame
) -> None:
    other = Place("rabbitmq", rabbitmq.host, rabbitmq.ports.stream)

    said = refusal(lambda: save(rows, other.options, stream=stream, delivery="staged"))

    assert said.startswith("option delivery='staged': ")
    assert "(RabbitMQ " in said
    assert said.endswith("has no staged writing, which needs Hutch; take delivery=dedup or none")


# ---- streaming ---------------------------------------------------------------------------------


def copy(spark: SparkSession, place: Place, stream: str, folder: Path, **to: str) -> None:
    """Copy all of a super stream to a stream."""
    source = {"superStream": stream, "startingOffsets": "earliest"}
    wanted = {
        "source": place.options | source | {"maxOffsetsPerTrigger": "250"},
        "target": place.options | RAW | {"stream": f"{stream}-copy"} | to,
        "checkpoint": str(folder / "checkpoint"),
        "plan": "plain",
        "parts": 2,
    }
    query = copying.start_copy(spark, wanted)
    try:
        assert query.awaitTermination(2 * WAIT_S), "the query does not end"
    finally:
        query.stop()


def test_a_query_that_begins_anew_writes_anew(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    for index, name in enumerate(create_super_stream(client, stream, 2)):
        append(client, name, bodies_of(450, index * 450), at_once=20)
    client.create(f"{stream}-copy")

    for folder in ("one", "two"):
        copy(spark, place, stream, tmp_path / folder)

    assert sorted(bodies_in(place, f"{stream}-copy")) == sorted(bodies_of(900) * 2)


def test_an_empty_batch_asks_for_no_commit(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    create_super_stream(client, stream, 2)
    client.create(f"{stream}-copy")
    with Proxy(place.host, place.port) as proxy:
        copy(spark, place, stream, tmp_path, **through(proxy))

        assert not proxy.requests["commit_stages"]
