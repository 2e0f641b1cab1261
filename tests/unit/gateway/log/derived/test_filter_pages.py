"""Stored filter values: what is noted, what is read of it, and that nothing is held back by it."""

import struct

import pytest

from gateway.log.derived import filter_pages
from gateway.log.derived.filter_pages import FilterNotes, FilterPage
from gateway.log.derived.filters import SubscriptionFilter, pack_filters
from gateway.log.log import StreamLog
from gateway.log.names import writer_of
from store.errors import NoSuchSegment
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import NAMES, LogRig
from tests.unit.gateway.log.reading.test_filter_scan import count_reading

FIG, PEAR = pack_filters({b"fig"}), pack_filters({b"pear"})
LARGE = bytes(100_000)
KIB = 1024


def noted(*chunks: tuple[int, bytes], first: int = 0) -> FilterNotes:
    """Notes of chunks of (size, filter values), one behind the other."""
    notes = FilterNotes(epoch=3)
    position = first
    for number, (size, packed) in enumerate(chunks):
        notes.note(position, size, number, packed)
        position += size
    return notes


def runs_of(notes: FilterNotes) -> list[tuple[int, bytes | None]]:
    (page,) = map(FilterPage, notes.take())
    return list(page.runs())


# What is noted


def test_chunks_in_a_row_with_the_same_values_are_one_run() -> None:
    notes = noted((100, FIG), (200, FIG), (50_000, FIG), (50_000, PEAR), (50_000, b""), (1, b""))

    assert runs_of(notes) == [(50_300, FIG), (50_000, PEAR), (50_001, b"")]


def test_small_chunks_of_different_values_have_to_be_asked_themselves() -> None:
    notes = noted((5_000, FIG), (2_000, PEAR), (2_000, FIG), (50_000, PEAR), (100, FIG))

    assert runs_of(notes) == [(9_000, None), (50_000, PEAR), (100, FIG)]


def test_values_that_are_large_for_their_chunk_stay_with_it() -> None:
    many = pack_filters({b"%d" % number for number in range(600)})

    assert runs_of(noted((50_000, many), (50_000, FIG), (200_000, many))) == [
        (50_000, None),
        (50_000, FIG),
        (200_000, many),
    ]


def test_a_page_says_what_it_covers_and_which_chunk_was_the_last() -> None:
    (page,) = map(FilterPage, noted((10_000, FIG), (20_000, PEAR), first=500).take())

    assert (page.first, page.end) == (500, 30_500)
    assert (page.last_position, page.last_id, page.epoch) == (10_500, 1, 3)


def test_a_gap_begins_a_new_page() -> None:
    notes = noted((10_000, FIG))
    notes.note(50_000, 10_000, 7, FIG)

    assert [(page.first, page.end) for page in map(FilterPage, notes.take())] == [
        (0, 10_000),
        (50_000, 60_000),
    ]


def test_what_waits_to_be_stored_is_bounded() -> None:
    notes = FilterNotes(epoch=1)
    for number in range(100_000):
        values = pack_filters({b"%0100d" % number})
        notes.note(number * 20_000, 20_000, number, values)

    pages = notes.take()

    assert sum(map(len, pages)) <= filter_pages.NOTES_BYTES_MAX
    assert all(len(page) < filter_pages.PAGE_BYTES + KIB for page in pages)
    assert FilterPage(pages[-1]).end == 100_000 * 20_000
    assert notes.take() == []


def test_a_damaged_page_is_no_page() -> None:
    (stored,) = noted((10_000, FIG)).take()
    for place in range(len(stored)):
        damaged = bytearray(stored)
        damaged[place] ^= 1
        with pytest.raises(ValueError, match="page"):
            FilterPage(bytes(damaged))
        with pytest.raises(ValueError, match="page"):
            FilterPage(stored[:place])


# What is read


def wanting(value: bytes) -> SubscriptionFilter:
    return SubscriptionFilter({value}, unfiltered=False)


def ten_values(rig: LogRig, log: StreamLog, count: int = 20, size: int = 100_000) -> None:
    for number in range(count):
        rig.commit(log, bytes(size), values={b"%d" % (number % 10)})


def ids_given(rig: LogRig, log: StreamLog, value: bytes) -> list[int]:
    tap = rig.cursor(log, wanted=wanting(value), takes_regions=True)
    return [chunk.chunk_id for chunk in tap.all_now()]


def test_nothing_at_all_is_read_of_chunks_whose_values_are_stored(rig: LogRig) -> None:
    log = rig.create()
    ten_values(rig, log)
    rig.save(log)
    counting = count_reading(log)

    assert ids_given(rig, log, b"3") == [3, 13]

    # The header of the page's last chunk, and what is delivered, which sendfile reads.
    assert counting.bytes_read < 2 * 4096 + 200


