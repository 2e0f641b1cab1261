"""LocateOffset: from each answer an event can be read."""

import random
from pathlib import Path

from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from tests.pravega_client import WireClient, end, event
from tests.pravega_rig import serving

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
