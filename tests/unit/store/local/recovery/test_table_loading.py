"""Tables whose bytes are damaged: nothing wrong is read, all else is, and it is told."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from store.api import TableEntry
from store.errors import CorruptSegment, SegmentFailed
from store.files import OutOfDescriptors
from store.local.damage import Damage, Findings
from store.local.recovery.journal_damage import SET_ASIDE
from store.local.recovery.recovery import recover
from store.local.recovery.table_loading import load_tables
from store.local.state.table_entries import STORED_ENTRY_BYTES_MAX, seed_of
from tests.simulation.disk import Create, Disk, Failure, Image
from tests.unit.store.local.opened import KIB, Opened, opened

VALUES = {b"one": b"1", b"two": b"", b"three": b"3" * 30, b"four": b"4" * 5, b"five": b"55"}
LARGE = b"L" * 3_000

Contents = dict[bytes, bytes]


def written(values: Contents, **sizes: Any) -> Disk:  # noqa: ANN401  # numbers
    """Give the disk of a store with a table, closed, each value written by itself."""
    disk = Disk()
    rig = opened(disk, **sizes)
    rig.do(rig.store.create_table, "t")
    for key, value in values.items():
        rig.do(rig.store.update_table, "t", [TableEntry(key, value)])
    rig.close()
    return disk


def changed(disk: Disk, change: Callable[[bytearray], object], path: str = "data/1") -> Disk:
    """Give a copy of a disk with one file changed."""
    image = disk.image()
    content = bytearray(image.contents[image.names[path]])
    change(content)
    contents = image.contents | {image.names[path]: bytes(content)}
    return Disk(Image(image.directories, image.names, contents))


def flip(place: int, bit: int = 0) -> Callable[[bytearray], object]:
    def change(content: bytearray) -> None:
        content[place] ^= 1 << bit

    return change


def erase(begin: int, end: int) -> Callable[[bytearray], object]:
    def change(content: bytearray) -> None:
        content[begin:end] = bytes(end - begin)

    return change


def entries(rig: Opened) -> Contents:
    page = rig.do(rig.store.iterate_table, "t", count=1_000)
    assert page.continuation is None
    return {each.key: each.value for each in page.entries}


def is_damaged(rig: Opened) -> bool:
    return bool(rig.do(rig.store.table_info, "t")[0].is_damaged)


def places_of(disk: Disk) -> list[range]:
    """Give the bytes of each entry of the table, in the order of VALUES."""
    rig = opened(Disk(disk.image()))
    table = rig.store.catalogue.names["t"].table
    assert table is not None
    places = [range(each.position, each.position + each.size) for each in table.index.values()]
    rig.close()
    return places


def loaded(disk: Disk) -> tuple[Contents, list[Damage]]:
    """Load the table of a disk as an opening does; give what it holds, and what was found."""
    findings = Findings()
    catalogue = recover(disk, 1 << 20, findings).catalogue
    table = catalogue.names["t"].table
    assert table is not None
    return {key: entry.value or b"" for key, entry in table.index.items()}, findings.found


def test_each_bit_that_is_flipped_loses_that_entry_and_no_other() -> None:
    disk = written(VALUES)
    for (key, _), place in zip(VALUES.items(), places_of(disk), strict=True):
        rest = {each: value for each, value in VALUES.items() if each != key}
        for at in place:
            for bit in range(8):
                found, damage = loaded(changed(disk, flip(at, bit)))
                assert found == rest, (at, bit)
                assert [each[1:] for each in damage] == [("data/1", "t", place.start)]


def test_a_lost_entry_is_told_and_the_table_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    disk = written(VALUES)
    third = places_of(disk)[2]
    rig = opened(changed(disk, flip(third.start + 30)))

    line = f"{len(third)} bytes of a table are lost, older values of their keys may be back"
    assert f"{line} segment=t file=data/1 position={third.start}" in caplog.text
    assert is_damaged(rig)
    assert rig.do(rig.store.read_table, "t", [b"three"]) == [None]
    rig.do(rig.store.update_table, "t", [TableEntry(b"three", b"again")])
    assert entries(rig) == VALUES | {b"three": b"again"}
    rig.close()


@pytest.mark.parametrize("first", [True, False])
def test_a_run_of_damaged_bytes_loses_what_is_in_it(*, first: bool) -> None:
    disk = written(VALUES)
    places = places_of(disk)
    begin, end = (0, places[1].start + 3) if first else (places[2].stop - 1, places[-1].stop)
    found, damage = loaded(changed(disk, erase(begin, end)))
    keys = list(VALUES)
    kept = keys[2:] if first else keys[:2]
    assert found == {key: VALUES[key] for key in kept}
    assert len(damage) == 1


def test_two_damaged_places_are_two_findings() -> None:
    disk = written(VALUES)
    places = places_of(disk)
    harmed = changed(changed(disk, flip(places[0].start)), flip(places[3].stop - 1))
    found, damage = loaded(harmed)
    assert sorted(found) == sorted([b"two", b"three", b"five"])
    assert [each.position for each in damage] == [places[0].start, places[3].start]


def test_what_a_lost_file_of_a_table_held_is_lost_alone() -> None:
    values = {b"k%d" % number: b"v" * 200 for number in range(12)}
    disk = written(values, data_file_bytes=KIB)
    image = disk.image()
    assert len(disk.names("data")) == 3
    names = {path: inode for path, inode in image.names.items() if path != "data/2"}
    rig = opened(Disk(Image(image.directories, names, image.contents)), data_file_bytes=KIB)
    found = entries(rig)
    assert set(values) - set(found) == {b"k4", b"k5", b"k6", b"k7"}
    assert is_damaged(rig)
    rig.do(rig.store.update_table, "t", [TableEntry(b"k4", b"new")])
    assert entries(rig) == found | {b"k4": b"new"}
    rig.close()


def test_a_file_that_is_cut_loses_what_was_behind() -> None:
    disk = written(VALUES)
    place = places_of(disk)[3]

    def cut(content: bytearray) -> None:
        del content[place.start + 5 :]

    rig = opened(changed(disk, cut))
    assert set(entries(rig)) == {b"one", b"two", b"three"}
    assert is_damaged(rig)
    rig.do(rig.store.update_table, "t", [TableEntry(b"six", b"6")])
    assert set(entries(rig)) == {b"one", b"two", b"three", b"six"}
    rig.close()


def test_the_files_of_two_tables_that_were_swapped_are_of_neither() -> None:
    disk = Disk()
    rig = opened(disk)
    for name in ("t", "u"):
        rig.do(rig.store.create_table, name)
        rig.do(rig.store.update_table, name, [TableEntry(b"key", name.encode())])
    rig.close()
    image = disk.image()
    names = image.names | {"data/1": image.names["data/2"], "data/2": image.names["data/1"]}
    found, damage = loaded(Disk(Image(image.directories, names, image.contents)))
    assert found == {}
    assert {each.segment for each in damage} == {"t", "u"}


def test_more_damage_than_the_largest_entry_is_passed_over() -> None:
    values = {b"k%02d" % number: bytes([number]) * 400_000 for number in range(12)}
    disk = written(values, data_file_bytes=16 << 20, inline_bytes_max=KIB)
    places = places_of(disk)
    begin, end = places[1].start + 5, places[9].start + 5
    assert end - begin > 2 * STORED_ENTRY_BYTES_MAX
    rig = opened(changed(disk, erase(begin, end)), data_file_bytes=16 << 20)
    assert entries(rig) == {key: values[key] for key in (b"k00", b"k10", b"k11")}
    rig.close()


class BadSector(Disk):
    """A disk of which one byte cannot be read."""

    bad_byte = -1

    def read(self, inode: int, size: int, position: int) -> bytes:
        if inode == self._names["data/1"] and position <= self.bad_byte < position + size:
            raise SegmentFailed("data/1: cannot read: Input/output error")
        return super().read(inode, size, position)


def test_a_bad_sector_loses_no_more_than_what_is_in_it(caplog: pytest.LogCaptureFixture) -> None:
    values = {b"k%02d" % number: b"v" * 200 for number in range(100)}
    disk = BadSector(written(values).image())
    disk.bad_byte = 10_000
    found, damage = loaded(disk)
    assert len(values) - 4_096 // 228 - 2 <= len(found) < len(values)
    assert found.items() <= values.items()
    assert len(damage) == 1
    assert "data file cannot be read file=data/1" in caplog.text
    assert "is not copied, so it is not compacted segment=t" in caplog.text


def test_the_damaged_file_is_kept_in_one_place_at_each_opening() -> None:
    disk = changed(written(VALUES), flip(40))
    before = disk.image()
    for _ in range(3):
        loaded(disk)
    kept = [path for path in disk.image().names if path.startswith(SET_ASIDE)]
    assert kept == [f"{SET_ASIDE}/{seed_of('t'):016x}/data-1"]
    after = disk.image()
    assert after.contents[after.names[kept[0]]] == before.contents[before.names["data/1"]]


def test_the_first_write_leaves_the_damage_behind() -> None:
    disk = changed(written(VALUES), flip(40))
    rig = opened(disk)
    left = entries(rig)
    assert is_damaged(rig)
    rig.do(rig.store.update_table, "t", [TableEntry(b"six", b"6")])
    rig.loop.run_until(lambda: not is_damaged(rig))
    assert entries(rig) == left | {b"six": b"6"}
    rig.crash()
    found, damage = loaded(Disk(disk.image()))
    assert (found, damage) == (left | {b"six": b"6"}, [])


def test_a_file_for_which_there_is_no_descriptor_is_not_taken_for_lost() -> None:
    disk = written(VALUES)
    findings = Findings()
    catalogue = recover(disk, 1 << 20, findings).catalogue
    disk.descriptors_max = disk.descriptors
    with pytest.raises(OutOfDescriptors):
        load_tables(disk, catalogue, findings)
    assert not findings.found


def test_damage_that_cannot_be_copied_stays(caplog: pytest.LogCaptureFixture) -> None:
    disk = changed(written(VALUES), flip(40))
    disk.failures = [
        Failure(lambda step: isinstance(step, Create) and step.path.startswith(SET_ASIDE))
    ]
    rig = opened(disk)
    assert "is not copied, so it is not compacted segment=t" in caplog.text
    rig.do(rig.store.update_table, "t", [TableEntry(b"six", b"6")])
    rig.loop.run_for(0.05)
    assert is_damaged(rig)
    rig.close()


def test_values_that_are_damaged_while_the_store_runs_are_errors() -> None:
    for is_cold in (False, True):
        disk = Disk(is_cold=is_cold)
        rig = opened(disk)
        rig.do(rig.store.create_table, "t")
        for key in (b"a", b"b", b"c"):
            rig.do(rig.store.update_table, "t", [TableEntry(key, key * 3_000)])
        file = disk.open("data/1")
        for place in (0, 8, 9, 13, 17, 24, 25, 26, 3_000, 3_025):
            before = file.read_at(1, 3_026 + place)
            file.write_at(bytes([before[0] ^ 16]), 3_026 + place)
            refused = rig.refused(CorruptSegment, rig.store.read_table, "t", [b"a", b"b", b"c"])
            assert "of table 't' is damaged" in str(refused)
            rig.refused(CorruptSegment, rig.store.iterate_table, "t")
            rig.refused(CorruptSegment, rig.store.read_table_delta, "t", 3_026)
            found = rig.do(rig.store.read_table, "t", [b"a", b"c"])
            assert [each.value for each in found] == [b"a" * 3_000, b"c" * 3_000]
            file.write_at(before, 3_026 + place)
        assert len(entries(rig)) == 3
        rig.close()


def test_a_delta_passes_over_what_the_opening_found_damaged() -> None:
    disk = written(VALUES)
    rig = opened(changed(disk, flip(places_of(disk)[2].start)))
    position, seen, reached_end = 0, [], False
    while not reached_end:
        delta = rig.do(rig.store.read_table_delta, "t", position)
        assert delta.position > position
        seen += [each.key for each in delta.entries]
        position, reached_end = delta.position, delta.reached_end
    assert seen == [key for key in VALUES if key != b"three"]
    rig.close()


History = list[tuple[int, bytes, bytes | None]]


def write_history(rig: Opened, chance: random.Random) -> History:
    """Write and remove keys; give position, key and value of each entry."""
    history: History = []
    for number in range(150):
        key = b"key %d" % chance.randrange(12)
        value = None if chance.random() < 0.2 else b"%d " % number * chance.randrange(150)
        length = rig.do(rig.store.table_info, "t")[0].length
        if value is None:
            rig.do(rig.store.remove_keys, "t", [TableEntry(key, b"")])
        else:
            rig.do(rig.store.update_table, "t", [TableEntry(key, value)])
        if rig.do(rig.store.table_info, "t")[0].length > length:  # nothing is removed twice
            history.append((length, key, value))
    return history


def without(history: History, position: int) -> Contents:
    """Give what is in a table after all but one of its entries."""
    latest = {key: value for at, key, value in history if at != position}
    return {key: value for key, value in latest.items() if value is not None}


def test_the_rest_of_a_long_history_is_as_if_the_lost_entry_had_never_been_written() -> None:
    chance = random.Random(12)
    disk = Disk()
    rig = opened(disk, data_file_bytes=4 * KIB)
    rig.do(rig.store.create_table, "t")
    history = write_history(rig, chance)
    rig.close()
    image = disk.image()
    paths = sorted(f"data/{name}" for name in disk.names("data"))
    for path in paths * 25:
        at = chance.randrange(len(image.contents[image.names[path]]))
        harmed = changed(disk, flip(at, chance.randrange(8)), path)
        rig = opened(harmed, data_file_bytes=4 * KIB)
        table = rig.store.catalogue.names["t"].table
        assert table is not None
        (gap,) = table.damaged
        assert entries(rig) == without(history, gap.start)
        rig.close()
