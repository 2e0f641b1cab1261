"""Reads over a socket: at once, at the tail, and in several replies."""

import select
from pathlib import Path

import pytest

from gateway.settings.wire import WireSettings
from hutch.pravega import early_messages as m
from hutch.pravega import messages as today
from tests.early_rig import SEGMENT, EarlyClient, EarlyServer, block, serving_early, stored

LARGE = bytes(5 << 20)


@pytest.fixture
def written(client: EarlyClient) -> EarlyClient:
    """A client with an appender on the segment, which holds one event of three bytes."""
    client.set_up()
    client.append(0, b"abc")
    return client


def seal(server: EarlyServer) -> None:
    with server.client() as client:
        client.ask(today.SealSegment(1, SEGMENT, ""), today.SegmentSealed)


def test_a_read_begins_at_its_offset_and_says_that_it_reached_the_tail(
    written: EarlyClient,
) -> None:
    read = written.read(SEGMENT, 8)

    assert (read.segment, read.offset, read.data) == (SEGMENT, 8, b"abc")
    assert (read.at_tail, read.end_of_segment) == (True, False)


def test_a_read_has_no_more_than_it_suggests_but_for_eight_bytes(written: EarlyClient) -> None:
    assert len(written.read(SEGMENT, 0, 9).data) == 9
    assert len(written.read(SEGMENT, 0, 1).data) == 8
    assert len(written.read(SEGMENT, 0, -5).data) == 8


def test_a_long_read_has_as_many_replies_as_it_takes(written: EarlyClient) -> None:
    written.append(11, LARGE)
    size = 11 + 8 + len(LARGE)

    for asked in (2**31 - 1, size, size - 1_000):
        written.send(m.ReadSegment(SEGMENT, 0, asked), m.KeepAlive(b"next"))
        found, replies = 0, 0
        while found < min(asked, size):
            message = written.receive()
            if isinstance(message, m.SegmentRead):
                assert message.offset == found
                assert message.at_tail == (found + len(message.data) == size)
                found, replies = found + len(message.data), replies + 1
        assert (found, replies > 2) == (min(asked, size), True)


def test_a_read_at_the_tail_waits_and_holds_up_nothing(written: EarlyClient) -> None:
    written.send(m.ReadSegment(SEGMENT, 11, 1_000), m.ReadSegment(SEGMENT, 22, 1_000))
    written.ask(m.KeepAlive(b""), m.KeepAlive)

    written.send(*block(11, b"one"))
    first = [written.receive(), written.receive()]
    written.send(*block(22, b"two"))
    second = [written.receive(), written.receive()]

    reads = [each for each in first + second if isinstance(each, m.SegmentRead)]
    assert [(each.offset, each.data) for each in reads] == [
        (11, stored(b"one")),
        (22, stored(b"two")),
    ]


def test_a_waiting_read_is_told_of_the_end_of_the_segment(
    server: EarlyServer, written: EarlyClient
) -> None:
    written.send(m.ReadSegment(SEGMENT, 11, 100))
    written.ask(m.KeepAlive(b""), m.KeepAlive)

    seal(server)

    assert written.must(m.SegmentRead) == m.SegmentRead(
        SEGMENT, 11, at_tail=True, end_of_segment=True, data=b""
    )
    assert written.read().end_of_segment


@pytest.mark.parametrize(
    ("segment", "offset"), [("missing", 0), (SEGMENT, -1), (SEGMENT, 99), (SEGMENT, 2)]
)
def test_what_can_never_be_read_closes(
    server: EarlyServer, written: EarlyClient, segment: str, offset: int
) -> None:
    with server.client() as client:
        client.ask(today.TruncateSegment(5, SEGMENT, 4, ""), today.SegmentTruncated)
    seal(server)

    written.send(m.ReadSegment(segment, offset, 100))

    assert written.is_ended()
    assert any("connection closed" in line for line in server.lines)


def test_a_segment_that_is_deleted_ends_the_connections_that_wait_for_it(
    server: EarlyServer, written: EarlyClient
) -> None:
    written.send(m.ReadSegment(SEGMENT, 11, 100))
    written.ask(m.KeepAlive(b""), m.KeepAlive)

    with server.client() as client:
        client.ask(today.DeleteSegment(1, SEGMENT, ""), today.SegmentDeleted)

    assert written.is_ended()


def test_with_too_many_reads_a_client_is_not_read_until_one_is_answered(tmp_path: Path) -> None:
    with (
        serving_early(tmp_path, wire=WireSettings(reads_max=3)) as server,
        server.early_client() as client,
        server.early_client() as other,
    ):
        client.set_up()
        client.send(*[m.ReadSegment(SEGMENT, 0, 100)] * 3, m.KeepAlive(b"last"))
        other.set_up()
        assert select.select([client.socket], [], [], 0)[0] == []
        other.append(0, b"abc")
        kinds = [type(client.receive()) for _ in range(4)]

    assert (kinds.count(m.SegmentRead), kinds.count(m.KeepAlive)) == (3, 1)


def test_reads_of_a_connection_that_ends_are_given_up(
    server: EarlyServer, written: EarlyClient
) -> None:
    with server.early_client() as reader:
        reader.send(*[m.ReadSegment(SEGMENT, 11, 100)] * 50)
        reader.ask(m.KeepAlive(b""), m.KeepAlive)

    assert written.append(11, b"more") == 23
    assert written.ask(m.KeepAlive(b"x"), m.KeepAlive) == m.KeepAlive(b"x")
    assert server.lines == []
