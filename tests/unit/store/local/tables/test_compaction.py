import logging

import pytest

from store.api import Durability, TableEntry
from store.errors import CorruptSegment
from store.local.state import table
from store.local.tables import compaction
from tests.conformance.harness import Pending
from tests.simulation.disk import Disk, Failure, Write
from tests.unit.store.local.opened import KIB, Opened, opened

KEYS = 20


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "GARBAGE_BYTES_MIN", 4 * KIB)
    monkeypatch.setattr(table, "GARBAGE_BYTES_MIN", 4 * KIB)
    monkeypatch.setattr(compaction, "SLICE_BYTES", 512)


def filled(rig: Opened, rounds: int) -> list[Pending]:
    """Write every key again and again."""
    rig.do(rig.store.create_table, "t")
    return [
        rig.start(rig.store.update_table, "t", [TableEntry(b"k%02d" % key, b"%d" % turn * 40)])
        for turn in range(rounds)
        for key in range(KEYS)
    ]


def entries(rig: Opened) -> dict[bytes, tuple[bytes, int]]:
    page = rig.do(rig.store.iterate_table, "t")
    return {each.key: (each.value, each.version) for each in page.entries}


@pytest.mark.parametrize("durability", Durability)
def test_garbage_goes_and_keys_keep_value_and_version(durability: Durability) -> None:
    disk = Disk()
    rig = opened(disk, durability)
    pending = filled(rig, 20)
    rig.wait(*pending)
    versions = [each.value[0] for each in pending[-KEYS:]]
    rig.loop.run_until(lambda: "1" not in disk.names("data"))
    info, count = rig.do(rig.store.table_info, "t")
    assert info.start > 0
    assert info.length - info.start < 3 * KEYS * 120 + 8 * KIB
    assert count == KEYS
    expected = {b"k%02d" % key: (b"19" * 40, versions[key]) for key in range(KEYS)}
    assert entries(rig) == expected
    rig.crash()
    rig = opened(Disk(disk.image()), durability)
    assert entries(rig) == expected
    rig.do(rig.store.update_table, "t", [TableEntry(b"k00", b"new", versions[0])])
    rig.close()


def test_who_follows_from_before_is_told_to_forget() -> None:
    rig = opened(Disk())
    rig.wait(*filled(rig, 20))
    rig.loop.run_for(0.1)
    seen: dict[bytes, bytes] = {b"old": b"copy"}
    position = 10
    while True:
        delta = rig.do(rig.store.read_table_delta, "t", position, count=7)
        if delta.should_clear:
            seen.clear()
        seen |= {each.key: each.value for each in delta.entries}
        position = delta.position
        if delta.reached_end:
            break
    assert seen == {b"k%02d" % key: b"19" * 40 for key in range(KEYS)}
    rig.close()


def test_an_entry_larger_than_a_slice_is_copied_too() -> None:
    rig = opened(Disk())
    rig.do(rig.store.create_table, "t")
    large = b"L" * 3 * KIB
    rig.do(rig.store.update_table, "t", [TableEntry(b"large", large)])
    rig.wait(
        *(
            rig.start(rig.store.update_table, "t", [TableEntry(b"k", b"v" * 100)])
            for _ in range(100)
        )
    )
    rig.loop.run_for(0.1)
    assert rig.do(rig.store.table_info, "t")[0].start > 0
    assert rig.do(rig.store.read_table, "t", [b"large"])[0].value == large
    rig.close()


def test_a_table_that_is_deleted_meanwhile_is_left_alone() -> None:
    rig = opened(Disk())
    pending = filled(rig, 20)
    while not rig.store.catalogue.names["t"].table.compacting:  # type: ignore[union-attr]
        rig.loop.turn()
    deleted = rig.start(rig.store.delete_table, "t")
    rig.wait(*pending, deleted)
    rig.loop.run_for(0.05)
    assert deleted.value is None
    rig.close()


def test_a_full_disk_stops_it_and_later_it_is_tried_again() -> None:
    disk = Disk()
    rig = opened(disk, Durability.OS)
    rig.wait(*filled(rig, 1))
    table = rig.store.catalogue.names["t"].table
    assert table is not None
    # The disk is full for the first copies.
    disk.failures = [
        Failure(lambda step: isinstance(step, Write) and table.compacting, times=2, is_full=True)
    ]
    while disk.failures[0].times == 2:
        rig.wait(*filled_again(rig, 1))
        rig.loop.run_for(0.005)
    rig.loop.run_for(0.05)
    assert not table.compacting
    disk.failures = []
    before = rig.do(rig.store.table_info, "t")[0].start
    rig.wait(*filled_again(rig, 60))
    rig.loop.run_for(0.2)
    assert rig.do(rig.store.table_info, "t")[0].start > before
    assert len(entries(rig)) == KEYS
    rig.close()


def filled_again(rig: Opened, rounds: int) -> list[Pending]:
    return [
        rig.start(rig.store.update_table, "t", [TableEntry(b"k%02d" % key, b"again" * 9)])
        for _ in range(rounds)
        for key in range(KEYS)
    ]


@pytest.mark.parametrize("place", [3, 9, 13, 30])
def test_an_entry_that_is_damaged_meanwhile_stops_it(
    caplog: pytest.LogCaptureFixture, place: int
) -> None:
    disk = Disk()
    rig = opened(disk)
    rig.wait(*filled(rig, 1))
    begin = rig.do(rig.store.table_info, "t")[0].length
    rig.do(rig.store.update_table, "t", [TableEntry(b"large", b"L" * 3_000)])
    file = disk.open("data/1")
    (before,) = file.read_at(1, begin + place)
    file.write_at(bytes([before ^ 64]), begin + place)
    with caplog.at_level(logging.WARNING):
        rig.wait(*filled_again(rig, 20))
        rig.loop.run_for(0.05)
    assert "compaction stopped segment=t" in caplog.text
    assert rig.do(rig.store.table_info, "t")[0].start == 0
    rig.refused(CorruptSegment, rig.store.read_table, "t", [b"large"])
    rig.close()
