"""Set-ups and appends over the wire."""

from uuid import UUID

from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from tests.pravega_client import WRITER, WireClient, end
from tests.pravega_rig import WireServer

OTHER = UUID(int=99)


def test_a_set_up_tells_the_last_number_of_the_writer(client: WireClient) -> None:
    client.create("s")
    assert client.set_up("s").last_event_number == m.ABSENT
    client.append(5, b"five")
    assert client.set_up("s").last_event_number == 5


def test_an_acknowledgement_tells_the_one_before_and_the_length(client: WireClient) -> None:
    client.create("s")
    client.set_up("s")
    assert client.append(1, b"a") == m.DataAppended(WRITER, 1, m.ABSENT, 2, 1)
    assert client.append(100, b"bc") == m.DataAppended(WRITER, 100, 1, 2, 3)


def test_an_empty_append_moves_the_number(client: WireClient) -> None:
    client.create("s")
    client.set_up("s")
    assert client.append(3, b"").current_segment_write_offset == 0
    assert client.set_up("s").last_event_number == 3


def test_an_append_without_a_set_up_ends_the_connection(client: WireClient) -> None:
    client.send(end(1, b"x"))
    assert client.is_ended()


def test_a_conditional_append_needs_the_expected_length(client: WireClient) -> None:
    client.create("s")
    client.set_up("s")
    failed = client.ask(m.ConditionalBlockEnd(WRITER, 1, 9, b"no", 4), m.ConditionalCheckFailed)
    assert failed == m.ConditionalCheckFailed(WRITER, 1, 4)
    appended = client.ask(m.ConditionalBlockEnd(WRITER, 1, 0, b"yes", 4), m.DataAppended)
    assert appended == m.DataAppended(WRITER, 1, m.ABSENT, 4, 3)
    assert client.content("s") == b"yes"


def test_an_overtaken_writer_is_told_and_cut_off(server: WireServer, client: WireClient) -> None:
    client.create("s")
    client.set_up("s")
    client.append(1, b"old")
    with server.client() as successor:
        successor.set_up("s")
        successor.append(2, b"new")
    refused = client.ask(end(3, b"lost"), e.InvalidEventNumber)
    assert refused.writer_id == WRITER
    assert client.is_ended()
    with server.client() as reader:
        assert reader.content("s") == b"oldnew"


def test_a_sealed_segment_is_set_up_and_takes_nothing(client: WireClient) -> None:
    client.create("s")
    client.ask(m.SealSegment(1, "s", ""), m.SegmentSealed)
    client.set_up("s")
    refused = client.ask(end(1, b"x"), e.SegmentIsSealed)
    assert (refused.segment, refused.offset) == ("s", 1)
    client.ask(m.KeepAlive(), m.KeepAlive)


def test_a_set_up_between_a_block_and_its_end_ends_the_connection(client: WireClient) -> None:
    client.create("s")
    client.set_up("s")
    client.send(m.AppendBlock(WRITER, b"abc"))
    client.send(m.SetupAppend(2, WRITER, "s", ""))
    assert client.is_ended()


def test_writers_of_several_segments_share_a_connection(client: WireClient) -> None:
    for segment, writer in (("a", WRITER), ("b", OTHER)):
        client.create(segment)
        client.set_up(segment, writer)
    client.append(1, b"to a")
    client.append(1, b"to b", writer=OTHER)
    assert (client.content("a"), client.content("b")) == (b"to a", b"to b")


def test_a_writer_that_is_set_up_again_is_directed_to_the_other_segment(client: WireClient) -> None:
    client.create("a")
    client.create("b")
    client.set_up("a")
    client.set_up("b")
    client.append(1, b"to b")
    assert (client.content("a"), client.content("b")) == (b"", b"to b")


def test_a_number_below_the_last_ends_the_connection(client: WireClient) -> None:
    client.create("s")
    client.set_up("s")
    client.append(5, b"five")
    client.send(end(4, b"four"))
    assert client.is_ended()


def test_the_last_number_is_acknowledged_again_and_not_written(client: WireClient) -> None:
    client.create("s")
    client.set_up("s")
    client.append(5, b"five")
    assert client.append(5, b"five").event_number == 5
    client.set_up("s")
    assert client.append(5, b"five").event_number == 5
    assert client.content("s") == b"five"
