import pytest

from store.api import ENTRY_BYTES_MAX, KEY_BYTES_MAX
from store.errors import CorruptSegment
from store.local.table_entries import ENTRY_HEAD_BYTES, StoredEntry, bytes_of_entry, entries_of


def test_entries_come_back_with_their_places() -> None:
    first, second, third = (
        bytes_of_entry(b"key", b"value"),
        bytes_of_entry(b"k", None),
        bytes_of_entry(b"key", b"", 40),
    )
    found = list(entries_of(first + second + third, 1_000))
    behind_first = 1_000 + len(first)
    behind_second = behind_first + len(second)
    assert found == [
        StoredEntry(1_000, len(first), b"key", b"value", 1_000),
        StoredEntry(behind_first, len(second), b"k", None, behind_first),
        StoredEntry(behind_second, len(third), b"key", b"", 40),
    ]


def test_an_entry_that_is_cut_is_left_for_later() -> None:
    whole = bytes_of_entry(b"key", b"value")
    for size in range(len(whole)):
        assert len(list(entries_of(whole + whole[:size], 0))) == 1


def test_the_largest_entry_fits() -> None:
    key = b"k" * KEY_BYTES_MAX
    value = b"v" * (ENTRY_BYTES_MAX - KEY_BYTES_MAX)
    data = bytes_of_entry(key, value)
    assert len(data) == ENTRY_HEAD_BYTES + ENTRY_BYTES_MAX
    (entry,) = entries_of(data, 0)
    assert (entry.key, entry.value) == (key, value)


@pytest.mark.parametrize(
    "data",
    [
        bytes(ENTRY_HEAD_BYTES),
        bytes_of_entry(b"", b"value"),
        bytes_of_entry(b"k" * (KEY_BYTES_MAX + 1), b""),
        b"\x02" + bytes_of_entry(b"key", b"value")[1:],
    ],
)
def test_what_is_no_entry_is_damage(data: bytes) -> None:
    with pytest.raises(CorruptSegment, match="position 7"):
        list(entries_of(data, 7))
