import time
from collections.abc import Iterator

import pytest

from hutch.client.errors import BadAnswer, ClientError, Refused
from hutch.client.frames import FrameReader
from hutch.stream import messages as m
from hutch.stream.codec import Decoded
from hutch.stream.codes import ResponseCode
from pyspark_hutch.client.pool import POOL
from pyspark_hutch.client.range_reader import DataLoss, RangeReader
from tests.fake_server import FakeChunk, FakeServer, Talk, chunk, chunks
from tests.reading_rig import range_of, reader_of, records_of


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        fake.streams["s"] = chunks(*[3] * 30)  # 90 records
        yield fake


def offsets(server: FakeServer, low: int, high: int, **more: object) -> list[int]:
    reader = reader_of(server, range_of(server, "s", low, high, **more))
    return [offset for offset, _ in records_of(reader, high)]


@pytest.mark.parametrize(("low", "high"), [(0, 90), (0, 1), (89, 90), (4, 50), (3, 6), (7, 7)])
def test_a_range_gives_its_records_and_no_others(server: FakeServer, low: int, high: int) -> None:
    reader = reader_of(server, range_of(server, "s", low, high))

    found = list(records_of(reader, high))

    assert found == [(n, str(n).encode().ljust(10)) for n in range(low, high)]


def test_a_chunk_that_reaches_past_both_ends_gives_what_is_between(server: FakeServer) -> None:
    server.streams["s"] = chunks(100)

    assert offsets(server, 20, 30) == list(range(20, 30))


def test_offsets_without_messages_end_a_range_as_messages_do(server: FakeServer) -> None:
    tracking = FakeChunk(5, 8, chunk(5, [b"x"] * 3, kind=1).data)
    server.streams["s"] = [*chunks(5), tracking]

    pieces = [
        bytes(piece.chunk)[1] for piece in reader_of(server, range_of(server, "s", 0, 8)).pieces()
    ]

    assert pieces == [0, 1]


def test_readers_of_a_process_use_one_connection(server: FakeServer) -> None:
    for low in range(0, 90, 30):
        offsets(server, low, low + 30)

    assert len(server.talks) == 1
    assert not server.talks[0].readings


def test_a_reader_that_is_left_early_leaves_no_subscription_and_keeps_the_connection(
    server: FakeServer,
) -> None:
    pieces = reader_of(server, range_of(server, "s", 0, 90)).pieces()
    next(pieces)
    pieces.close()

    assert not server.talks[0].readings
    assert offsets(server, 3, 80) == list(range(3, 80))
    assert len(server.talks) == 1


def test_a_reader_that_is_left_after_the_server_went_is_no_error(server: FakeServer) -> None:
    pieces = reader_of(server, range_of(server, "s", 0, 90)).pieces()
    next(pieces)
    server.go()

    pieces.close()


def test_a_lost_connection_costs_no_record_and_doubles_none(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    found = []
    reader = reader_of(server, range_of(server, "s", 0, 90))
    for offset, _ in records_of(reader, 90):
        found.append(offset)
        if offset in {10, 40, 41, 80}:
            server.cut()

    assert found == list(range(90))
    assert "going on at offset" in caplog.text


def test_a_server_that_stays_away_is_an_error_that_names_stream_and_offsets(
    server: FakeServer,
) -> None:
    reader = reader_of(
        server, range_of(server, "s", 0, 90), planner_retries=2, planner_retry_interval_ms=10
    )
    records = records_of(reader, 90)
    next(records)
    server.go()
    begun = time.monotonic()

    with pytest.raises(
        ClientError, match=r"stream 's': .* offsets 1?[0-9] to 89 were not"
    ) as caught:
        list(records)

    assert "\n" not in str(caught.value)
    assert time.monotonic() - begun < 20


def test_tries_without_any_progress_are_bounded(server: FakeServer) -> None:
    server.handlers["subscribe"] = lambda _talk, _asked: server.cut()
    reader = reader_of(server, range_of(server, "s", 0, 90), planner_retries=2)

    with pytest.raises(ClientError, match="offsets 0 to 89 were not read"):
        list(records_of(reader, 90))

    assert server.count("subscribe") == 3


def test_each_bit_of_progress_gives_new_tries(server: FakeServer) -> None:
    good = server.handlers["credit"]

    def cuts(talk: Talk, asked: Decoded) -> None:
        good(talk, asked)
        if talk.names.count("credit") >= 3:
            server.cut()

    server.handlers["credit"] = cuts
    reader = reader_of(server, range_of(server, "s", 0, 90), planner_retries=1)

    assert [offset for offset, _ in records_of(reader, 90)] == list(range(90))
    assert len(server.talks) > 4


def test_a_silent_server_is_given_up_at_the_poll_timeout(server: FakeServer) -> None:
    server.streams["s"] = chunks(3)
    server.ends["s"] = 90
    wanted = range_of(server, "s", 0, 90)
    begun = time.monotonic()

    with pytest.raises(ClientError, match="did not answer in time; offsets 3 to 89 were not read"):
        list(records_of(reader_of(server, wanted, poll_timeout_ms=200, planner_retries=1), 90))

    assert 0.4 <= time.monotonic() - begun < 20


def test_chunks_that_lead_nowhere_do_not_put_off_the_time_limit(server: FakeServer) -> None:
    first = server.streams["s"][0].data

    def again(talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.Credit)
        time.sleep(0.01)
        talk.deliver(asked.message.subscription_id, first)

    server.handlers["credit"] = again
    server.streams["s"] = server.streams["s"][:1]
    server.ends["s"] = 90
    wanted = range_of(server, "s", 0, 90)
    reader = reader_of(server, wanted, poll_timeout_ms=300, planner_retries=1)
    begun = time.monotonic()

    with pytest.raises(ClientError, match="offsets 3 to 89 were not read"):
        list(records_of(reader, 90))

    assert time.monotonic() - begun < 20


def test_a_slow_user_of_the_rows_is_no_silence_of_the_server(server: FakeServer) -> None:
    reader = reader_of(server, range_of(server, "s", 0, 18), poll_timeout_ms=150, planner_retries=0)
    found = []
    for offset, _ in records_of(reader, 18):
        found.append(offset)
        if offset % 6 == 0:
            time.sleep(0.2)

    assert found == list(range(18))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"short", "a chunk behind offset 0 is cut short"),
        (chunk(0, [b"a"], size=1 << 20).data, "the chunk at offset 0 is not whole"),
        (
            chunk((1 << 64) - 1, [b"a"]).data,
            "the chunk at offset 18446744073709551615 is not whole",
        ),
    ],
)
def test_a_chunk_that_lies_is_an_error_that_names_stream_and_offset(
    server: FakeServer, data: bytes, words: str
) -> None:
    server.streams["s"] = [FakeChunk(0, 90, data)]

    with pytest.raises(BadAnswer, match=f"stream 's': {words}"):
        offsets(server, 0, 90)


