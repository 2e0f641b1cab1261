"""Reads over the wire, at once and at the tail."""

import random
from pathlib import Path

import pytest

from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from tests.pravega_client import WireClient, end, event
from tests.pravega_rig import WireServer, serving
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


MIB = 1 << 20


def locate(client: WireClient, target: int) -> int:
    answer = client.ask(m.LocateOffset(9, "s", target, ""), m.OffsetLocated)
    assert (answer.request_id, answer.segment) == (9, "s")
    return answer.offset


def write_events(client: WireClient, sizes: list[int]) -> list[int]:
    """Append events, a hundred in an append; return where each begins."""
    begins, position = [], 0
    for first in range(0, len(sizes), 100):
        events = [event(bytes([size % 256]) * size) for size in sizes[first : first + 100]]
        for each in events:
            begins.append(position)
            position += len(each)
        client.send(end(first, b"".join(events), count=len(events)))
        client.must(m.DataAppended)
    return begins


def test_the_answer_is_the_beginning_of_the_event_that_holds_the_offset(
    client: WireClient,
) -> None:
    client.create("s")
    client.set_up("s")
    chosen = random.Random(5)
    begins = write_events(client, [chosen.choice((0, 10, 5_000, 20_000)) for _ in range(1_000)])
    length = client.ask(m.GetStreamSegmentInfo(7, "s", ""), m.StreamSegmentInfo).write_offset
    assert length > 4 * MIB
    for target in (chosen.randrange(1, length) for _ in range(50)):
        offset = locate(client, target)
        assert offset == max(begin for begin in begins if begin <= target)
        assert client.read("s", offset, 8).data[:4] == bytes(4)


def test_the_ends_of_a_segment_are_answered_by_themselves(client: WireClient) -> None:
    client.create("s")
    assert locate(client, 0) == 0
    assert locate(client, 100) == 0
    client.set_up("s")
    write_events(client, [10] * 100)
    assert locate(client, -5) == 0
    assert locate(client, 1_800) == 1_800
    assert locate(client, 5_000) == 1_800
    client.ask(m.TruncateSegment(5, "s", 180, ""), m.SegmentTruncated)
    assert locate(client, 20) == 180
    assert locate(client, 200) == 198


def test_bytes_that_are_no_events_are_passed_to_a_noted_append(client: WireClient) -> None:
    client.create("s")
    client.set_up("s")
    for number in range(40):
        client.append(number, b"x" * 100_000)
    offset = locate(client, 3_500_000)
    assert offset % 100_000 == 0
    assert 3_500_000 - MIB <= offset <= 3_500_000


def test_what_an_earlier_run_wrote_may_be_answered_by_the_start(tmp_path: Path) -> None:
    with serving(tmp_path) as server, server.client() as client:
        client.create("s")
        client.set_up("s")
        for number in range(5):
            client.append(number, b"x" * MIB)
    with serving(tmp_path) as server, server.client() as client:
        assert locate(client, 3 * MIB) == 0


def test_a_segment_that_is_made_again_is_not_taken_for_the_one_before(client: WireClient) -> None:
    client.create("s")
    client.set_up("s")
    for number in range(5):
        client.append(number, b"x" * MIB)
    client.ask(m.DeleteSegment(1, "s", ""), m.SegmentDeleted)
    client.create("s")
    client.set_up("s")
    begins = write_events(client, [10_001] * 400)
    offset = locate(client, 3 * MIB)
    assert offset in begins
    assert 0 <= 3 * MIB - offset <= MIB


def test_a_segment_that_is_not_there_is_said_so(client: WireClient) -> None:
    refused = client.ask(m.LocateOffset(9, "s", 5, ""), e.NoSuchSegment)
    assert (refused.request_id, refused.offset) == (9, 5)
