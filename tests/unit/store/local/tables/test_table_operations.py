import pytest

from store.api import ANY_VERSION, ENTRY_BYTES_MAX, NOT_EXISTS, Durability, TableEntry
from store.errors import InvalidArgument, KeyVersionMismatch, NotATable, TableNotEmpty
from store.local.tables import table_reads as table_reading
from tests.simulation.disk import Disk, MemoryFile
from tests.unit.store.local.opened import Opened, opened


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def rig(disk: Disk) -> Opened:
    rig = opened(disk)
    rig.do(rig.store.create_table, "t")
    rig.do(rig.store.create_table, "f", key_length=2)
    return rig


def put(rig: Opened, name: str, **values: bytes) -> list[int]:
    entries = [TableEntry(key.encode(), value) for key, value in values.items()]
    return list(rig.do(rig.store.update_table, name, entries))


@pytest.mark.parametrize("is_cold", [False, True])
def test_large_values_are_read_from_the_file(rig: Opened, disk: Disk, *, is_cold: bool) -> None:
    put(rig, "t", small=b"s", large=b"L" * 5_000, empty=b"", other=b"O" * 300)
    disk.is_cold = is_cold
    keys = [b"large", b"none", b"small", b"other", b"empty", b"large"]
    found = rig.do(rig.store.read_table, "t", keys)
    assert [each and each.value for each in found] == [
        b"L" * 5_000, None, b"s", b"O" * 300, b"", b"L" * 5_000,
    ]  # fmt: skip
    page = rig.do(rig.store.iterate_table, "t")
    assert {each.key: len(each.value) for each in page.entries} == {
        b"small": 1, b"large": 5_000, b"empty": 0, b"other": 300,
    }  # fmt: skip
    rig.close()


