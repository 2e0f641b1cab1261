"""Where reading starts, for every specification, against a list of the chunks."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.log.derived import index as index_module
from gateway.log.derived.index import ChunkIndex
from gateway.log.log import StreamLog
from gateway.log.reading import locations as locating
from gateway.log.reading.locations import Start, StartKind, locate
from tests.chunks import SubBatch
from tests.unit.gateway.log.log_rig import NAMES, LogRig, change_on_disk, put

U64_MAX = 2**64 - 1


class Place(NamedTuple):
    """A chunk, as the model knows it."""

    offset: int
    next_offset: int
    timestamp_ms: int
    position: int


class History(NamedTuple):
    rig: LogRig
    log: StreamLog
    chunks: list[Place]

    @property
    def tail(self) -> Start:
        return Start(self.log.committed_next_offset, self.log.committed_length)

    def find(self, kind: StartKind, value: int = 0) -> Start:
        return self.rig.run(locate(self.log, kind, value))


TIMES = [100, 100, 150, 150, 150, 400, 1_000, 1_000, 5_000, 5_000]


@pytest.fixture(scope="module", params=[200, 256 * 1024], ids=["many spans", "one span"])
def history(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[History]:
    """A log of ten chunks, opened again, so that its index was built by a scan."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "SPAN_BYTES", request.param)
        patch.setattr(locating, "_SCAN_BYTES", 250)
        rig = LogRig(tmp_path_factory.mktemp("log"))
        log = rig.create()
        for number, now_ms in enumerate(TIMES):
            rig.now_ms = now_ms
            put(log, [bytes(number * 9)] * (number % 3))
            put(log, [SubBatch.of([b"a"] * (number % 4 + 1))])
            rig.settle(log)
        log = rig.open()
        chunks: list[Place] = []
        content = rig.content()
        position = 0
        for chunk, rest in rig.chunks():
            next_offset = chunk.chunk_id + chunk.record_count
            chunks.append(Place(chunk.chunk_id, next_offset, chunk.timestamp_ms, position))
            position += 60 + len(chunk.data) + len(rest)
        assert position == len(content)
        yield History(rig, log, chunks)
        rig.close()


def start_of(place: Place) -> Start:
    return Start(place.offset, place.position)


def test_first_is_the_oldest_chunk(history: History) -> None:
    assert history.find(StartKind.FIRST) == Start(0, 0)


def test_last_is_the_last_chunk(history: History) -> None:
    assert history.find(StartKind.LAST) == start_of(history.chunks[-1])


def test_next_is_the_tail(history: History) -> None:
    assert history.find(StartKind.NEXT) == history.tail


def test_every_offset_is_found_in_its_chunk(history: History) -> None:
    for place in history.chunks:
        for offset in range(place.offset, place.next_offset):
            assert history.find(StartKind.OFFSET, offset) == start_of(place), offset


@pytest.mark.parametrize("beyond", [0, 1, 1_000])
def test_an_offset_at_or_beyond_the_tail_is_the_tail(history: History, beyond: int) -> None:
    assert history.find(StartKind.OFFSET, history.tail.offset + beyond) == history.tail
    assert history.find(StartKind.OFFSET, U64_MAX - beyond) == history.tail


@given(
    st.sampled_from(TIMES).flatmap(lambda ms: st.sampled_from([ms - 1, ms, ms + 1]))
    | st.integers(-(2**63), 2**63 - 1)
)
def test_a_timestamp_is_the_first_chunk_that_is_not_older(
    history: History, timestamp_ms: int
) -> None:
    not_older = [place for place in history.chunks if place.timestamp_ms >= timestamp_ms]
    expected = start_of(not_older[0]) if not_older else history.tail

    assert history.find(StartKind.TIMESTAMP, timestamp_ms) == expected


@pytest.mark.parametrize("kind", StartKind)
@pytest.mark.parametrize("value", [0, 7, 2**63 - 1])
def test_on_an_empty_stream_every_start_is_the_tail(
    rig: LogRig, kind: StartKind, value: int
) -> None:
    log = rig.create()

    assert rig.run(locate(log, kind, value)) == Start(0, 0)


@pytest.mark.parametrize(
    ("kind", "value", "start"),
    [
        (StartKind.FIRST, 0, Start(0, 0)),
        (StartKind.LAST, 0, Start(0, 0)),
        (StartKind.NEXT, 0, Start(1, 65)),
        (StartKind.OFFSET, 0, Start(0, 0)),
        (StartKind.OFFSET, 1, Start(1, 65)),
        (StartKind.TIMESTAMP, 1_000, Start(0, 0)),
        (StartKind.TIMESTAMP, 1_001, Start(1, 65)),
    ],
)
def test_a_stream_of_one_record(rig: LogRig, kind: StartKind, value: int, start: Start) -> None:
    log = rig.create()
    rig.commit(log, b"x")

    assert rig.run(locate(log, kind, value)) == start


