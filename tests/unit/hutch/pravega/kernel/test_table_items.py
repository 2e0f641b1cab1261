"""Lists of keys and entries, read compiled and interpreted."""

from types import ModuleType
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hutch.pravega.errors import WireError
from hutch.pravega.wire_types import EntryType, Items, Key, KeyAndValue, TableKey
from tests.property.gateway.kernel_builds import BUILDS, load

I64: Final = st.integers(-(2**63), 2**63 - 1)
KEYS: Final = st.builds(TableKey, st.binary(min_size=1, max_size=20), I64)
ENTRIES: Final = st.builds(KeyAndValue, KEYS, st.binary(max_size=20))
KEY_LIST: Final = Items(Key())
ENTRY_LIST: Final = Items(EntryType())
"""These read without the kernel."""
COUNT_BYTES: Final = 4


@pytest.fixture(params=BUILDS, scope="module")
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    return load("hutch.pravega.kernel.table_items", request.param)


@given(st.lists(KEYS, max_size=5), st.binary(max_size=5))
def test_keys_are_read_as_they_were_written(
    kernel: ModuleType, keys: list[TableKey], behind: bytes
) -> None:
    data = bytearray()
    KEY_LIST.write(tuple(keys), data)
    end = len(data)

    found = kernel.keys(memoryview(data + behind), COUNT_BYTES, len(keys), TableKey)

    assert found == (keys, end)
    assert all(type(key) is TableKey for key in found[0])


@given(st.lists(ENTRIES, max_size=5), st.binary(max_size=5))
def test_entries_are_read_as_they_were_written(
    kernel: ModuleType, entries: list[KeyAndValue], behind: bytes
) -> None:
    data = bytearray()
    ENTRY_LIST.write(tuple(entries), data)
    end = len(data)

    view = memoryview(data + behind)
    found = kernel.entries(view, COUNT_BYTES, len(entries), TableKey, KeyAndValue)

    assert found == (entries, end)
    assert all(type(each) is KeyAndValue and type(each.key) is TableKey for each in found[0])


@given(st.lists(ENTRIES, max_size=3), st.data())
def test_what_is_damaged_is_left_to_the_caller_or_means_the_same(
    kernel: ModuleType, entries: list[KeyAndValue], data: st.DataObject
) -> None:
    written = bytearray()
    ENTRY_LIST.write(tuple(entries), written)
    place = data.draw(st.integers(COUNT_BYTES, len(written)))
    removed, inserted = data.draw(st.integers(0, 4)), data.draw(st.binary(max_size=4))
    view = memoryview(written[:place] + inserted + written[place + removed :])

    found = kernel.entries(view, COUNT_BYTES, len(entries), TableKey, KeyAndValue)
    keys = kernel.keys(view, COUNT_BYTES, len(entries), TableKey)

    assert found is None or means(ENTRY_LIST, view) == (tuple(found[0]), found[1])
    assert keys is None or means(KEY_LIST, view) == (tuple(keys[0]), keys[1])


def means(items: Items[TableKey] | Items[KeyAndValue], view: memoryview) -> object:
    try:
        return items.read(view, 0)
    except WireError:
        return None


@pytest.mark.parametrize("size", [0, -1, 2**31 - 1])
def test_an_empty_key_and_sizes_that_cannot_be_are_left_to_the_caller(
    kernel: ModuleType, size: int
) -> None:
    head = (12 + size).to_bytes(4) if 0 <= size < 100 else b"\x7f\xff\xff\xff"
    data = head + size.to_bytes(4, signed=True) + bytes(30)

    assert kernel.keys(memoryview(data), 0, 1, TableKey) is None
    assert kernel.entries(memoryview(data), 0, 1, TableKey, KeyAndValue) is None
