from collections.abc import Iterator

import pytest

from hutch.client.errors import Refused
from hutch.stream import messages as m
from hutch.stream.codec import Decoded
from hutch.stream.codes import ResponseCode
from pyspark_hutch.sink.targets import Targets, prepare, routes
from tests.fake_server import OK, Talk
from tests.reading_rig import cluster_of
from tests.sink_rig import FakeSink, settings_for


@pytest.fixture
def server() -> Iterator[FakeSink]:
    with FakeSink("a") as fake:
        fake.super_streams = {"s": ("s-0", "s-1"), "none": ()}
        yield fake


def prepared(server: FakeSink, **options: object) -> Targets:
    return prepare(cluster_of(server), settings_for(server, **options))


def creating(server: FakeSink, code: int = OK) -> list[m.Message]:
    """Let the server make what is asked of it; give what that was."""
    asked_for: list[m.Message] = []

    def create(talk: Talk, asked: Decoded) -> None:
        asked_for.append(asked.message)
        if isinstance(asked.message, m.CreateStream):
            server.streams[asked.message.stream] = []
        if isinstance(asked.message, m.CreateSuperStream):
            server.super_streams[asked.message.super_stream] = asked.message.partitions
        talk.reply(asked, m.Status(code))

    server.handlers |= {"create_stream": create, "create_super_stream": create}
    return asked_for


def test_a_stream_is_a_target(server: FakeSink) -> None:
    assert prepared(server, stream="a") == Targets(stream="a")


def test_a_super_stream_has_its_partitions_in_their_order(server: FakeSink) -> None:
    assert prepared(server, superStream="s") == Targets(super_stream="s", partitions=("s-0", "s-1"))


def test_without_a_target_each_row_names_its_stream(server: FakeSink) -> None:
    assert prepared(server) == Targets()
    assert not server.talks


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stream": "b"}, "^stream 'b' does not exist$"),
        ({"superStream": "b"}, "^super stream 'b' does not exist$"),
        ({"superStream": "none"}, "^super stream 'none' has no partitions$"),
    ],
)
def test_a_target_that_is_not_there_is_named(
    server: FakeSink, options: dict[str, str], said: str
) -> None:
    with pytest.raises(Refused, match=said):
        prepared(server, **options)


def test_a_stream_is_made_with_its_retention(server: FakeSink) -> None:
    asked_for = creating(server)
    retention = {"retention.maxBytes": "1000000", "retention.maxAge": "1h"}

    assert prepared(server, stream="b", createStream="true", **retention) == Targets(stream="b")

    arguments = {"max-length-bytes": "1000000", "max-age": "3600s"}
    assert asked_for == [m.CreateStream("b", arguments)]


def test_a_super_stream_is_made_with_partitions_that_are_bound_to_their_numbers(
    server: FakeSink,
) -> None:
    asked_for = creating(server)

    found = prepared(server, superStream="b", createStream="true", partitions="2")

    assert found == Targets(super_stream="b", partitions=("b-0", "b-1"))
    assert asked_for == [m.CreateSuperStream("b", ("b-0", "b-1"), ("0", "1"), {})]


def test_a_stream_that_exists_is_taken_as_it_is(server: FakeSink) -> None:
    creating(server, ResponseCode.STREAM_ALREADY_EXISTS)

    assert prepared(server, stream="a", createStream="true") == Targets(stream="a")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (ResponseCode.PRECONDITION_FAILED, "^stream 'b' exists with other settings, or"),
        (ResponseCode.ACCESS_REFUSED, "^stream 'b' cannot be created: it .*access refused"),
    ],
)
def test_a_stream_that_cannot_be_made_is_named(server: FakeSink, code: int, said: str) -> None:
    creating(server, code)

    with pytest.raises(Refused, match=said):
        prepared(server, stream="b", createStream="true")


def test_routes_are_asked_for_many_keys_at_once(server: FakeSink) -> None:
    def route(talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.Route)
        streams = {"x": ("s-0",), "y": ("s-0", "s-1")}.get(asked.message.routing_key, ())
        talk.reply(asked, m.StreamsReply(OK, streams))

    server.handlers["route"] = route

    found = routes(cluster_of(server), "s", ["x", "y", "z"])

    assert found == {"x": ("s-0",), "y": ("s-0", "s-1"), "z": ()}


def test_routes_of_a_missing_super_stream_name_it(server: FakeSink) -> None:
    server.handlers["route"] = lambda talk, asked: talk.reply(
        asked, m.StreamsReply(ResponseCode.STREAM_DOES_NOT_EXIST, ())
    )

    with pytest.raises(Refused, match=r"^super stream 'gone' does not exist$"):
        routes(cluster_of(server), "gone", ["x"])