@pytest.mark.parametrize("kind", [StartKind.NEXT, StartKind.OFFSET, StartKind.TIMESTAMP])
def test_what_is_not_committed_is_not_found(rig: LogRig, kind: StartKind) -> None:
    log = rig.create()
    rig.commit(log, b"x")
    rig.now_ms = 9_000
    put(log, [b"y"])
    rig.turn_until_appended(log)

    value = {StartKind.OFFSET: 1, StartKind.TIMESTAMP: 9_000}.get(kind, 0)

    assert rig.run(locate(log, kind, value)) == Start(1, 65)


@pytest.mark.parametrize(
    ("kind", "value"),
    [(StartKind.FIRST, 0), (StartKind.OFFSET, 0), (StartKind.OFFSET, 2), (StartKind.TIMESTAMP, 0)],
)
def test_what_was_given_up_starts_at_the_oldest_chunk_that_is_left(
    rig: LogRig, kind: StartKind, value: int
) -> None:
    log = rig.create()
    for _ in range(4):
        rig.commit(log, b"x")
    rig.do(rig.store.truncate_segment, NAMES.data_segment, 2 * 65)
    log = rig.open()

    assert rig.run(locate(log, kind, value)) == Start(2, 130)


def test_a_chunk_larger_than_a_scan_is_found(rig: LogRig) -> None:
    log = rig.create()
    rig.commit(log, b"x")
    rig.commit(log, bytes(900_000))
    rig.commit(log, b"y")

    assert rig.run(locate(log, StartKind.OFFSET, 1)) == Start(1, 65)
    assert rig.run(locate(log, StartKind.OFFSET, 2)).offset == 2


class WrongIndex(ChunkIndex):
    def position_before_offset(self, offset: int) -> int:  # noqa: ARG002
        return 5

    def position_before_timestamp(self, timestamp_ms: int) -> int:  # noqa: ARG002
        return 70


def test_an_index_that_is_wrong_is_not_used(rig: LogRig, caplog: pytest.LogCaptureFixture) -> None:
    log = rig.create()
    rig.commit(log, b"x")
    rig.now_ms = 2_000
    rig.commit(log, b"y")
    log.index = WrongIndex()

    assert rig.run(locate(log, StartKind.OFFSET, 1)) == Start(1, 65)
    assert rig.run(locate(log, StartKind.TIMESTAMP, 2_000)) == Start(1, 65)
    assert caplog.text.count("index is wrong stream=orders") == 2


def test_where_no_chunk_is_behind_damage_it_is_the_tail_and_the_log_says_where_the_damage_is(
    rig: LogRig, caplog: pytest.LogCaptureFixture
) -> None:
    log = rig.create()
    for body in (b"x", b"y", b"z"):
        rig.commit(log, body)
    change_on_disk(rig, rig.content(), (2 * 65 + 8, 0))

    assert rig.run(locate(log, StartKind.OFFSET, 2)) == Start(3, 195)
    assert "passed over stream=orders position=130 bytes=65" in caplog.text


@pytest.mark.parametrize("place", [4, 8, 65 + 4, 65 + 8])
def test_a_damaged_chunk_does_not_hide_those_behind_it(rig: LogRig, place: int) -> None:
    log = rig.create()
    for body in (b"x", b"y", b"z"):
        rig.commit(log, body)
    change_on_disk(rig, rig.content(), (place, 0x33))

    assert rig.run(locate(log, StartKind.OFFSET, 2)) == Start(2, 130)


NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("timestamp_ms", "count"),
    [
        (1, 1),
        (NOW_MS // 1_000, 1),
        (NOW_MS + DAY_MS + 1, 1),
        (NOW_MS * 1_000, 1),
        (-1, 0),
        (0, 0),
        (1_000_000_000_000, 0),
        (NOW_MS + DAY_MS, 0),
    ],
)
def test_a_time_that_cannot_be_meant_is_remarked_once_a_stream(
    rig: LogRig, caplog: pytest.LogCaptureFixture, timestamp_ms: int, count: int
) -> None:
    rig.now_ms = NOW_MS
    log = rig.create()
    rig.commit(log, b"x")

    for _ in range(3):
        rig.run(locate(log, StartKind.TIMESTAMP, timestamp_ms))
        rig.run(locate(log, StartKind.OFFSET, timestamp_ms))

    remarks = [each for each in caplog.messages if "is not plausible" in each]
    assert len(remarks) == count
