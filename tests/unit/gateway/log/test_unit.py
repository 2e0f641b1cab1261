"""Blank chunks, and what numbering makes of them: compared with chunks written apart from it."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.log.derived.filters import FILTER_BYTES_MAX, pack_filters
from gateway.log.unit import DATA_BYTES_MAX, Unit, add_mark, pack_blank, parts_of
from hutch.formats.chunk import pack_trailer
from store.api import Appended
from tests.chunks import Entry, SubBatch
from tests.unit.gateway.log.log_rig import SEED, encode, event_of
from tests.unit.gateway.log.unit_rig import blank

ENTRIES = st.lists(
    st.one_of(
        st.binary(max_size=40),
        st.lists(st.binary(max_size=9), min_size=1, max_size=4).map(SubBatch.of),
    ),
    min_size=1,
    max_size=5,
)


@given(ENTRIES)
def test_a_blank_chunk_is_a_stored_chunk_without_a_place(entries: list[Entry]) -> None:
    assert blank(*entries) == event_of(entries, epoch=0)


@given(
    st.lists(ENTRIES, min_size=1, max_size=5), st.integers(0, 2**40), st.sampled_from([(), (b"v",)])
)
def test_a_unit_becomes_chunks_behind_one_another_with_the_mark_in_the_last(
    chunks: list[list[Entry]], offset: int, values: tuple[bytes, ...]
) -> None:
    blanks = bytearray(b"".join(blank(*entries, values=values) for entries in chunks))
    parts = parts_of(blanks, SEED)
    assert parts is not None
    add_mark(blanks, parts, 7)
    unit = Unit(7, blanks, parts)

    stored = unit.finish(chunk_id=offset, epoch=3, timestamp_ms=50, seal_seed=SEED)

    expected, first = b"", offset
    for number, entries in enumerate(chunks, 1):
        expected += event_of(
            entries,
            chunk_id=first,
            epoch=3,
            timestamp_ms=50,
            trailer=pack_trailer({b"": 7}) if number == len(chunks) else b"",
            rest=pack_filters(values),
        )
        first += sum(e.record_count if isinstance(e, SubBatch) else 1 for e in entries)
    assert bytes(stored) == expected
    assert (unit.first_offset, unit.next_offset) == (offset, first)
    sizes = [each.size for each in unit.each(Appended(100, len(stored), 1))]
    assert sum(sizes) == unit.event_bytes == len(expected)


@pytest.mark.parametrize(
    ("entries", "records", "data"),
    [
        (0, 0, b""),
        (0, 1, encode(b"a")),
        (1, 2, encode(b"a")),
        (2, 1, encode(b"a")),
        (1, 1, encode(b"a") * 2),
        (1, 1, encode(b"a")[:-1]),
        (1, 2, encode(SubBatch.of([b"a"]))),
        (1, 0, encode(SubBatch(0, 0, 0, b""))),
        (65_536, 65_536, encode(b"") * 65_536),
        (1, 2**32, encode(b"a")),
    ],
)
def test_counts_that_the_data_does_not_have_are_refused(
    entries: int, records: int, data: bytes
) -> None:
    with pytest.raises(ValueError, match=str(entries)):
        pack_blank(entries, records, data, seal_seed=1)


def test_a_chunk_may_have_65535_entries() -> None:
    assert pack_blank(65_535, 65_535, encode(b"") * 65_535, seal_seed=1)


@pytest.mark.parametrize("limit", [100, DATA_BYTES_MAX])
def test_data_above_the_limit_is_refused(limit: int) -> None:
    pack_blank(1, 1, encode(bytes(limit - 4)), seal_seed=1, data_bytes_max=limit)

    with pytest.raises(ValueError, match=f"at most {limit}"):
        pack_blank(1, 1, encode(bytes(limit - 3)), seal_seed=1, data_bytes_max=limit)


def test_filter_values_above_the_limit_are_refused() -> None:
    filters = bytes(FILTER_BYTES_MAX)
    pack_blank(1, 1, encode(b"a"), seal_seed=1, packed_filters=filters)

    with pytest.raises(ValueError, match=f"at most {FILTER_BYTES_MAX}"):
        pack_blank(1, 1, encode(b"a"), seal_seed=1, packed_filters=filters + b"x")


def test_data_may_be_any_buffer() -> None:
    data = encode(b"ab") + encode(b"c")

    assert pack_blank(2, 2, memoryview(bytearray(data)), seal_seed=SEED) == blank(b"ab", b"c")


def test_a_chunk_is_the_same_in_a_used_buffer_with_more_room() -> None:
    values = pack_filters([b"v"])

    def packed(room: Callable[[int], bytearray]) -> memoryview:
        return pack_blank(1, 1, encode(b"a"), seal_seed=SEED, packed_filters=values, room=room)

    assert packed(lambda size: bytearray(b"\xff" * (size + 9))) == packed(bytearray)


def test_a_damaged_byte_anywhere_is_noticed() -> None:
    sound = blank(b"one", b"two", values=[b"v"]) + blank(b"three")
    assert parts_of(sound, SEED) is not None

    for place in range(len(sound)):
        damaged = bytearray(sound)
        damaged[place] ^= 1
        assert parts_of(damaged, SEED) is None, place


@pytest.mark.parametrize(
    "blanks",
    [
        blank(b"one", seed=SEED + 1),
        blank(b"one")[:-1],
        blank(b"one") + b"\x00",
        event_of([b"one"], chunk_id=1, epoch=0),
        event_of([b"one"], epoch=1),
        event_of([b"one"], epoch=0, timestamp_ms=1),
        event_of([b"one"], epoch=0, trailer=pack_trailer({b"p": 1})),
    ],
)
def test_what_is_no_run_of_blank_chunks_of_this_segment_is_refused(blanks: bytes) -> None:
    assert parts_of(blanks, SEED) is None
