import time
from collections.abc import Iterator

import pytest

from hutch.client.errors import BadAnswer, ClientError, Refused, ServerGone
from hutch.client.login import Endpoint
from hutch.stream import messages as m
from hutch.stream.codec import Decoded
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import at_offset
from pyspark_hutch.client.cluster import Bounds, Cluster
from pyspark_hutch.options.connection_settings import BrokerSettings
from tests.fake_server import FakeServer, Talk, chunks
from tests.reading_rig import NAME, cluster_of, settings_of


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        fake.streams = {"a": chunks(2, 3), "b": chunks(4, first=10), "empty": []}
        yield fake


def where(server: FakeServer) -> Endpoint:
    return Endpoint(server.host, server.port)


def test_streams_are_found_at_the_leader_that_metadata_names(server: FakeServer) -> None:
    def elsewhere(talk: Talk, asked: Decoded) -> None:
        found = (m.StreamMetadata("a", 1, 7, ()),)
        talk.reply(asked, m.MetadataReply((m.Broker(7, "elsewhere", 1234),), found))

    server.handlers["metadata"] = elsewhere

    assert cluster_of(server).leaders(["a"]) == {"a": Endpoint("elsewhere", 1234)}
    assert cluster_of(server, advertised=False).leaders(["a"]) == {"a": where(server)}


def test_many_streams_are_found_in_few_round_trips(server: FakeServer) -> None:
    server.streams = {f"s{number}": chunks(1) for number in range(1_000)}
    cluster = cluster_of(server)

    leaders = cluster.leaders(list(server.streams))
    bounds = cluster.bounds(leaders)
    places = cluster.resolve(leaders, [(stream, at_offset(0)) for stream in leaders])

    assert list(leaders) == list(server.streams)
    assert set(bounds.values()) == {Bounds(0, 1)}
    assert places == [0] * 1_000
    assert server.count("metadata") == 2
    assert server.reads < 120


def test_a_missing_stream_is_refused_by_name_or_left_out(server: FakeServer) -> None:
    with pytest.raises(Refused, match="stream 'none' does not exist"):
        cluster_of(server).leaders(["a", "none"])

    assert list(cluster_of(server).leaders(["a", "none"], skips_missing=True)) == ["a"]


def test_streams_that_were_not_asked_for_are_not_told(server: FakeServer) -> None:
    def more(talk: Talk, asked: Decoded) -> None:
        found = tuple(m.StreamMetadata(name, 1, 0, ()) for name in ("x", "a"))
        talk.reply(asked, m.MetadataReply((m.Broker(0, "h", 1),), found))

    server.handlers["metadata"] = more

    assert cluster_of(server).leaders(["a"]) == {"a": Endpoint("h", 1)}
    with pytest.raises(BadAnswer, match="no answer says where stream 'b' lives"):
        cluster_of(server).leaders(["a", "b"])


def test_a_stream_without_a_leader_is_asked_for_again(server: FakeServer) -> None:
    good, tries = server.handlers["metadata"], []

    def late(talk: Talk, asked: Decoded) -> None:
        tries.append(1)
        if len(tries) > 2:
            good(talk, asked)
            return
        code = 1 if len(tries) == 1 else ResponseCode.STREAM_NOT_AVAILABLE
        found = (m.StreamMetadata("a", code, 0xFFFF, ()),)
        talk.reply(asked, m.MetadataReply((), found))

    server.handlers["metadata"] = late

    assert cluster_of(server).leaders(["a"]) == {"a": where(server)}


def test_bounds_are_the_first_offset_and_the_one_behind_the_last(server: FakeServer) -> None:
    cluster = cluster_of(server)

    assert cluster.bounds(cluster.leaders(["a", "b", "empty"])) == {
        "a": Bounds(0, 5),
        "b": Bounds(10, 14),
        "empty": Bounds(0, 0),
    }


def test_a_broker_whose_statistics_lack_the_committed_offset_is_refused_in_one_line(
    server: FakeServer,
) -> None:
    old = m.StreamStatsReply(1, {"first_chunk_id": 0, "committed_chunk_id": 3})
    server.handlers["stream_stats"] = lambda talk, asked: talk.reply(asked, old)

    with pytest.raises(ClientError, match="statistics lack committed_offset") as caught:
        cluster_of(server).bounds({"a": where(server)})

    assert "stream 'a'" in str(caught.value)
    assert "RabbitMQ has it from 4.3 on" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("numbers", [(-5, 0), (3, 9), (-(1 << 62), -1)])
def test_bounds_that_cannot_be_are_not_believed(
    server: FakeServer, numbers: tuple[int, int]
) -> None:
    last, first = numbers
    wrong = m.StreamStatsReply(1, {"committed_offset": last, "first_chunk_id": first})
    server.handlers["stream_stats"] = lambda talk, asked: talk.reply(asked, wrong)

    with pytest.raises(ServerGone, match="stream 'a' ends before it begins"):
        cluster_of(server, planner_retries=0).bounds({"a": where(server)})


def test_an_answer_of_another_kind_is_refused(server: FakeServer) -> None:
    server.handlers["stream_stats"] = lambda talk, asked: talk.send(
        b"\0\0\0\x0a\x80\x0c\0\1" + (asked.correlation_id or 0).to_bytes(4) + b"\0\1"
    )

    with pytest.raises(BadAnswer, match="stream 'a': statistics were answered with Status"):
        cluster_of(server).bounds({"a": where(server)})


def test_partitions_come_in_their_order(server: FakeServer) -> None:
    server.super_streams["p"] = ("p-1", "p-0", "p-2")

    assert cluster_of(server).partitions("p") == ("p-1", "p-0", "p-2")
    with pytest.raises(Refused, match="super stream 'q' does not exist"):
        cluster_of(server).partitions("q")


def test_the_next_endpoint_is_taken_where_the_first_is_away(server: FakeServer) -> None:
    with FakeServer() as away:
        gone = where(away)
    settings = BrokerSettings((gone, where(server)))

    assert Cluster(settings, NAME).leaders(["a"]) == {"a": where(server)}


def test_all_endpoints_are_named_where_all_are_away() -> None:
    with FakeServer() as one, FakeServer() as other:
        settings = BrokerSettings((where(one), where(other)))

    with pytest.raises(ServerGone) as caught:
        Cluster(settings, NAME).leaders(["a"])

    assert f":{one.port}" in str(caught.value)
    assert f":{other.port}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_lost_connection_is_made_anew_with_one_line_for_each_try(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    good, tries = server.handlers["stream_stats"], []

    def cuts(talk: Talk, asked: Decoded) -> None:
        tries.append(1)
        if len(tries) <= 2:
            server.cut()
        else:
            good(talk, asked)

    server.handlers["stream_stats"] = cuts

    assert cluster_of(server).bounds({"a": where(server)}) == {"a": Bounds(0, 5)}
    assert len(caplog.records) == 2
    assert "another try in 0.1 s" in caplog.text


def test_tries_are_bounded_and_a_server_never_seen_gets_one(server: FakeServer) -> None:
    server.go()
    begun = time.monotonic()
    with pytest.raises(ServerGone):
        Cluster(settings_of(server, planner_retry_interval_ms=60_000), NAME).leaders(["a"])
    assert time.monotonic() - begun < 20

    with pytest.raises(ServerGone):
        cluster_of(server, planner_retry_interval_ms=10).leaders(["a"])


def test_pauses_double_and_end(server: FakeServer) -> None:
    cluster = cluster_of(server, planner_retries=8, planner_retry_interval_ms=1_000)

    assert list(cluster.pauses()) == [1, 2, 4, 8, 16, 30, 30, 30]
