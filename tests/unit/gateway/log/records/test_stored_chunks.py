"""Chunks given as they are stored: none is joined, and none that is damaged is given."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gateway.log.derived import index as index_module
from gateway.log.log import StreamLog
from gateway.log.reading import cursor as cursor_module
from gateway.log.records import stored_chunks as stored_module
from gateway.log.records.stored_chunks import StoredChunks
from store.api import Reader
from tests.chunks import Chunk, SubBatch, chunk_of
from tests.unit.gateway.log.conftest import MakeRig, reopened_on
from tests.unit.gateway.log.log_rig import (
    FORGETFUL,
    NAMES,
    LogRig,
    OpenStore,
    bytes_of,
    change_on_disk,
    event_of,
)
from tests.unit.gateway.log.reading.test_cursor import commit_all, offsets_and_records
from tests.unit.gateway.log.recovery.test_log_opening_damage import append_raw
from tests.unit.gateway.log.test_unreadable import BODIES, EVENT_BYTES, Disk, rig_on

FIVE = [bytes([number]) * 300 for number in range(5)]
LARGE = [bytes([number]) * 70_000 for number in range(5)]


def stored(rig: LogRig, log: StreamLog, position: int = 0) -> list[Chunk]:
    """The chunks from a position on, until there are no more or one cannot be read."""
    woken: list[int] = []
    chunks = StoredChunks(log, position, lambda: woken.append(1))
    found: list[Chunk] = []
    while chunks.failure is None:
        before = len(woken)
        delivery = chunks.next(bytearray())
        if delivery is not None:
            chunk = chunk_of(bytes_of(delivery))
            assert (delivery.chunk_id, delivery.region) == (chunk.chunk_id, None)
            assert delivery.next_offset == chunk.chunk_id + chunk.record_count
            found.append(chunk)
        elif chunks.position >= log.committed_length:
            break
        elif chunks.failure is None:
            rig.loop.run_until(lambda: len(woken) > before)  # noqa: B023 - before the next round
    chunks.close()
    return found


@pytest.mark.parametrize("is_reopened", [False, True])
@pytest.mark.parametrize("bodies", [FIVE, LARGE, [b"x"] * 2_000], ids=["small", "large", "many"])
def test_every_chunk_is_given_as_it_is_stored(
    make_rig: MakeRig, bodies: Sequence[bytes], *, is_reopened: bool
) -> None:
    rig = make_rig()
    log = rig.create()
    for body in bodies:
        rig.now_ms += 1
        rig.commit(log, body)
    if is_reopened:
        rig.close()
        rig = make_rig(rig.directory)
        log = rig.open()

    found = stored(rig, log)

    assert found == [chunk for chunk, _ in rig.chunks()]
    assert [chunk.timestamp_ms for chunk in found] == [*range(1_001, 1_001 + len(bodies))]


def test_chunks_that_other_readers_share_are_given_as_they_are_stored(rig: LogRig) -> None:
    log = rig.create()
    commit_all(rig, log, [b"a"], [b"b"])
    log.readers.has_company = True
    assert len(rig.cursor(log).all_now()) == 1
    assert log.readers.shared is not None

    assert [chunk.records() for chunk in stored(rig, log)] == [[b"a"], [b"b"]]


@pytest.mark.parametrize("is_reopened", [False, True])
@pytest.mark.parametrize("number", [0, 4])
@pytest.mark.parametrize("bodies", [FIVE, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(
    "place",
    [4, 6, 8, 9, 11, 15, 23, 31, 39, 43, 47, 51, 55, 70, -1],
    ids=lambda place: f"byte {place}",
)
def test_no_damaged_chunk_is_given_and_the_others_are(
    make_rig: MakeRig,
    caplog: pytest.LogCaptureFixture,
    bodies: list[bytes],
    number: int,
    place: int,
    *,
    is_reopened: bool,
) -> None:
    rig = make_rig()
    log = rig.create()
    commit_all(rig, log, *([body] for body in bodies))
    event_bytes = 60 + 4 + len(bodies[0])
    content = rig.content()
    at = number * event_bytes + place % event_bytes
    if is_reopened:
        # With a snapshot the opening looks at the last chunk only.
        rig.save(log)
        rig.close()
    change_on_disk(rig, content, (at, content[at] ^ 0x15))
    if is_reopened:
        rig = make_rig(rig.directory)
        log = rig.open()

    with caplog.at_level(logging.ERROR):
        found = offsets_and_records(stored(rig, log))

    whole = [(n, body) for n, body in enumerate(bodies) if n != number]
    assert [pair for pair in found if pair not in whole] == []
    # A place that is no chunk hides what follows it up to the next one that the index knows.
    assert found == whole or (place in {4, 6, 8, 51} and not is_reopened)
    assert "damaged chunk is not delivered" in caplog.text


@pytest.mark.parametrize("is_reopened", [False, True])
@pytest.mark.parametrize("times", [1, 1_000])
def test_an_error_of_the_disk_is_felt_only_where_it_stays(
    monkeypatch: pytest.MonkeyPatch, make_rig: MakeRig, times: int, *, is_reopened: bool
) -> None:
    monkeypatch.setattr(index_module, "SPAN_BYTES", 10_000)
    monkeypatch.setattr(cursor_module, "_CHECK_BYTES", 15_000)
    disk = Disk()
    directory = make_rig().directory.with_name("bad")
    rig = rig_on(disk, directory)
    log = rig.create()
    commit_all(rig, log, *([body] for body in BODIES))
    if is_reopened:
        rig.save(log)
        rig.close()
        rig = rig_on(disk, directory)
        log = rig.open()
    disk.bad = range(7 * EVENT_BYTES + 900, 7 * EVENT_BYTES + 901)
    disk.times = times

    found = offsets_and_records(stored(rig, log))

    assert found == [*enumerate(BODIES)][: 20 if times == 1 else 7]
    rig.close()


def test_a_sub_batch_is_given_as_it_is_stored_and_checked(rig: LogRig) -> None:
    log = rig.create()
    commit_all(rig, log, [b"a"], [SubBatch.of([b"b" * 500, b"c"]), b"d"], [b"e"])
    assert [chunk.chunk_id for chunk in stored(rig, log)] == [0, 1, 4]
    content = rig.content()
    at = content.index(b"bbb") + 100
    change_on_disk(rig, content, (at, 0x55))

    assert [chunk.chunk_id for chunk in stored(rig, log)] == [0, 4]


def test_the_seal_of_a_chunk_is_compared(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_module, "_WINDOW_BYTES", 100)
    rig = make_rig()
    log = rig.create()
    commit_all(rig, log, [b"one"], [b"another"])
    content = rig.content()
    at = content.index(b"another") - 4 - 48 + 15  # the last byte of its time
    change_on_disk(rig, content, (at, content[at] ^ 1))

    assert offsets_and_records(stored(rig, log)) == [(0, b"one")]


@pytest.mark.parametrize("checks", ["all chunks", "single chunks"])
@pytest.mark.parametrize("gap", range(6))
def test_where_offsets_jump_the_same_is_given_as_to_a_client(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch, gap: int, checks: str
) -> None:
    if checks == "single chunks":
        monkeypatch.setattr(index_module, "SPAN_BYTES", 1)
        monkeypatch.setattr(cursor_module, "_CHECK_BYTES", 1)
    rig = make_rig()
    rig.do(rig.store.create_segment, NAMES.data_segment)
    following = 0
    for number in range(6):
        chunk_id = following + 50 if number == gap else following
        following = chunk_id + 1
        append_raw(rig, event_of([b"%d" % number], chunk_id=chunk_id), following)
    log = rig.open()

    assert offsets_and_records(stored(rig, log)) == offsets_and_records(rig.cursor(log).all_now())


@pytest.mark.parametrize("forgetful", FORGETFUL)
@pytest.mark.parametrize("size", [300, 5_000, 70_000, 3_000_000])
def test_what_a_store_gives_but_once_is_given(
    make_rig: MakeRig, forgetful: Callable[[], OpenStore], size: int
) -> None:
    bodies = [bytes([number]) * size for number in range(6)]
    rig = reopened_on(make_rig, forgetful(), bodies)

    assert offsets_and_records(stored(rig, rig.open())) == [*enumerate(bodies)]


class Forgetting:
    """A reader that has bytes at hand only once they were read, and never many."""

    def __init__(self, reader: Reader, at_hand: int) -> None:
        self._reader = reader
        self._at_hand = at_hand
        self._read = range(0)
        self.checks: list[int] = []

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the reader has
        return getattr(self._reader, name)

    def read_cached(self, position: int, size: int) -> bytes | None:
        """Give what is in the range that was read last."""
        if position not in self._read:
            return None
        size = min(size, self._at_hand, self._read.stop - position)
        return self._reader.read_cached(position, size)

    def check(self, position: int, size: int, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - handed on
        """Read, and have that at hand."""
        self.checks.append(position)
        self._read = range(position, position + size)
        self._reader.check(position, size, *arguments, **options)


@pytest.mark.parametrize("at_hand", [60, 1_000, 1 << 20])
@pytest.mark.parametrize("bodies", [FIVE, LARGE], ids=["small", "large"])
def test_what_is_not_at_hand_is_fetched_first(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch, bodies: list[bytes], at_hand: int
) -> None:
    monkeypatch.setattr(cursor_module, "_CHECK_BYTES", 100)
    log = rig.create()
    commit_all(rig, log, *([body] for body in bodies))
    reader = Forgetting(log.reader, at_hand)
    log.reader = reader

    assert offsets_and_records(stored(rig, log)) == [*enumerate(bodies)]
    assert len(reader.checks) >= len(bodies)
