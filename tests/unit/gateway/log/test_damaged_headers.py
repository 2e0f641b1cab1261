"""Chunks whose headers were damaged, which no checksum covers: never delivered, the others are."""

import itertools
import logging
from collections.abc import Iterator

import pytest

from gateway.log.derived import index as index_module
from gateway.log.derived.filters import SubscriptionFilter
from gateway.log.reading import cursor as cursor_module
from gateway.log.reading.locations import StartKind, locate
from gateway.log.recovery import chunk_walk as walking
from tests.chunks import SubBatch
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import LogRig, change_on_disk, put
from tests.unit.gateway.log.reading.test_cursor import offsets_and_records
from tests.unit.gateway.log.recovery.test_log_opening_damage import index_entry

COUNT = 12
FIELDS = {"kind": (9, 1), "entries": (10, 2), "records": (12, 4), "id": (32, 8)}
"""Place and size in an event: what clients are given and its checksum does not cover."""


@pytest.fixture(params=["small", "large"], autouse=True)
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Several spans, scans and checks in one stream; bytes of a record."""
    if request.param == "small":
        monkeypatch.setattr(index_module, "SPAN_BYTES", 400)
        monkeypatch.setattr(walking, "SLICE_BYTES", 500)
        monkeypatch.setattr(cursor_module, "_CHECK_BYTES", 700)
        yield 40
    else:
        yield 5_000


Written = list[tuple[int, bytes]]


def written_rig(make_rig: MakeRig, size: int) -> tuple[LogRig, list[int], Written]:
    """A stream of chunks of one to three records, closed in good order; where each chunk is."""
    rig = make_rig()
    log = rig.create()
    places, records = [], []
    for number in range(COUNT):
        places.append(log.committed_length)
        bodies = [b"%d-%d" % (number, each) + bytes(size) for each in range(number % 3 + 1)]
        first = log.committed_next_offset
        put(log, bodies)
        rig.settle(log)
        records += [(first + each, body) for each, body in enumerate(bodies)]
    return rig, places, records


def reopened(make_rig: MakeRig, rig: LogRig, *damage: tuple[int, int]) -> LogRig:
    """Close, change bytes on the disk (place, xor), and open again."""
    content = rig.content()
    rig.close()
    change_on_disk(rig, content, *((place, content[place] ^ bits) for place, bits in damage))
    return make_rig(rig.directory)


def of_other_chunks(records: Written, places: list[int], number: int) -> Written:
    del places
    first = sum(each % 3 + 1 for each in range(number))
    return [each for each in records if not first <= each[0] < first + number % 3 + 1]


@pytest.mark.parametrize("saves_snapshot", [True, False])
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("number", [0, 5, COUNT - 2, COUNT - 1])
def test_a_chunk_with_a_bit_flipped_in_its_header_is_left_out(
    make_rig: MakeRig,
    caplog: pytest.LogCaptureFixture,
    sizes: int,
    field: str,
    number: int,
    *,
    saves_snapshot: bool,
) -> None:
    rig, places, records = written_rig(make_rig, sizes)
    if saves_snapshot:
        rig.save(rig.open())
    start, size = FIELDS[field]
    for place, bits in itertools.islice(
        _bits(places[number] + start, size), number, None, 8 * size // 3 + 1
    ):
        copy = LogRig(rig.crash_copy(rig.directory.parent / f"{rig.directory.name}-{place}-{bits}"))
        changed = reopened(make_rig, copy, (place, bits))
        caplog.clear()
        with caplog.at_level(logging.ERROR):
            log = changed.open()
            assert log.read_only is None
            changed.commit(log, b"new")
            delivered = offsets_and_records(changed.cursor(log).all_now())
        expected = of_other_chunks(records, places, number)
        assert delivered == [*expected, (len(records), b"new")], (place - places[number], bits)
        assert f"position={places[number]} " in caplog.text


def _bits(start: int, size: int) -> Iterator[tuple[int, int]]:
    return ((start + byte, 1 << bit) for byte in range(size) for bit in range(8))


def test_an_offset_is_found_behind_a_chunk_whose_offset_was_damaged(
    make_rig: MakeRig, sizes: int
) -> None:
    rig, places, records = written_rig(make_rig, sizes)
    rig.save(rig.open())
    rig = reopened(make_rig, rig, (places[5] + 32 + 7, 0x40))
    log = rig.open()
    expected = of_other_chunks(records, places, 5)

    for offset in range(len(records)):
        start = rig.run(locate(log, StartKind.OFFSET, offset))
        delivered = offsets_and_records(rig.cursor(log, start.position).all_now())
        assert delivered[-1] == records[-1]
        assert [each for each in delivered if each[0] >= offset] == [
            each for each in expected if each[0] >= offset
        ]


@pytest.mark.parametrize("bit", [0, 2, 5])
@pytest.mark.parametrize("byte", [7, 15, 23])
@pytest.mark.parametrize("entry", [0, 1, 2])
def test_an_index_whose_entry_was_damaged_hides_nothing(
    make_rig: MakeRig, sizes: int, entry: int, byte: int, bit: int
) -> None:
    rig, _, records = written_rig(make_rig, sizes)
    log = rig.open()
    rig.save(log)
    index = b"".join(
        index_entry(*entry)
        for entry in zip(
            log.index.offsets, log.index.timestamps_ms, log.index.positions, strict=True
        )
    )
    # The last one where there are fewer.
    place = min(28 * entry, len(index) - 28) + byte
    rig.close()
    change_on_disk(rig, index, (place, index[place] ^ 1 << bit))
    rig = make_rig(rig.directory)
    log = rig.open()

    assert offsets_and_records(rig.cursor(log).all_now()) == records
    for offset in range(len(records)):
        start = rig.run(locate(rig.open(), StartKind.OFFSET, offset))
        delivered = offsets_and_records(rig.cursor(log, start.position).all_now())
        assert [each for each in delivered if each[0] >= offset] == records[offset:]


def test_chunks_of_sub_batches_have_their_records_counted(make_rig: MakeRig) -> None:
    rig = make_rig()
    log = rig.create()
    for _ in range(3):
        put(log, [SubBatch.of([b"a", b"b", b"c"]), b"d"])
        rig.settle(log)
    rig.close()
    rig = make_rig(rig.directory)

    assert [chunk.record_count for chunk in rig.cursor(rig.open()).all_now()] == [4, 4, 4]


def test_a_filtered_reader_is_given_no_chunk_with_a_damaged_offset(make_rig: MakeRig) -> None:
    rig = make_rig()
    log = rig.create()
    places = []
    for number in range(6):
        places.append(log.committed_length)
        rig.commit(log, b"%d" % number, values=[b"v"])
    rig.save(log)
    rig = reopened(make_rig, rig, (places[2] + 32 + 7, 0x10))
    wanted = SubscriptionFilter([b"v"], unfiltered=False)

    delivered = offsets_and_records(rig.cursor(rig.open(), wanted=wanted).all_now())

    assert delivered == [(n, b"%d" % n) for n in range(6) if n != 2]


def test_after_a_truncation_the_rest_is_checked_as_before(make_rig: MakeRig, sizes: int) -> None:
    rig, places, records = written_rig(make_rig, sizes)
    log = rig.open()
    rig.save(log)
    cut = log.index.positions[min(2, len(log.index) - 1)]
    rig.do(rig.store.truncate_segment, "rmq-.2f/_orders-1/0.#epoch.0", cut)
    kept = [each for each in records if each[0] >= log.index.offset_at(cut)]  # type: ignore[operator]
    content = rig.content()
    rig.close()
    place = places[-2] - cut + 32 + 7
    change_on_disk(rig, content, (place, content[place] ^ 0x20))
    rig = make_rig(rig.directory)
    gone = of_other_chunks(records, places, COUNT - 2)

    delivered = offsets_and_records(rig.cursor(rig.open()).all_now())

    assert delivered == [each for each in kept if each in gone]
