"""Set-ups, levels and blocks over a socket."""

from pathlib import Path
from uuid import UUID

import pytest

from gateway.pravega.segments import SEGMENTS_MAX
from gateway.settings.wire import EarlySettings, WireSettings
from hutch.pravega import early_messages as m
from hutch.pravega import messages as today
from hutch.pravega.layout import WireMessage
from tests.early_rig import (
    APPENDER,
    SEGMENT,
    EarlyClient,
    EarlyServer,
    block,
    serving_early,
    stored,
)
from tests.pravega_client import end

OTHER = UUID(int=99)


def test_a_new_appender_begins_at_0_and_makes_its_segment(
    server: EarlyServer, client: EarlyClient
) -> None:
    assert client.set_up() == 0
    with server.client() as today_client:
        assert today_client.content(SEGMENT) == b""


def test_the_level_is_the_offset_behind_the_last_stored_block(client: EarlyClient) -> None:
    client.set_up()

    assert client.append(0, b"one", b"two") == 22
    assert client.append(22, b"three") == 35
    assert client.set_up() == 35
    assert client.read().data == stored(b"one", b"two", b"three")


def test_a_level_outlives_the_server(tmp_path: Path) -> None:
    with serving_early(tmp_path) as server, server.early_client() as client:
        client.set_up()
        client.append(0, b"one")
    with serving_early(tmp_path) as server, server.early_client() as client:
        assert client.set_up() == 11
        assert client.append(11, b"two") == 22
        assert client.read().data == stored(b"one", b"two")


def test_the_level_counts_what_the_appender_wrote_and_not_the_segment(client: EarlyClient) -> None:
    for appender in (APPENDER, OTHER):
        assert client.set_up(SEGMENT, appender) == 0

    assert client.append(0, b"one") == 11
    assert client.append(0, b"other", appender=OTHER) == 13
    assert client.append(11, b"two") == 22
    assert client.read().data == stored(b"one", b"other", b"two")


def test_appenders_of_several_segments_share_a_connection(client: EarlyClient) -> None:
    client.set_up("a")
    client.set_up("b", OTHER)
    client.send(*block(0, b"to a"), *block(0, b"to b", appender=OTHER))

    levels = {client.must(m.DataAppended) for _ in range(2)}

    assert levels == {m.DataAppended(APPENDER, 12), m.DataAppended(OTHER, 12)}
    assert (client.read("a").data, client.read("b").data) == (stored(b"to a"), stored(b"to b"))


def test_blocks_are_pipelined_and_acknowledged_in_order(client: EarlyClient) -> None:
    client.set_up()
    client.send(*(each for n in range(500) for each in block(9 * n, b"x")))

    levels = [client.must(m.DataAppended).acknowledged for _ in range(500)]

    assert levels == [9 * (n + 1) for n in range(500)]
    assert client.read().data == stored(b"x") * 500


def test_a_block_below_the_level_is_acknowledged_and_not_stored_again(client: EarlyClient) -> None:
    client.set_up()
    client.append(0, b"one", b"two")

    assert client.append(0, b"one") == 22
    assert client.append(11, b"two") == 22
    assert client.set_up() == 22
    assert client.append(0, b"one", b"two") == 22
    assert client.read().data == stored(b"one", b"two")


def test_a_block_that_is_sent_twice_in_one_run_is_stored_once(client: EarlyClient) -> None:
    client.set_up()
    client.send(*block(0, b"one"), *block(0, b"one"), *block(11, b"two"))

    while client.must(m.DataAppended).acknowledged < 22:
        pass
    assert client.read().data == stored(b"one", b"two")


def test_an_empty_block_is_acknowledged(client: EarlyClient) -> None:
    client.set_up()

    assert client.append(0) == 0
    assert client.append(0, b"one") == 11
    assert client.append(11) == 11


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (block(5, b"two"), "a block from 5 to 16 across what is stored"),
        (block(0, b"one", b"two"), "a block from 0 to 22 across"),
        (block(12, b"gap"), "a block at 12 where 11 comes next"),
        ((*block(11, b"two"), *block(16, b"three")), "a block from 16 to 29 across"),
        (block(0, appender=OTHER), "which is not set up"),
    ],
)
def test_a_block_that_does_not_follow_closes_and_stores_nothing(
    server: EarlyServer, client: EarlyClient, messages: tuple[WireMessage, ...], words: str
) -> None:
    client.set_up()
    client.append(0, b"one")

    client.send(*messages)

    client.drain()
    assert any(words in line for line in server.lines)
    with server.early_client() as other:
        assert other.read().data in {stored(b"one"), stored(b"one", b"two")}