def test_neither_is_it_after_a_restart_and_from_a_cold_disk(rig: LogRig) -> None:
    log = rig.create()
    ten_values(rig, log, size=400_000)
    rig.save(log)
    log = rig.open()
    counting = count_reading(log, is_cold=True)

    assert ids_given(rig, log, b"3") == [3, 13]

    assert counting.bytes_read < 2 * 2 * 400_000 + 100_000


def test_what_was_written_since_is_asked_for_its_values(rig: LogRig) -> None:
    log = rig.create()
    ten_values(rig, log)
    rig.save(log)
    ten_values(rig, log)

    assert ids_given(rig, log, b"3") == [3, 13, 23, 33]
    rig.save(log)
    assert ids_given(rig, log, b"3") == [3, 13, 23, 33]
    assert ids_given(rig, rig.open(), b"3") == [3, 13, 23, 33]


def test_a_stream_without_filter_values_has_no_such_segment(rig: LogRig) -> None:
    log = rig.create()
    rig.commit(log, b"x")
    rig.save(log)

    with pytest.raises(NoSuchSegment):
        rig.do(rig.store.info, NAMES.filter_segment)
    assert ids_given(rig, log, b"3") == []


def test_without_the_segment_the_chunks_are_asked(rig: LogRig) -> None:
    log = rig.create()
    ten_values(rig, log)
    rig.save(log)
    rig.do(rig.store.delete_segment, NAMES.filter_segment)

    assert ids_given(rig, rig.open(), b"3") == [3, 13]


@pytest.mark.parametrize("damage", ["other bytes", "no page at all", "a size beyond the end"])
def test_damaged_pages_hold_nothing_back_and_the_log_says_so(
    rig: LogRig, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    log = rig.create()
    ten_values(rig, log)
    rig.save(log)
    (stored,) = noted((100_068, FIG)).take()
    written = {
        "other bytes": stored[:-1] + b"?",
        "no page at all": b"\0" * 100,
        "a size beyond the end": struct.pack(">I", 1 << 30) + stored[4:],
    }[damage]
    rig.do(rig.store.delete_segment, NAMES.filter_segment)
    append(rig, written)

    assert ids_given(rig, rig.open(), b"3") == [3, 13]
    expected = "filter pages are damaged segment="
    if damage == "other bytes":
        expected = "filter page is dropped stream=orders position=0 error="
    assert expected in caplog.text


def append(rig: LogRig, page: bytes) -> None:
    """Append to the filter segment behind the log's back."""
    rig.do(rig.store.create_segment, NAMES.filter_segment)
    segment = NAMES.filter_segment
    writer = rig.do(rig.store.open_writer, segment, writer_of(segment))
    rig.do(writer.append, page, 1)


@pytest.mark.parametrize("epoch", [1, 2])
def test_pages_about_chunks_that_are_no_longer_there_hold_nothing_back(
    rig: LogRig, epoch: int
) -> None:
    log = rig.create()
    ten_values(rig, log)
    length = log.committed_length
    # As after a power cut that took the end of the stream, where others were written then.
    stale = FilterNotes(epoch)
    stale.note(0, length - 50_000, 4 + epoch, FIG)
    append(rig, stale.take()[0])

    assert ids_given(rig, rig.open(), b"3") == [3, 13]


def test_a_page_beyond_the_end_is_not_believed(rig: LogRig) -> None:
    log = rig.create()
    ten_values(rig, log)
    stale = FilterNotes(1)
    stale.note(0, log.committed_length + 1, 0, FIG)
    append(rig, stale.take()[0])

    assert ids_given(rig, rig.open(), b"3") == [3, 13]


def test_of_pages_for_the_same_place_the_later_one_counts(rig: LogRig) -> None:
    log = rig.create()
    ten_values(rig, log)
    stale = FilterNotes(1)
    stale.note(0, log.committed_length + 9, 0, FIG)
    append(rig, stale.take()[0])
    log = rig.open()
    ten_values(rig, log)
    rig.save(log)
    log = rig.open()

    assert ids_given(rig, log, b"3") == [3, 13, 23, 33]


def test_pages_about_what_was_truncated_are_given_up(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filter_pages, "PAGE_BYTES", 100)
    monkeypatch.setattr(filter_pages, "TRIM_PAGES", 3)
    rig = make_rig()
    log = rig.create()
    ten_values(rig, log, 40)
    rig.save(log)
    before = rig.do(rig.store.info, NAMES.filter_segment)
    rig.do(rig.store.truncate_segment, NAMES.data_segment, log.last_chunk_position)
    log.truncated(log.last_chunk_position, log.last_chunk_id)
    ten_values(rig, log, 4)
    rig.save(log)

    after = rig.do(rig.store.info, NAMES.filter_segment)
    assert (before.start, after.start > 0) == (0, True)
    assert ids_given(rig, log, b"3") == [43]
    assert ids_given(rig, log, b"9") == [39]
    assert ids_given(rig, rig.open(), b"9") == [39]
