"""Reads over the wire, at once and at the tail."""

import pytest

from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from tests.pravega_client import WireClient, end
from tests.pravega_rig import WireServer
from tests.waiting import wait_until


@pytest.fixture
def written(client: WireClient) -> WireClient:
    """A client with the segment `s`, which holds ten bytes."""
    client.create("s")
    client.set_up("s")
    client.append(1, b"0123456789")
    return client


def test_a_read_begins_at_its_offset(written: WireClient) -> None:
    read = written.read("s", 4)
    assert (read.offset, read.data, read.end_of_segment) == (4, b"456789", False)


@pytest.mark.parametrize(("asked", "given"), [(1, 8), (-5, 8), (9, 9), (100, 10)])
def test_a_read_has_at_least_eight_bytes(written: WireClient, asked: int, given: int) -> None:
    assert len(written.read("s", 0, asked).data) == given


def test_a_read_has_at_most_two_mebibytes(written: WireClient) -> None:
    written.append(2, bytes(5 << 20))
    assert len(written.read("s", 0, 50_000_000).data) <= 2 << 20


@pytest.mark.parametrize("offset", [10, 13])
def test_a_read_at_or_behind_the_tail_waits_and_holds_up_nothing(
    written: WireClient, offset: int
) -> None:
    written.send(m.ReadSegment("s", offset, 100, "", 6), m.KeepAlive())
    written.must(m.KeepAlive)
    written.send(end(2, b"abcdef"))
    answers = [written.receive(), written.receive()]
    [read] = [each for each in answers if isinstance(each, m.SegmentRead)]
    assert (read.offset, read.data, read.request_id) == (offset, b"abcdef"[offset - 10 :], 6)


def test_a_waiting_read_is_told_of_the_seal(written: WireClient, server: WireServer) -> None:
    for offset in (10, 15):
        written.send(m.ReadSegment("s", offset, 100, "", offset))
    written.ask(m.KeepAlive(), m.KeepAlive)
    with server.client() as other:
        other.ask(m.SealSegment(1, "s", ""), m.SegmentSealed)
    refusals = [written.must(e.SegmentIsSealed) for _ in range(2)]
    assert sorted((each.request_id, each.offset) for each in refusals) == [(10, 10), (15, 15)]


def test_a_waiting_read_is_told_of_truncation_and_deletion(written: WireClient) -> None:
    written.send(m.ReadSegment("s", 12, 100, "", 6), m.DeleteSegment(1, "s", ""))
    assert {type(written.receive()), type(written.receive())} == {
        e.NoSuchSegment,
        m.SegmentDeleted,
    }


def test_a_read_that_reaches_the_end_of_a_sealed_segment_says_so(written: WireClient) -> None:
    written.ask(m.SealSegment(1, "s", ""), m.SegmentSealed)
    assert (written.read("s").data, written.read("s").end_of_segment) == (b"0123456789", True)
    last = written.read("s", 10)
    assert (last.data, last.end_of_segment) == (b"", True)


def test_a_read_before_the_start_names_the_start(written: WireClient) -> None:
    written.ask(m.TruncateSegment(5, "s", 4, ""), m.SegmentTruncated)
    refused = written.ask(m.ReadSegment("s", 2, 100, "", 6), e.SegmentIsTruncated)
    assert (refused.start_offset, refused.offset) == (4, 2)


def test_a_read_of_what_can_never_be_there_is_refused_and_ends_the_connection(
    written: WireClient, server: WireServer
) -> None:
    written.ask(m.SealSegment(1, "s", ""), m.SegmentSealed)
    for offset in (-1, 11):
        with server.client() as client:
            refused = client.ask(m.ReadSegment("s", offset, 100, "", 6), e.ErrorMessage)
            assert refused.error_code == 0
            assert client.is_ended()


def test_waiting_reads_end_with_their_connection(server: WireServer, written: WireClient) -> None:
    with server.client() as other:
        other.send(m.ReadSegment("s", 10, 100, "", 6), m.KeepAlive())
        other.must(m.KeepAlive)
    wait_until(lambda: len(server.listener.connections) == 1)
    assert written.append(2, b"more").current_segment_write_offset == 14
