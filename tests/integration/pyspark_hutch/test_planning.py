"""Plans by the commands for pipelines, against a running server, and without Spark."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Final

import pytest

from hutch.client.errors import Refused
from hutch.stream import messages as m
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.pool import POOL, Name
from pyspark_hutch.client.range_reader import DataLoss, Range
from pyspark_hutch.offsets.position import StreamPlace
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.read_rules import read_settings
from pyspark_hutch.planning.batch import describe_batch
from pyspark_hutch.planning.splits import Split
from pyspark_hutch.planning.tails import LIST_S
from tests.client import Client
from tests.integration.administrator import ctl
from tests.integration.conftest import StartServer, assert_no_traceback, external_endpoint
from tests.integration.pyspark_hutch.planned import Query, batch, ranges
from tests.integration.server import HutchServer
from tests.reading_rig import reader_of, records_of
from tests.spark.proxy import Proxy
from tests.spark.publishing import append, create_super_stream, publish
from tests.waiting import wait_until

LIMITS: Final = {"max-length-bytes": "20000", "stream-max-segment-size-bytes": "2000"}
EACH_SECOND: Final = {"HUTCH_STREAMS__RETENTION_INTERVAL_S": "1"}
LOGIN: Final = {"peer_properties", "sasl_handshake", "sasl_authenticate", "tune", "open"}


@pytest.fixture(scope="module")
def hutch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    """A server that no test of this module stops, with retention at work each second."""
    if external_endpoint() is not None:
        pytest.skip("needs a server of its own")
    data = tmp_path_factory.mktemp("planning") / "data"
    with HutchServer(data, "--durability", "os", environment=EACH_SECOND) as server:
        yield server
        server.terminate()
        assert_no_traceback(server)


@pytest.fixture
def client(hutch: HutchServer) -> Iterator[Client]:
    with Client.opened(*hutch.endpoint) as opened:
        yield opened


def read(server: HutchServer, split: Split, *, fails_on_loss: bool = True) -> list[int]:
    """Read a split as a task does; give the offsets."""
    wanted = Range(
        split.place.stream,
        split.leader,
        split.low,
        split.high,
        fails_on_loss=fails_on_loss,
        generation=split.generation,
        kept_by=split.kept_by,
    )
    return [offset for offset, _ in records_of(reader_of(server, wanted), split.high)]


def first_of(server: HutchServer, stream: str) -> int:
    options = {"endpoints": f"{server.host}:{server.port}", "metadata": "streams", "stream": stream}
    settings = read_settings(options, is_streaming=False)
    return describe_batch(Cluster(settings.connection, Name("test")), settings).bounds[stream].first


def make_again(client: Client, stream: str, count: int) -> None:
    client.must("delete_stream", m.DeleteStream(stream))
    publish(client, stream, [b"new"] * count)


# ---- requests --------------------------------------------------------------------------------


def test_a_thousand_streams_are_planned_by_one_call_of_each_command(
    hutch: HutchServer, client: Client
) -> None:
    names = [f"many-{number:04}" for number in range(1_000)]
    for name in names:
        publish(client, name, [b"row"] * 3)
    with Proxy(*hutch.endpoint) as proxy:
        splits = batch(proxy, stream=",".join(names), minPartitions="2000", advertised="ignore")
        in_batch, proxy.requests = proxy.requests, type(proxy.requests)()
        query = Query(proxy, streamPattern="^many-[0-9]{4}$", startingOffsets="earliest")
        query.begin()
        proxy.requests.clear()
        first = query.batch()
        in_first = proxy.requests.copy()
        append(client, names[5], [b"row"])
        proxy.requests.clear()
        second = query.batch()
        in_second = proxy.requests.copy()

    assert len(splits) == len(first) == 1_000
    assert ranges(second) == [(names[5], 3, 4)]
    asked = {"describe_streams": 1, "plan_streams": 1}
    assert {name: count for name, count in in_batch.items() if name not in LOGIN} == asked
    assert in_first == in_second == asked


def test_an_idle_query_plans_nothing(hutch: HutchServer, client: Client, stream: str) -> None:
    publish(client, stream, [b"row"])
    with Proxy(*hutch.endpoint) as proxy:
        query = Query(proxy, stream=stream, startingOffsets="earliest")
        query.begin()
        query.batch()
        proxy.requests.clear()
        before = query.end
        assert not query.batch()

    assert query.end is before
    assert proxy.requests == {"describe_streams": 1}


@pytest.mark.parametrize("start", ["latest", "-10", "-1 seconds"])
def test_a_first_batch_that_was_not_committed_stays_empty_and_nothing_is_read_twice(
    hutch: HutchServer, client: Client, stream: str, start: str
) -> None:
    names = f"{stream}-a", f"{stream}-b"
    for name in names:
        publish(client, name, [b"row"] * 100)
    query = Query(hutch, stream=",".join(names), startingOffsets=start)
    query.begin()
    begun = query.offsets()
    append(client, names[0], [b"row"] * 30)
    query.restart()

    assert query.begin_again() == []
    assert ranges(query.batch() or query.batch()) == [
        (name, begun[name], end)
        for name, end in zip(names, (130, 100), strict=True)
        if begun[name] < end
    ]


# ---- patterns --------------------------------------------------------------------------------


def test_a_pattern_reads_what_it_matches_with_places_in_super_streams(
    hutch: HutchServer, client: Client, stream: str
) -> None:
    partitions = create_super_stream(client, f"{stream}-super", 2)
    for name in (f"{stream}-plain", *partitions):
        (publish if name not in partitions else append)(client, name, [b"row"] * 2)
    publish(client, f"other-{stream}", [b"row"])

    found = batch(hutch, streamPattern=f"^{re.escape(stream)}-")

    assert [(s.place.stream, s.place.super_stream, s.place.partition) for s in found] == [
        (f"{stream}-plain", None, 0),
        (partitions[0], f"{stream}-super", 0),
        (partitions[1], f"{stream}-super", 1),
    ]
    assert batch(hutch, streamPattern=f"^no-{re.escape(stream)}") == []


def test_a_pattern_leaves_out_what_the_user_may_not_read(
    hutch: HutchServer, client: Client, stream: str
) -> None:
    for name in ("mine", "theirs"):
        publish(client, f"{stream}-{name}", [b"row"])
    ctl(hutch, "add_user", stream, stdin=b"secret\n")
    ctl(hutch, "set_permissions", stream, "", "", "mine$")
    user = {"username": stream, "password": "secret"}

    found = batch(hutch, streamPattern=re.escape(stream), **user)
    assert [split.place.stream for split in found] == [f"{stream}-mine"]
    with pytest.raises(Refused, match="theirs' may not be used by this user"):
        batch(hutch, stream=f"{stream}-theirs", **user)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [("[", "cannot be used: .*missing terminating"), ("(*LIMIT_MATCH=1)a", "sets a limit")],
)
def test_a_bad_pattern_is_told_in_one_line(hutch: HutchServer, pattern: str, words: str) -> None:
    with pytest.raises(WrongOption, match=words) as caught:
        batch(hutch, streamPattern=pattern)

    assert str(caught.value).startswith(f"option streamPattern={pattern!r}: ")
    assert "\n" not in str(caught.value)


def test_a_new_stream_that_matches_is_read_from_its_first_row(
    hutch: HutchServer, client: Client, stream: str
) -> None:
    publish(client, f"{stream}-a", [b"row"] * 5)
    query = Query(hutch, streamPattern=re.escape(stream))
    query.begin()
    publish(client, f"{stream}-b", [b"row"] * 3)

    assert ranges(query.batch(after_s=LIST_S)) == [(f"{stream}-b", 0, 3)]
    assert query.offsets() == {f"{stream}-a": 5, f"{stream}-b": 3}


def test_a_stream_of_a_pattern_that_is_gone_is_a_loss(
    hutch: HutchServer, client: Client, stream: str, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        publish(client, f"{stream}-{name}", [b"row"] * 5)
    query = Query(hutch, streamPattern=re.escape(stream), startingOffsets="earliest")
    query.begin()
    query.batch()
    client.must("delete_stream", m.DeleteStream(f"{stream}-b"))

    with pytest.raises(DataLoss, match=r"-b': nothing from 5 on: the stream does not exist"):
        query.batch()
    query.restart(failOnDataLoss="false")
    assert query.batch() == []
    assert query.offsets() == {f"{stream}-a": 5}
    assert "the stream does not exist any more" in caplog.text


# ---- incarnations ----------------------------------------------------------------------------


def test_a_stream_made_again_is_a_loss_however_many_rows_it_has(
    hutch: HutchServer, client: Client, stream: str, caplog: pytest.LogCaptureFixture
) -> None:
    publish(client, stream, [b"old"] * 10)
    query = Query(hutch, stream=stream, startingOffsets="earliest")
    query.begin()
    query.batch()
    make_again(client, stream, 25)

    with pytest.raises(DataLoss) as caught:
        query.batch()
    assert str(caught.value) == (
        f"stream {stream!r}: nothing from 10 on: the stream was deleted and made again, and begins "
        "anew at offset 0. Set failOnDataLoss to false to go on without them."
    )
    query.restart(failOnDataLoss="false")
    assert ranges(query.batch()) == [(stream, 0, 25)]
    assert "deleted and made again, and begins anew at offset 0" in caplog.text
    caplog.clear()
    assert query.batch() == []
    assert not caplog.records, "it is told once"


def test_a_position_without_incarnations_goes_on_and_gets_them(
    hutch: HutchServer, client: Client, stream: str
) -> None:
    publish(client, stream, [b"row"] * 10)
    query = Query(hutch, stream=stream)
    query.end = {stream: StreamPlace(4)}

    assert ranges(query.batch()) == [(stream, 4, 10)]
    assert query.end[stream].incarnation is not None


def test_a_batch_that_runs_again_after_its_stream_was_made_again_is_a_loss(
    hutch: HutchServer, client: Client, stream: str
) -> None:
    publish(client, stream, [b"old"] * 10)
    query = Query(hutch, stream=stream, startingOffsets="earliest")
    query.begin()
    start = query.end
    query.batch()
    make_again(client, stream, 10)

    query.restart()
    with pytest.raises(DataLoss, match="deleted and made again"):
        query._planner.splits(start, query.end)
    query.restart(failOnDataLoss="false")
    assert query._planner.splits(start, query.end) == []
    assert ranges(query.batch()) == [(stream, 0, 10)]


# ---- retention -------------------------------------------------------------------------------


def grow(client: Client, stream: str, count: int) -> None:
    """Append rows of 1,000 bytes, each in a chunk of its own."""
    append(client, stream, [bytes(1_000)] * count, at_once=1)


def eventually_begins_behind(server: HutchServer, stream: str, offset: int) -> None:
    wait_until(lambda: first_of(server, stream) > offset)


def test_retention_deletes_what_is_not_planned_and_keeps_what_a_running_batch_has_planned(
    hutch: HutchServer, client: Client, stream: str
) -> None:
    planned, other = f"{stream}-planned", f"{stream}-other"
    for name in (planned, other):
        client.must("create_stream", m.CreateStream(name, LIMITS))
        grow(client, name, 15)
    query = Query(hutch, stream=planned, startingOffsets="earliest", minPartitions="3")
    query.begin()
    splits = query.batch()

    for name in (planned, other):
        grow(client, name, 40)
    eventually_begins_behind(hutch, other, 15)

    assert first_of(hutch, planned) == 0
    assert len(splits) == 3
    assert [offset for split in splits for offset in read(hutch, split)] == list(range(15))
    query.batch()
    eventually_begins_behind(hutch, planned, 10)


@pytest.fixture
def planned(client: Client, hutch: HutchServer, stream: str) -> Split:
    """Give a planned range of 20 rows."""
    publish(client, stream, [bytes(1_000)] * 20, at_once=1)
    (split,) = batch(hutch, stream=stream)
    return split


def test_a_planned_range_that_is_truncated_is_a_loss_with_its_reason(
    hutch: HutchServer, planned: Split
) -> None:
    stream = planned.place.stream
    ctl(hutch, "truncate_stream", stream, "--before-offset", "8")

    with pytest.raises(DataLoss) as caught:
        read(hutch, planned)
    assert str(caught.value) == (
        f"stream {stream!r}: offsets 0 to 7 are lost: the stream begins at offset 8: they were "
        "planned, so that retention leaves them for 10 minutes; hutch ctl truncate_stream removes "
        "them all the same, and so does a full disk. Set failOnDataLoss to false to go on without "
        "them."
    )
    assert read(hutch, planned, fails_on_loss=False) == list(range(8, 20))


def test_a_planned_stream_that_is_deleted_or_made_again_is_a_loss_with_its_reason(
    hutch: HutchServer, planned: Split, client: Client
) -> None:
    stream = planned.place.stream
    client.must("delete_stream", m.DeleteStream(stream))
    with pytest.raises(DataLoss, match="offsets 0 to 19 are lost: the stream does not exist any"):
        read(hutch, planned)

    publish(client, stream, [b"new"] * 30)
    with pytest.raises(DataLoss, match="0 to 19 are lost: the stream was deleted and made again"):
        read(hutch, planned)
    assert read(hutch, planned, fails_on_loss=False) == []


def test_a_plan_that_ended_with_the_server_is_told_as_the_reason_of_a_loss(
    start_server: StartServer, stream: str
) -> None:
    server = start_server("--durability", "os", environment=EACH_SECOND)
    with Client.opened(*server.endpoint) as client:
        client.must("create_stream", m.CreateStream(stream, LIMITS))
        grow(client, stream, 15)
        (split,) = batch(server, stream=stream)
        grow(client, stream, 40)
    server.terminate()
    server.start()
    eventually_begins_behind(server, stream, 0)

    reason = "retention, since the server was started again, which ended the plan of the read"
    with pytest.raises(DataLoss, match=reason):
        read(server, split)


def test_a_plan_that_is_refused_is_a_warning_and_splits_go_by_rows(
    start_server: StartServer, stream: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = start_server("--durability", "os")
    with Client.opened(*server.endpoint) as client:
        publish(client, stream, [bytes(100)] * 1_000, at_once=10)
    POOL.close()
    for number in range(100):  # plans of as many connections, which are gone
        batch(server, stream=stream, startingOffsets=f"-{number + 1}")
        POOL.close()
    with caplog.at_level(logging.WARNING):
        found = batch(server, stream=stream, minPartitions="4", maxBytesPerPartition="40k")

    assert [low for _, low, _ in ranges(found)] == [0, 250, 500, 750]
    assert "refuses a plan" in caplog.text
    assert "has 100 plans that keep records already" in caplog.text
    assert found[0].kept_by is None
