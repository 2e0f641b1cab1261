import random

import pytest

from store.api import ENTRY_BYTES_MAX, KEY_BYTES_MAX
from store.errors import CorruptSegment
from store.local.state.table_entries import (
    ENTRY_HEAD_BYTES,
    StoredEntry,
    entries_of,
    find_entry,
    parts_of_entry,
    seed_of,
)

SEED = seed_of("t")


def encoded(position: int, *entries: tuple[bytes, bytes | None, int | None]) -> bytes:
    """Encode entries one after another from a position on."""
    data = b""
    for entry in entries:
        data += b"".join(parts_of_entry(SEED, position + len(data), *entry))
    return data


def test_entries_come_back_with_their_places() -> None:
    data = encoded(1_000, (b"key", b"value", None), (b"k", None, None), (b"key", b"", 40))
    sizes = [ENTRY_HEAD_BYTES + size for size in (8, 1, 3)]
    second, third = 1_000 + sizes[0], 1_000 + sizes[0] + sizes[1]
    assert list(entries_of(data, 1_000, SEED)) == [
        StoredEntry(1_000, sizes[0], b"key", b"value", 1_000),
        StoredEntry(second, sizes[1], b"k", None, second),
        StoredEntry(third, sizes[2], b"key", b"", 40),
    ]


def test_an_entry_that_is_cut_is_left_for_later() -> None:
    data = encoded(0, (b"key", b"value", None), (b"key", b"value", None))
    for size in range(len(data) // 2):
        assert len(list(entries_of(data[: len(data) // 2 + size], 0, SEED))) == 1


def test_the_largest_entry_fits() -> None:
    key = b"k" * KEY_BYTES_MAX
    value = b"v" * (ENTRY_BYTES_MAX - KEY_BYTES_MAX)
    data = encoded(0, (key, value, None))
    assert len(data) == ENTRY_HEAD_BYTES + ENTRY_BYTES_MAX
    (entry,) = entries_of(data, 0, SEED)
    assert (entry.key, entry.value) == (key, value)


@pytest.mark.parametrize(
    "data",
    [
        bytes(ENTRY_HEAD_BYTES),
        encoded(7, (b"", b"value", None)),
        encoded(7, (b"k" * (KEY_BYTES_MAX + 1), b"", None)),
    ],
)
def test_what_is_no_entry_is_damage(data: bytes) -> None:
    with pytest.raises(CorruptSegment, match="position 7"):
        list(entries_of(data, 7, SEED))


def test_no_bit_of_an_entry_can_be_another_one() -> None:
    data = encoded(7, (b"key", b"value", 3))
    for place in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            try:
                found = list(entries_of(bytes(changed), 7, SEED))
            except CorruptSegment:
                continue
            # A size that goes behind the end: the rest may come.
            assert found == []
            assert 9 <= place < 17


def test_an_entry_of_another_table_or_place_does_not_check_out() -> None:
    data = encoded(7, (b"key", b"value", 3))
    for position, seed in ((7, seed_of("u")), (8, SEED)):
        with pytest.raises(CorruptSegment):
            list(entries_of(data, position, seed))


def test_the_next_entry_is_found_behind_any_bytes() -> None:
    chance = random.Random(5)
    entry = b"".join(parts_of_entry(SEED, 1_000, b"key", b"value"))
    removal = b"".join(parts_of_entry(SEED, 1_000, b"key", None, 3))
    for size in (0, 1, 8, 9, 300):
        for each in (entry, removal):
            for filler in (chance.randbytes(size), b"\2" * size, bytes(size), entry[:size]):
                data = filler.ljust(size, b"\0") + each + b"\2" * 50
                begin = 1_000 - size
                assert find_entry(data, begin, SEED, size + 1) == size
                assert find_entry(data, begin, SEED, size) is None
                assert find_entry(data[:-51], begin, SEED, size + 1) is None