def test_an_appender_that_was_overtaken_is_cut_off(
    server: EarlyServer, client: EarlyClient
) -> None:
    client.set_up()
    client.append(0, b"one")
    with server.early_client() as successor:
        assert successor.set_up() == 11
        successor.append(11, b"new")

    client.send(*block(11, b"old"))

    assert client.is_ended()
    with server.early_client() as reader:
        assert reader.read().data == stored(b"one", b"new")


def test_an_id_that_is_set_up_again_appends_to_the_other_segment(client: EarlyClient) -> None:
    client.set_up("a")
    client.append(0, b"one")
    assert client.set_up("b") == 0

    client.append(0, b"two")

    assert (client.read("a").data, client.read("b").data) == (stored(b"one"), stored(b"two"))


def test_a_sealed_segment_closes_at_the_first_block(
    server: EarlyServer, client: EarlyClient
) -> None:
    client.set_up()
    with server.client() as today_client:
        today_client.ask(today.SealSegment(1, SEGMENT, ""), today.SegmentSealed)

    client.send(*block(0, b"x"))

    assert client.is_ended()
    assert any("sealed" in line for line in server.lines)


def test_a_missing_segment_closes_where_none_is_to_be_made(tmp_path: Path) -> None:
    with serving_early(tmp_path, EarlySettings(makes_segments=False)) as server:
        with server.early_client() as client:
            client.send(m.SetupAppend(APPENDER, SEGMENT))
            assert client.is_ended()
        with server.client() as today_client, server.early_client() as client:
            today_client.create(SEGMENT)
            assert client.set_up() == 0


@pytest.mark.parametrize("size", [0, 1_024, 1_025])
def test_a_name_is_made_or_refused(server: EarlyServer, size: int) -> None:
    with server.early_client() as client:
        client.send(m.SetupAppend(APPENDER, "x" * size))
        if size == 1_024:
            assert client.must(m.AppendSetup).segment == "x" * size
        else:
            assert client.is_ended()


def test_one_segment_more_than_a_stream_may_have_closes(server: EarlyServer) -> None:
    with server.client() as today_client:
        for first in range(0, SEGMENTS_MAX, 500):
            names = [f"scope/stream/{number}" for number in range(first, first + 500)]
            today_client.send(*(today.CreateSegment(1, name, 0, 0, "") for name in names))
            assert [today_client.must(today.SegmentCreated).segment for _ in names] == names
    with server.early_client() as client:  # now: it has a time limit for its first frame
        client.send(m.SetupAppend(APPENDER, "scope/stream/0"))
        client.must(m.AppendSetup)
        client.send(m.SetupAppend(APPENDER, "scope/stream/more"))
        assert client.is_ended()


def test_more_appenders_than_the_setting_close(tmp_path: Path) -> None:
    with (
        serving_early(tmp_path, wire=WireSettings(set_ups_max=2)) as server,
        server.early_client() as client,
    ):
        for number in (1, 2, 1):
            client.set_up("s", UUID(int=number))
        client.send(m.SetupAppend(UUID(int=3), "s"))
        assert client.is_ended()


def test_a_segment_is_written_in_both_dialects_and_read_in_both(
    server: EarlyServer, client: EarlyClient
) -> None:
    with server.client() as today_client:
        today_client.hello()
        client.set_up()
        client.append(0, b"early")
        today_client.set_up(SEGMENT, OTHER)
        today_client.append(1, stored(b"today"), writer=OTHER)
        client.append(13, b"again")

        expected = stored(b"early", b"today", b"again")
        assert today_client.content(SEGMENT) == expected
        assert client.read().data == expected


def test_the_level_is_the_event_number_of_the_writer_of_that_id(
    server: EarlyServer, client: EarlyClient
) -> None:
    with server.client() as today_client:
        client.set_up()
        client.append(0, b"one")
        assert today_client.set_up(SEGMENT).last_event_number == 11
        today_client.send(end(20, stored(b"x")))
        today_client.must(today.DataAppended)
    assert client.set_up() == 20