def test_the_loop_reads_no_more_than_a_turn_allows(
    rig: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {f"k{number}": bytes([number]) * 300_000 for number in range(9)}
    for name, value in values.items():
        put(rig, "t", **{name: value})
    read: list[int] = []
    read_cached_at = MemoryFile.read_cached_at

    def noted(file: MemoryFile, size: int, position: int) -> bytes | None:
        read.append(size)
        return read_cached_at(file, size, position)

    monkeypatch.setattr(MemoryFile, "read_cached_at", noted)
    found = rig.do(rig.store.read_table, "t", [name.encode() for name in values])
    assert [each and each.value for each in found] == list(values.values())
    assert len(read) == 3
    assert sum(read) <= table_reading.CACHED_BYTES
    rig.close()


@pytest.mark.parametrize("is_cold", [False, True])
def test_a_delta_goes_through_everything_in_pieces(
    rig: Opened, disk: Disk, *, is_cold: bool
) -> None:
    for number in range(50):
        put(rig, "t", **{f"k{number:02d}": b"v" * (number * 400)})
    disk.is_cold = is_cold
    position, seen = 0, []
    while True:
        delta = rig.do(rig.store.read_table_delta, "t", position, count=9)
        assert not delta.should_clear
        seen += [each.key for each in delta.entries]
        position = delta.position
        if delta.reached_end:
            break
    assert seen == [b"k%02d" % number for number in range(50)]
    assert position == rig.do(rig.store.table_info, "t")[0].length
    rig.close()


def test_the_largest_entry_comes_in_a_delta(rig: Opened) -> None:
    put(rig, "t", k=b"v" * (ENTRY_BYTES_MAX - 1))
    (entry,) = rig.do(rig.store.read_table_delta, "t", 0).entries
    assert len(entry.value) == ENTRY_BYTES_MAX - 1
    rig.close()


def test_a_page_of_large_values_ends_early(rig: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_reading, "PAGE_BYTES_MAX", 1_000)
    put(rig, "t", **{f"k{number}": b"v" * 400 for number in range(9)})
    keys, continuation, pages = [], None, 0
    while pages == 0 or continuation is not None:
        page = rig.do(rig.store.iterate_table, "t", continuation=continuation)
        keys += [each.key for each in page.entries]
        continuation, pages = page.continuation, pages + 1
    assert keys == [b"k%d" % number for number in range(9)]
    assert pages == 5
    rig.close()


def test_conditions_see_what_is_on_its_way(rig: Opened) -> None:
    first = rig.start(rig.store.update_table, "t", [TableEntry(b"k", b"1", NOT_EXISTS)])
    second = rig.start(rig.store.update_table, "t", [TableEntry(b"k", b"2", NOT_EXISTS)])
    third = rig.start(rig.store.update_table, "t", [TableEntry(b"k", b"3", 0)])
    rig.wait(first, second, third)
    assert first.value == [0]
    assert second.error(KeyVersionMismatch).key == b"k"
    assert third.value[0] > 0
    rig.close()


def test_a_condition_that_fails_tells_the_length_of_the_table_s_keys(rig: Opened) -> None:
    for table, key, length in (("t", b"k", 0), ("f", b"kk", 2)):
        for change in (rig.store.update_table, rig.store.remove_keys):
            error = rig.refused(KeyVersionMismatch, change, table, [TableEntry(key, b"", 5)])
            assert (error.key, error.version, error.key_length) == (key, NOT_EXISTS, length)
    rig.close()


def test_a_removal_of_what_is_not_there_writes_nothing(rig: Opened) -> None:
    before = rig.do(rig.store.table_info, "t")[0].length
    rig.do(rig.store.remove_keys, "t", [TableEntry(b"k", b"", ANY_VERSION)])
    rig.do(rig.store.remove_keys, "t", [TableEntry(b"k", b"", NOT_EXISTS)])
    rig.do(rig.store.remove_keys, "t", [])
    assert rig.do(rig.store.table_info, "t")[0].length == before
    assert rig.do(rig.store.update_table, "t", []) == []
    rig.close()


def test_limits(rig: Opened) -> None:
    update = rig.store.update_table
    for entry in (
        TableEntry(b"", b"v"),
        TableEntry(b"k" * 8_193, b""),
        TableEntry(b"k", b"v" * ENTRY_BYTES_MAX),
    ):
        rig.refused(InvalidArgument, update, "t", [entry])
    batch = [TableEntry(b"%03d" % number, b"v" * 1_000_000) for number in range(17)]
    rig.refused(InvalidArgument, update, "t", batch)
    rig.refused(InvalidArgument, update, "f", [TableEntry(b"abc", b"")])
    rig.refused(InvalidArgument, rig.store.remove_keys, "f", [TableEntry(b"abc", b"")])
    rig.refused(InvalidArgument, rig.store.create_table, "x", key_length=-1)
    rig.refused(InvalidArgument, rig.store.create_table, "x", key_length=8_193)
    rig.refused(InvalidArgument, rig.store.iterate_table, "t", count=0)
    rig.refused(InvalidArgument, rig.store.iterate_table, "t", first=b"a")
    rig.refused(InvalidArgument, rig.store.read_table_delta, "t", 0, count=0)
    rig.close()


def test_a_batch_above_one_mebibyte_is_whole(rig: Opened) -> None:
    batch = [TableEntry(b"%03d" % number, b"v" * 1_000_000) for number in range(5)]
    versions = rig.do(rig.store.update_table, "t", batch)
    assert len(set(versions)) == 5
    assert rig.do(rig.store.table_info, "t")[1] == 5
    rig.close()


def test_whether_a_table_is_empty_counts_what_is_on_its_way(rig: Opened) -> None:
    put(rig, "t", k=b"v")
    removed = rig.start(rig.store.remove_keys, "t", [TableEntry(b"k", b"")])
    added = rig.start(rig.store.update_table, "t", [TableEntry(b"l", b"v")])
    refused = rig.start(rig.store.delete_table, "t", must_be_empty=True)
    removed_too = rig.start(rig.store.remove_keys, "t", [TableEntry(b"l", b"")])
    deleted = rig.start(rig.store.delete_table, "t", must_be_empty=True)
    rig.wait(removed, added, refused, removed_too, deleted)
    refused.error(TableNotEmpty)
    assert deleted.value is None
    rig.close()


def test_table_operations_want_a_table(rig: Opened) -> None:
    rig.create("a")
    rig.refused(NotATable, rig.store.update_table, "a", [TableEntry(b"k", b"v")])
    rig.refused(NotATable, rig.store.read_table, "a", [b"k"])
    rig.refused(NotATable, rig.store.delete_table, "a")
    rig.close()


def test_one_update_may_ask_for_less_than_the_store_does(rig: Opened, disk: Disk) -> None:
    put(rig, "t", k=b"v")
    begin = len(disk.record)
    entries = [TableEntry(b"k", b"w")]
    rig.do(rig.store.update_table, "t", entries, durability=Durability.OS)
    assert [type(step).__name__ for step in disk.record[begin:]] == ["Write", "Write"]
    rig.close()
