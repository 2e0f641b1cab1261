"""Streams as such: create, delete, describe."""

import pytest

from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST, LAST, NEXT, OffsetSpec, OffsetType, at_offset
from tests.chunks import SubBatch
from tests.unit.gateway.stream.link_rig import LinkRig

OK = ResponseCode.OK
UNKNOWN = ResponseCode.STREAM_DOES_NOT_EXIST
PRECONDITION = ResponseCode.PRECONDITION_FAILED


def create(client: LinkRig, name: str, **arguments: str) -> int:
    named = {key.replace("_", "-"): value for key, value in arguments.items()}
    return client.code("create_stream", m.CreateStream(name, named))


def metadata(client: LinkRig, *names: str) -> m.MetadataReply:
    return client.ask(m.MetadataReply, "metadata", m.Metadata(names))


def statistics(client: LinkRig) -> dict[str, int]:
    answer = client.ask(m.StreamStatsReply, "stream_stats", m.StreamStats("s"))
    assert answer.code == OK
    return dict(answer.statistics)


def resolve(client: LinkRig, offset: OffsetSpec) -> int:
    request = m.ResolveOffsetSpec("s", offset, {})
    answer = client.ask(m.ResolvedOffset, "resolve_offset_spec", request)
    assert answer.code == OK
    return answer.offset


# Create and delete


@pytest.mark.parametrize("name", ["a", "é" * 100, "x" * 255, "x" * 10_000, " ", "/", "\udcff"])
def test_a_stream_is_created_under_any_name(client: LinkRig, name: str) -> None:
    assert create(client, name) == OK
    assert create(client, name) == ResponseCode.STREAM_ALREADY_EXISTS
    assert metadata(client, name).streams == (m.StreamMetadata(name, OK, 0, ()),)


@pytest.mark.parametrize("name", ["", "\r\n", "amq.anything"])
def test_names_that_are_empty_or_reserved_are_refused(client: LinkRig, name: str) -> None:
    assert create(client, name) == PRECONDITION


def test_line_ends_are_taken_out_of_a_name(client: LinkRig) -> None:
    assert create(client, "a\r\nb\n") == OK

    assert create(client, "ab") == ResponseCode.STREAM_ALREADY_EXISTS


def test_a_stream_that_exists_with_other_arguments_is_another_code(client: LinkRig) -> None:
    assert create(client, "t", max_length_bytes="1000000") == OK

    assert create(client, "t", max_length_bytes="1000000") == ResponseCode.STREAM_ALREADY_EXISTS
    assert create(client, "t", max_length_bytes="2000000") == PRECONDITION
    assert create(client, "t") == PRECONDITION


def test_a_stream_is_deleted_once(client: LinkRig) -> None:
    assert client.code("delete_stream", m.DeleteStream("s")) == OK

    assert client.code("delete_stream", m.DeleteStream("s")) == UNKNOWN
    assert metadata(client, "s").streams[0].code == UNKNOWN


def test_a_stream_created_again_is_a_new_one(client: LinkRig) -> None:
    client.declare(1, "s", "ref")
    client.publish(1, (5, b"old"))
    client.broker.settle("s")
    client.tell("delete_stream", m.DeleteStream("s"))
    client.create("s")

    client.declare(1, "s", "ref")
    client.publish(1, (1, b"new"))
    client.broker.settle("s")

    assert statistics(client)["committed_offset"] == 0
    assert client.take("publish_confirm")[-1].publishing_ids == (1,)


def test_two_connections_that_create_the_same_stream_at_once_get_one_of_it(
    client: LinkRig,
) -> None:
    other = client.broker.link()
    started = [each.start("create_stream", m.CreateStream("t", {})) for each in (client, other)]
    for each, done in zip((client, other), started, strict=True):
        each.finish(done)

    codes = [each.answer_to("create_stream") for each in (client, other)]
    assert codes == [m.Status(OK), m.Status(ResponseCode.STREAM_ALREADY_EXISTS)]


def test_a_deletion_and_a_creation_at_once_go_one_after_the_other(client: LinkRig) -> None:
    other = client.broker.link()
    deleted = client.start("delete_stream", m.DeleteStream("s"))
    created = other.start("create_stream", m.CreateStream("s", {}))
    client.finish(deleted)
    other.finish(created)

    assert other.answer_to("create_stream") == m.Status(OK)
    assert metadata(client, "s").streams[0].code == OK


# Metadata


def test_metadata_tells_known_streams_from_unknown_ones(client: LinkRig) -> None:
    client.create("t")

    answer = metadata(client, "s", "nowhere", "t", "s")

    assert answer.brokers == (m.Broker(0, "localhost", 5552),)
    assert {each.stream: (each.code, each.leader) for each in answer.streams} == {
        "s": (OK, 0),
        "t": (OK, 0),
        "nowhere": (UNKNOWN, 0xFFFF),
    }
    assert len(answer.streams) == 3


@pytest.mark.parametrize("names", [(), ("nowhere",)])
def test_metadata_names_no_broker_where_no_stream_is_known(
    client: LinkRig, names: tuple[str, ...]
) -> None:
    answer = metadata(client, *names)

    assert answer.brokers == ()
    assert len(answer.streams) == len(names)


# Statistics and places


def test_statistics_of_an_empty_stream_are_minus_one(client: LinkRig) -> None:
    assert set(statistics(client).values()) == {-1}


def test_statistics_say_where_a_stream_begins_and_ends(client: LinkRig) -> None:
    client.declare(1, "s")
    for _ in range(3):
        client.publish(1, (1, SubBatch.of([b"a", b"b"])))
        client.broker.settle("s")

    assert statistics(client) == {
        "first_chunk_id": 0,
        "last_chunk_id": 4,
        "committed_chunk_id": 4,
        "committed_offset": 5,
    }


@pytest.mark.parametrize(
    ("name", "message", "reply"),
    [
        ("stream_stats", m.StreamStats("nowhere"), m.StreamStatsReply(UNKNOWN, {})),
        (
            "resolve_offset_spec",
            m.ResolveOffsetSpec("nowhere", FIRST, {}),
            m.ResolvedOffset(UNKNOWN, 0),
        ),
    ],
)
def test_an_unknown_stream_has_neither_statistics_nor_places(
    client: LinkRig, name: str, message: m.Message, reply: m.Message
) -> None:
    assert client.request(name, message) == reply


def test_a_specification_is_resolved_to_the_chunk_where_reading_would_start(
    client: LinkRig,
) -> None:
    assert {resolve(client, each) for each in (FIRST, LAST, NEXT, at_offset(9))} == {0}
    client.declare(1, "s")
    for _ in range(3):
        client.publish(1, (1, SubBatch.of([b"a", b"b"])))
        client.broker.settle("s")

    assert resolve(client, FIRST) == 0
    assert resolve(client, LAST) == 4
    assert resolve(client, NEXT) == 6
    assert resolve(client, at_offset(3)) == 2
    assert resolve(client, at_offset(2**64 - 1)) == 6
    assert resolve(client, OffsetSpec(OffsetType.TIMESTAMP, 2**62)) == 6


def test_while_draining_a_stream_is_there_without_a_leader(client: LinkRig) -> None:
    client.broker.service.drain()

    answer = metadata(client, "s", "none")

    assert answer.brokers == ()
    assert set(answer.streams) == {
        m.StreamMetadata("s", OK, 0xFFFF, ()),
        m.StreamMetadata("none", UNKNOWN, 0xFFFF, ()),
    }
    client.broker.service.revive()
    assert metadata(client, "s").streams == (m.StreamMetadata("s", OK, 0, ()),)
