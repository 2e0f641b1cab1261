"""Chunks that are older than seals, in a stream that was taken over: read and checked as before."""

import logging
import struct

import pytest

from gateway.log.locating import StartKind, locate
from gateway.log.names import writer_of
from store.api import TAKEN_OVER, AttributeUpdate
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import NAMES, LogRig, change_on_disk, event_of
from tests.unit.gateway.log.test_cursor import offsets_and_records
from tests.unit.gateway.log.test_opening_damage import append_raw


def old_rig(make_rig: MakeRig, *, count: int = 6) -> tuple[LogRig, int]:
    """A stream as a store of version 1 leaves it, taken over; gives the size of a chunk."""
    rig = make_rig()
    rig.do(rig.store.create_segment, NAMES.data_segment)
    events = [
        event_of([b"old %d" % n, b"x"], chunk_id=2 * n, timestamp_ms=n, seed=None)
        for n in range(count)
    ]
    for number, event in enumerate(events, 1):
        append_raw(rig, event, 2 * number)
    length = sum(map(len, events))
    rig.do(rig.store.update_attributes, NAMES.data_segment, [AttributeUpdate(TAKEN_OVER, length)])
    return rig, len(events[0])


def of_old_and_new(count: int = 6) -> list[tuple[int, bytes]]:
    old = [(2 * n + m, (b"old %d" % n, b"x")[m]) for n in range(count) for m in range(2)]
    return [*old, (2 * count, b"new"), (2 * count + 1, b"newer")]


def test_chunks_without_seals_are_read_beside_those_with_one(make_rig: MakeRig) -> None:
    rig, _ = old_rig(make_rig)
    log = rig.open()
    rig.commit(log, b"new")
    rig.commit(log, b"newer")
    assert offsets_and_records(rig.cursor(log).all_now()) == of_old_and_new()
    rig.close()
    rig = make_rig(rig.directory)
    log = rig.open()

    assert log.read_only is None
    assert offsets_and_records(rig.cursor(log).all_now()) == of_old_and_new()
    for offset in range(len(of_old_and_new())):
        start = rig.run(locate(log, StartKind.OFFSET, offset))
        assert start.offset == (offset // 2 * 2 if offset < 12 else offset)


@pytest.mark.parametrize("number", [0, 2, 5])
@pytest.mark.parametrize(
    "where", [9, 11, 15, 39, 60], ids=["kind", "count", "records", "id", "data"]
)
def test_damage_to_a_chunk_without_a_seal_is_found_by_its_neighbours(
    make_rig: MakeRig, caplog: pytest.LogCaptureFixture, number: int, where: int
) -> None:
    rig, size = old_rig(make_rig)
    log = rig.open()
    rig.commit(log, b"new")
    rig.commit(log, b"newer")
    content = rig.content()
    rig.close()
    change_on_disk(rig, content, (number * size + where, content[number * size + where] ^ 4))
    rig = make_rig(rig.directory)
    log = rig.open()

    expected = [each for each in of_old_and_new() if each[0] // 2 != number or each[0] > 11]
    assert offsets_and_records(rig.cursor(log).all_now()) == expected
    assert f"stream=orders position={number * size} " in caplog.text


def test_a_seal_is_asked_of_the_first_chunk_behind_those_without(make_rig: MakeRig) -> None:
    rig, size = old_rig(make_rig)
    append_raw(rig, event_of([b"no seal"], chunk_id=12, timestamp_ms=9, seed=None), 13)
    rig.close()
    rig = make_rig(rig.directory)
    log = rig.open()

    records = offsets_and_records(rig.cursor(log).all_now())
    assert records == of_old_and_new()[:12]
    assert log.committed_next_offset == 13
    assert log.committed_length > 6 * size


def test_an_index_from_before_its_entries_had_checksums_is_built_again(
    make_rig: MakeRig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    rig, _ = old_rig(make_rig)
    segment = NAMES.index_segment
    rig.do(rig.store.create_segment, segment)
    writer = rig.do(rig.store.open_writer, segment, writer_of(segment))
    rig.do(writer.append, struct.pack(">QqQ", 0, 0, 0), 1)
    rig.do(rig.store.update_attributes, segment, [AttributeUpdate(TAKEN_OVER, 24)])
    log = rig.open()
    assert f"index of the older format is rebuilt segment={segment}" in caplog.text
    assert list(log.index.positions) == [0]
    rig.save(log)

    caplog.clear()
    log = rig.open()

    assert list(log.index.positions) == [0]
    assert "rebuilt" not in caplog.text
    assert offsets_and_records(rig.cursor(log).all_now()) == of_old_and_new()[:12]
