"""The parts of a table for one reply."""

from gateway.pravega.handlers.table_pages import STEP, DeltaPage, EntryPage
from hutch.pravega.codec import PAYLOAD_BYTES_MAX
from store.api import ENTRY_BYTES_MAX, TableEntry

SMALL = TableEntry(b"key", b"value", 1)
LARGE = TableEntry(b"key", bytes(ENTRY_BYTES_MAX - 3), 1)


def test_a_page_asks_for_no_more_than_is_left() -> None:
    page = EntryPage(STEP + 2)
    assert page.step == STEP
    page.add([SMALL] * STEP)
    assert (page.step, page.is_full) == (2, False)
    page.add([SMALL] * 2)
    assert page.is_full


def test_keys_of_another_beginning_are_not_of_a_page() -> None:
    page = EntryPage(2, b"ke")
    page.add([TableEntry(b"k", b"", 1), SMALL, TableEntry(b"lke", b"", 1)])
    assert (page.entries, page.step, page.is_full) == ([SMALL], 1, False)


def test_a_page_is_full_while_one_more_step_still_fits() -> None:
    page = EntryPage(1_000)
    size = 0
    while not page.is_full:
        page.add([LARGE] * page.step)
    for entry in page.entries:
        size += len(entry.key) + len(entry.value) + 24
    assert size < PAYLOAD_BYTES_MAX - 70_000  # the segment's name is in the frame, too


def test_a_delta_has_the_last_of_each_key_in_the_order_of_writing() -> None:
    page = DeltaPage(10)
    old, other, new = (TableEntry(key, b"", n) for n, key in enumerate((b"a", b"b", b"a")))
    page.add([old, other], should_clear=False)
    page.add([new], should_clear=False)
    assert list(page.entries) == [other, new]
    page.add([old], should_clear=True)
    assert (list(page.entries), page.should_clear) == ([old], True)
