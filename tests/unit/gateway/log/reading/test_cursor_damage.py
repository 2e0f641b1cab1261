"""What a reader of a stream is given where stored chunks were damaged."""

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from gateway.log.damage.verification import verify
from gateway.log.derived.filters import SubscriptionFilter
from gateway.log.reading import cursor as cursor_module
from store.api import FileRegion
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import SEED, LogRig, change_on_disk, event_of
from tests.unit.gateway.log.reading.test_cursor import commit_all, offsets_and_records

FIVE = [bytes([number]) * 300 for number in range(5)]
LARGE = [bytes([number]) * 70_000 for number in range(5)]
EVENT_BYTES = 60 + 4 + 300


def damaged_rig(
    make_rig: MakeRig,
    *damage: tuple[int, int],
    bodies: Sequence[bytes] = FIVE,
    saves_snapshot: bool = False,
) -> LogRig:
    """A stream of five chunks, of which some bytes (place, value) were changed on the disk."""
    rig = make_rig()
    log = rig.create()
    commit_all(rig, log, *([body] for body in bodies))
    if saves_snapshot:
        rig.save(log)
    content = rig.content()
    # Closing makes a checkpoint, so the journal is not asked about these bytes again.
    rig.close()
    change_on_disk(rig, content, *damage)
    return make_rig(rig.directory)


