"""Staged writes: nothing is seen before the commit, and every row once after it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from gateway.stream.wire import messages as m
from tests.client import Client
from tests.integration.administrator import ctl
from tests.integration.server import HutchServer
from tests.sink_rig import bodies_in
from tests.spark import staged_copy
from tests.spark.conftest import SPARK_SETTINGS, Place
from tests.spark.proxy import Proxy
from tests.spark.publishing import append, bodies_of, create_super_stream
from tests.spark.queries import WAIT_S, eventually, refusal, uncommit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

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

    def __init__(self, proxy: Proxy, name: str, work: Callable[[], object], nth: int = 1) -> None:
        self.results: list[object] = []
        self._name = name
        self._work = work
        self._left = nth
        self._lock = threading.Lock()
        proxy.on_request = self

    def __call__(self, name: str) -> None:
        if name == self._name:
            with self._lock:
                self._left -= 1
                if not self._left:
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


def test_a_save_without_rows_counts_if_it_has_a_number(
    place: Place, stream: str, rows: DataFrame
) -> None:
    options = place.options | {"stream": stream, "createStream": "true", "txnAppId": stream}

    save(rows.where("body = ''"), options, txnVersion=1)
    save(rows, options, txnVersion=1)

    assert bodies_in(place, stream) == []


def test_rows_of_a_task_that_is_tried_again_are_there_once(
    place: Place, stream: str, rows: DataFrame
) -> None:
    from pyspark import TaskContext

    def failing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 1 and context.attemptNumber() < 2:
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
    place: Place, request: pytest.FixtureRequest, stream: str, rows: DataFrame
) -> None:
    del place
    broker = request.getfixturevalue("rabbitmq")
    other = Place("rabbitmq", broker.host, broker.ports.stream)

    said = refusal(lambda: save(rows, other.options, stream=stream, delivery="staged"))

    assert said.startswith("option delivery='staged': ")
    assert "(RabbitMQ " in said
    assert said.endswith("has no staged writing, which needs Hutch; take delivery=dedup or none")


# ---- streaming ---------------------------------------------------------------------------------


class Copy:
    """A query that copies a super stream to a stream, and can be run again.

    Attributes:
        wanted: As `staged_copy` takes it.
        checkpoint: Of the query.
    """

    def __init__(self, place: Place, stream: str, folder: Path) -> None:
        self.checkpoint = folder / "checkpoint"
        source = {"superStream": stream, "startingOffsets": "earliest"}
        self.wanted: dict[str, Any] = {
            "source": place.options | PATIENT | source | {"maxOffsetsPerTrigger": "250"},
            "target": place.options | PATIENT | RAW | {"stream": f"{stream}-copy"},
            "checkpoint": str(self.checkpoint),
            "settings": SPARK_SETTINGS,
            "parts": 2,
        }

    def run(self, spark: SparkSession, **changes: object) -> StreamingQuery:
        """Run to the end of what is there."""
        query = staged_copy.start_copy(spark, self.wanted | changes)
        try:
            assert query.awaitTermination(2 * WAIT_S), "the query does not end"
        finally:
            query.stop()
        return query


def fill(client: Client, stream: str) -> list[bytes]:
    """Create a super stream with rows, and the stream to copy it to; give the rows."""
    for index, name in enumerate(create_super_stream(client, stream, 2)):
        append(client, name, bodies_of(450, index * 450), at_once=20)
    client.create(f"{stream}-copy")
    return sorted(bodies_of(900))


@pytest.mark.parametrize(
    "changes", [{}, {"shuffles": True}, {"app": "copy"}], ids=["plain", "shuffled", "foreachBatch"]
)
def test_a_batch_that_was_committed_when_the_driver_died_is_not_doubled(
    spark: SparkSession,
    place: Place,
    client: Client,
    stream: str,
    tmp_path: Path,
    changes: dict[str, Any],
) -> None:
    copied = fill(client, stream)
    copy = Copy(place, stream, tmp_path)
    if changes.get("app"):
        changes = {"app": stream}

    copy.run(spark, **changes)
    uncommit(copy.checkpoint)
    append(client, f"{stream}-0", bodies_of(100, 900))
    copy.run(spark, **changes, parts=5)

    assert sorted(bodies_in(place, f"{stream}-copy")) == sorted(copied + bodies_of(100, 900))


def test_a_query_that_begins_anew_writes_anew(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    copied = fill(client, stream)

    for folder in ("one", "two"):
        Copy(place, stream, tmp_path / folder).run(spark)

    assert sorted(bodies_in(place, f"{stream}-copy")) == sorted(copied * 2)


def test_an_empty_batch_asks_for_no_commit(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    create_super_stream(client, stream, 2)
    client.create(f"{stream}-copy")
    with Proxy(place.host, place.port) as proxy:
        copy = Copy(place, stream, tmp_path)
        copy.wanted["target"] |= proxy.options
        copy.run(spark)

        assert not proxy.requests["commit_stages"]


def test_rows_are_there_once_after_the_driver_is_killed_while_it_stages(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    copied = fill(client, stream)
    copy = Copy(place, stream, tmp_path)
    may_pass = threading.Event()
    with Proxy(place.host, place.port) as proxy:
        held = Moment(proxy, "close_stage", may_pass.wait, nth=4)
        target = copy.wanted["target"] | proxy.options
        kill_driver(copy.wanted | {"target": target}, tmp_path, lambda: held._left <= 0)
        may_pass.set()
    seen = bodies_in(place, f"{stream}-copy")
    assert 0 < len(seen) < len(copied)

    copy.run(spark, parts=5)

    assert sorted(bodies_in(place, f"{stream}-copy")) == copied


def kill_driver(wanted: dict[str, Any], folder: Path, is_time: Callable[[], bool]) -> None:
    """Run the copy as a program of its own; kill driver, JVM and workers when it is time."""
    log = folder / "driver.log"
    with log.open("wb") as output:
        driver = subprocess.Popen(
            [sys.executable, staged_copy.__file__, json.dumps(wanted)],
            cwd=folder,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        eventually(lambda: is_time() or driver.poll() is not None, 3 * WAIT_S)
        assert driver.poll() is None, log.read_text()[-4_000:]
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait(WAIT_S)


# ---- the server is killed ----------------------------------------------------------------------


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[HutchServer]:
    with HutchServer(tmp_path / "data") as server:
        yield server


@pytest.mark.parametrize(
    ("request_name", "nth"), [("stage", 3), ("close_stage", 2), ("commit_stages", 2)]
)
def test_rows_are_there_once_after_the_server_is_killed_by_a_request(
    spark: SparkSession,
    mortal: HutchServer,
    stream: str,
    tmp_path: Path,
    request_name: str,
    nth: int,
) -> None:
    place = Place("hutch", mortal.host, mortal.port)
    with place.client() as client:
        copied = fill(client, stream)
    copy = Copy(place, stream, tmp_path)
    with Proxy(place.host, place.port) as proxy:
        Moment(proxy, request_name, mortal.restart, nth)
        copy.wanted["target"] |= through(proxy)
        copy.run(spark)

    assert "hutch ready" in mortal.stdout
    assert sorted(bodies_in(mortal, f"{stream}-copy")) == copied


def test_rows_are_there_once_after_the_server_is_killed_behind_its_commit(
    spark: SparkSession, mortal: HutchServer, stream: str, tmp_path: Path
) -> None:
    place = Place("hutch", mortal.host, mortal.port)
    with place.client() as client:
        copied = fill(client, stream)
    copy = Copy(place, stream, tmp_path)
    answers = 0

    def kill(name: str, frame: bytearray) -> bytearray | None:
        nonlocal answers
        answers += name == "commit_stages"
        if name == "commit_stages" and answers == 2:
            mortal.restart()
            return None
        return frame

    with Proxy(place.host, place.port) as proxy:
        proxy.on_answer = kill
        copy.wanted["target"] |= through(proxy)
        copy.run(spark)

    assert answers > 2
    assert sorted(bodies_in(mortal, f"{stream}-copy")) == copied