# ---- loss --------------------------------------------------------------------------------------


def test_rows_that_retention_took_before_are_lost_with_stream_range_and_reason(
    server: FakeServer,
) -> None:
    server.streams["s"] = chunks(*[3] * 10, first=30)

    with pytest.raises(
        DataLoss,
        match="stream 's': offsets 10 to 29 are lost: the stream begins at offset 30: retention",
    ):
        offsets(server, 10, 40)
    assert offsets(server, 10, 40, fails_on_loss=False) == list(range(30, 40))
    assert offsets(server, 10, 20, fails_on_loss=False) == []


def test_rows_that_retention_takes_while_they_are_read_are_lost(server: FakeServer) -> None:
    records = records_of(reader_of(server, range_of(server, "s", 0, 90)), 90)
    next(records)
    server.streams["s"] = chunks(*[3] * 10, first=60)

    with pytest.raises(DataLoss, match=r"stream 's': offsets 1[0-9] to 59 are lost: retention"):
        list(records)


def test_rows_that_are_gone_are_left_out_with_a_line_where_that_is_allowed(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    reader = reader_of(server, range_of(server, "s", 0, 90, fails_on_loss=False))
    found = []
    for offset, _ in records_of(reader, 90):
        found.append(offset)
        server.streams["s"] = chunks(*[3] * 10, first=60)

    assert found[-30:] == list(range(60, 90))
    assert found[:-30] == list(range(len(found) - 30))
    assert "to 59 are lost" in caplog.text


@pytest.mark.parametrize("when", ["before", "in the middle"])
def test_a_stream_that_was_deleted_is_lost_with_its_range(server: FakeServer, when: str) -> None:
    records = records_of(reader_of(server, range_of(server, "s", 5, 90)), 90)
    if when == "in the middle":
        next(records)
    del server.streams["s"]
    for talk in server.talks:
        talk.push("metadata_update", m.MetadataUpdate(6, "s"))

    with pytest.raises(DataLoss, match=r"stream 's': offsets [0-9]+ to 89 are lost: .* not exist"):
        list(records)


def test_a_stream_that_was_deleted_ends_early_where_that_is_allowed(server: FakeServer) -> None:
    del server.streams["s"]

    assert offsets(server, 5, 90, fails_on_loss=False) == []


def test_a_stream_that_was_made_again_and_is_shorter_is_lost_from_its_end_on(
    server: FakeServer,
) -> None:
    server.streams["s"] = chunks(3, 4)

    with pytest.raises(DataLoss, match=r"offsets 7 to 89 are lost: .* deleted and made again"):
        offsets(server, 0, 90)
    assert offsets(server, 0, 90, fails_on_loss=False) == list(range(7))
    assert offsets(server, 50, 90, fails_on_loss=False) == []


def test_no_right_to_read_is_told_and_not_tried_again(server: FakeServer) -> None:
    refused = m.Status(ResponseCode.ACCESS_REFUSED)
    server.handlers["subscribe"] = lambda talk, asked: talk.reply(asked, refused)

    with pytest.raises(Refused, match="stream 's' may not be used by this user"):
        offsets(server, 0, 90)

    assert server.count("subscribe") == 1


def test_a_stream_that_is_not_available_for_a_moment_is_tried_again(server: FakeServer) -> None:
    good, tries = server.handlers["subscribe"], []

    def late(talk: Talk, asked: Decoded) -> None:
        tries.append(1)
        if len(tries) == 1:
            talk.reply(asked, m.Status(ResponseCode.STREAM_NOT_AVAILABLE))
        else:
            good(talk, asked)

    server.handlers["subscribe"] = late

    assert offsets(server, 0, 90) == list(range(90))


# ---- filters -----------------------------------------------------------------------------------


def mixed(*runs: tuple[str | None, int]) -> list[FakeChunk]:
    """Build chunks of three records, so many records of each filter value in turn."""
    found: list[FakeChunk] = []
    for value, count in runs:
        first = found[-1].end if found else 0
        found += chunks(*[3] * (count // 3), first=first, value=value)
    return found


def filtered(server: FakeServer, low: int, high: int, **more: object) -> RangeReader:
    return reader_of(server, range_of(server, "s", low, high, filters=("x",)), **more)


def test_a_filter_is_sent_with_all_its_values(server: FakeServer) -> None:
    wanted = range_of(server, "s", 0, 9, filters=("x", ""), match_unfiltered=True)

    assert wanted.properties() == {
        "filter.0": "x",
        "filter.1": "",
        "match-unfiltered": "true",
    }
    assert range_of(server, "s", 0, 9).properties() == {"chunk_selector": "all"}


def test_a_filter_skips_chunks_up_to_the_last_that_matches(server: FakeServer) -> None:
    server.streams["s"] = mixed(("x", 3), ("y", 27), ("x", 3), ("y", 6))

    found = [offset for offset, _ in records_of(filtered(server, 0, 39), 39)]

    assert found == [0, 1, 2, *range(30, 39)]
    assert not server.talks[0].readings


def test_a_chunk_behind_the_range_ends_a_filter_at_once(server: FakeServer) -> None:
    server.streams["s"] = mixed(("x", 3), ("y", 57), ("x", 3))

    found = [offset for offset, _ in records_of(filtered(server, 0, 50), 50)]

    assert found == [0, 1, 2]
    assert server.count("subscribe") == 1


def test_a_filter_that_is_slow_to_find_what_matches_costs_no_row(server: FakeServer) -> None:
    server.streams["s"] = mixed(("y", 30), ("x", 6), ("y", 3), ("x", 3))
    good = server.handlers["subscribe"]

    def slow(talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.Subscribe)
        if "filter.0" in asked.message.properties:
            talk.reply(asked, m.Status(ResponseCode.OK))  # and nothing for as long as it is there
        else:
            good(talk, asked)

    server.handlers["subscribe"] = slow

    found = [offset for offset, _ in records_of(filtered(server, 0, 42), 42)]

    assert set(found) >= {*range(30, 36), *range(39, 42)}
    assert found == sorted(set(found))


def test_a_server_that_answers_nothing_while_it_filters_costs_no_row(server: FakeServer) -> None:
    server.streams["s"] = mixed(("x", 3), ("y", 30), ("x", 3), ("y", 3))
    good = server.handlers["unsubscribe"]

    def deaf(talk: Talk, asked: Decoded) -> None:
        if server.count("unsubscribe") > 1:
            good(talk, asked)

    server.handlers["unsubscribe"] = deaf
    reader = filtered(server, 0, 39, request_timeout_ms=300, planner_retries=1)

    assert {*range(3), *range(33, 36)} <= {offset for offset, _ in records_of(reader, 39)}


def test_retention_behind_a_filters_back_is_a_loss(server: FakeServer) -> None:
    server.streams["s"] = mixed(("x", 3), ("y", 27), ("x", 3), ("y", 6))
    records = records_of(filtered(server, 0, 39), 39)
    found = [next(records)[0] for _ in range(4)]
    del server.streams["s"][:10]

    with pytest.raises(DataLoss, match="offsets 3 to 29 are lost: retention removed chunks while"):
        list(records)

    assert found == [0, 1, 2, 30]


def test_looking_whether_skipped_chunks_are_there_does_not_spoil_the_chunk_at_hand(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark_hutch.client.range_reader._SKIPPED_LOOK_S", 0.0)
    real, before = FrameReader.next, [memoryview(bytearray())]

    def spoiling(reader: FrameReader, deadline: float) -> memoryview:
        before[0][:] = bytes(len(before[0]))  # its memory may be used again from now on
        before[0] = real(reader, deadline)
        return before[0]

    monkeypatch.setattr(FrameReader, "next", spoiling)
    server.streams["s"] = mixed(*[("x", 3), ("y", 3)] * 30, ("x", 3))

    found = list(records_of(filtered(server, 0, 180), 180))

    assert found == [(n, str(n).encode().ljust(10)) for n in range(180) if n % 6 < 3]


def test_the_pool_has_no_reader_left_over() -> None:
    assert not POOL._lent