@pytest.mark.parametrize("number", range(5))
def test_a_chunk_whose_data_was_damaged_is_not_delivered_and_the_others_are(
    make_rig: MakeRig, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    rig = damaged_rig(make_rig, (number * EVENT_BYTES + 56 + 4 + 99, 0x55))
    with caplog.at_level(logging.ERROR):
        delivered = rig.cursor(rig.open()).all_now()

    expected = [(n, body) for n, body in enumerate(FIVE) if n != number]
    assert offsets_and_records(delivered) == expected
    (record,) = [each for each in caplog.records if each.name == "gateway.log.reading.known_chunks"]
    message = record.getMessage()
    assert "damaged chunk is not delivered stream=orders" in message
    assert f"position={number * EVENT_BYTES} bytes={EVENT_BYTES}" in message


class InTwoFiles:
    """A reader of a segment of which a file ends at a border, wherever that is."""

    def __init__(self, reader: Any, border: int) -> None:  # noqa: ANN401 - the store's
        self._reader = reader
        self._border = border

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any of it
        return getattr(self._reader, name)

    def _within(self, position: int, size: int) -> int:
        return min(size, self._border - position) if position < self._border else size

    def read_cached(self, position: int, size: int) -> bytes | None:
        found: bytes | None = self._reader.read_cached(position, self._within(position, size))
        return found

    def region(self, position: int, size: int) -> FileRegion | None:
        found: FileRegion | None = self._reader.region(position, self._within(position, size))
        return found


@pytest.mark.parametrize("bodies", [FIVE, LARGE])
@pytest.mark.parametrize("takes_regions", [False, True])
def test_a_chunk_that_lies_in_two_files_is_delivered_whole(
    rig: LogRig, bodies: list[bytes], *, takes_regions: bool
) -> None:
    log = rig.create()
    commit_all(rig, log, *([body] for body in bodies))
    log.reader = InTwoFiles(log.reader, len(rig.content()) * 3 // 5 - 2)

    delivered = rig.cursor(log, takes_regions=takes_regions).all_now()

    assert offsets_and_records(delivered) == [*enumerate(bodies)]
    if bodies is FIVE:
        wanted = SubscriptionFilter([b"none"], unfiltered=True)
        assert rig.cursor(log, wanted=wanted).all_now() == delivered


@pytest.mark.parametrize("number", [0, 2, 3])
@pytest.mark.parametrize(
    ("place", "value"), [(4, 0xFF), (4, 0x01), (6, 0x00), (8, 0), (44, 0x7F), (46, 0x02)]
)
def test_a_chunk_whose_sizes_were_damaged_holds_up_nobody(
    make_rig: MakeRig,
    caplog: pytest.LogCaptureFixture,
    number: int,
    place: int,
    value: int,
) -> None:
    # With a snapshot the opening looks at the last chunk only, so the reader is the first to see.
    rig = damaged_rig(make_rig, (number * EVENT_BYTES + place, value), saves_snapshot=True)
    log = rig.open()

    with caplog.at_level(logging.ERROR):
        tap = rig.cursor(log)
        rig.commit(log, b"new")
        delivered = offsets_and_records(tap.all_now())

    assert delivered == [(n, b) for n, b in enumerate(FIVE) if n != number] + [(5, b"new")]
    assert "damaged chunk is not delivered" in caplog.text


@pytest.mark.parametrize("bad", [{1, 2}, {0, 1, 2}, {3, 4}, {0, 4}, {0, 1, 2, 3, 4}])
@pytest.mark.parametrize("bodies", [FIVE, LARGE], ids=["small", "large"])
def test_damaged_chunks_in_a_row_are_all_left_out_for_every_reader(
    make_rig: MakeRig, bodies: list[bytes], bad: set[int]
) -> None:
    event_bytes = 60 + 4 + len(bodies[0])
    damage = [(number * event_bytes + 56 + 99, 0x55) for number in bad]
    rig = damaged_rig(make_rig, *damage, bodies=bodies)
    log = rig.open()
    rig.commit(log, b"new")

    good = [(n, body) for n, body in enumerate(bodies) if n not in bad]
    for _ in range(3):
        delivered = rig.cursor(log, takes_regions=True).all_now()
        assert offsets_and_records(delivered) == [*good, (5, b"new")]


def test_damaged_chunks_that_were_found_ahead_of_a_slow_reader_are_left_out(
    make_rig: MakeRig,
) -> None:
    event_bytes = 60 + 4 + len(LARGE[0])
    damage = [(number * event_bytes + 56 + 99, 0x55) for number in (2, 3)]
    rig = damaged_rig(make_rig, *damage, bodies=LARGE)
    tap = rig.cursor(rig.open(), takes_regions=True)

    delivered: list[int] = []
    while len(delivered) < 3:
        delivery = tap.await_next()
        delivered.append(delivery.chunk_id)
        assert delivery.region is not None
        delivery.region.release()
        for _ in range(5):
            rig.loop.run_for(0.01)
            tap.cursor._lookahead.go_on(tap.cursor.position)

    assert delivered == [0, 1, 4]


@pytest.mark.parametrize(("place", "value"), [(4, 0xFF), (6, 0x00), (8, 0), (44, 0x7F), (70, 9)])
def test_damage_to_what_this_process_wrote_is_found_where_chunks_are_joined(
    rig: LogRig, caplog: pytest.LogCaptureFixture, place: int, value: int
) -> None:
    log = rig.create()
    commit_all(rig, log, *([body] for body in FIVE))
    change_on_disk(rig, rig.content(), (2 * EVENT_BYTES + place, value))

    tap = rig.cursor(log)
    with caplog.at_level(logging.ERROR):
        delivered = offsets_and_records(tap.all_now())
    rig.commit(log, b"new")

    assert delivered[:2] == [*enumerate(FIVE)][:2]
    assert set(delivered) <= {*enumerate(FIVE)} - {(2, FIVE[2])}
    assert "damaged chunk is not delivered" in caplog.text
    assert offsets_and_records(tap.all_now())[-1:] == [(5, b"new")]


def test_an_index_that_points_into_a_chunk_hides_nothing(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor_module, "_CHECK_BYTES", 1)
    rig = make_rig()
    commit_all(rig, rig.create(), *([body] for body in FIVE))
    log = rig.open()
    for place in (100, EVENT_BYTES + 7, 2 * EVENT_BYTES, 3 * EVENT_BYTES - 1):
        log.index.offsets.append(place)
        log.index.timestamps_ms.append(place)
        log.index.positions.append(place)
        log.index._verified.append(0)

    assert offsets_and_records(rig.cursor(log).all_now()) == [*enumerate(FIVE)]


# Checking


@pytest.mark.parametrize("size", [0, 5_000])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_verifying_finds_the_first_bad_chunk_whether_chunks_are_small_or_large(
    size: int, place: int
) -> None:
    events = [bytearray(event_of([bytes(size), b"x"], chunk_id=2 * n)) for n in range(3)]
    good = b"".join(events)
    assert verify(memoryview(good), SEED) == (0, len(good), 0, 6, None, 0)
    assert verify(memoryview(good[:-1]), SEED) == (0, 2 * len(events[0]), 0, 4, None, 0)

    events[place][-5] ^= 1

    bad = b"".join(events)
    assert verify(memoryview(bad), SEED)[:2] == (1, place * len(events[0]))


def test_damage_in_large_pieces_that_are_checked_ahead_is_found_before_it_is_delivered(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = [bytes([number]) * 1_000_000 for number in range(24)]
    damaged = (0, 9, 10, 23)
    event_bytes = 60 + 4 + len(bodies[0])
    places = [(number * event_bytes + 500_000, 0x55) for number in damaged]
    rig = damaged_rig(make_rig, *places, bodies=bodies, saves_snapshot=True)
    checked: list[int] = []

    def watched(view: memoryview, *rest: Any) -> Any:  # noqa: ANN401 - what verify takes and gives
        checked.append(len(view))
        return verify(view, *rest)

    monkeypatch.setattr("gateway.log.reading.lookahead.verify", watched)
    delivered = rig.cursor(rig.open()).all_now()

    expected = [(n, body) for n, body in enumerate(bodies) if n not in damaged]
    assert offsets_and_records(delivered) == expected
    assert max(checked) > 4 * len(bodies[0])
