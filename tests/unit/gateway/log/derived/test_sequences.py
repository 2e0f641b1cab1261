import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.log.derived.sequences import (
    MARKS_END,
    NO_MARK_KNOWN,
    UNKNOWN,
    PublisherSequences,
    pack_id,
)
from hutch.formats.chunk import pack_trailer


def test_the_last_id_of_a_reference_is_the_one_recorded_last() -> None:
    sequences = PublisherSequences("orders", 10)

    sequences.record(b"p", 5)
    sequences.record(b"q", 2**64 - 1)
    sequences.record(b"p", 7)

    assert (sequences.last(b"p"), sequences.last(b"q"), sequences.last(b"r")) == (
        7,
        2**64 - 1,
        None,
    )
    assert len(sequences) == 2


def test_beyond_the_limit_the_least_recently_used_reference_is_forgotten_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sequences = PublisherSequences("orders", 2)
    sequences.record(b"old", 1)
    sequences.record(b"kept", 2)
    sequences.record(b"old", 3)
    assert not caplog.records

    with caplog.at_level(logging.WARNING):
        sequences.record(b"new", 4)

    assert (sequences.last(b"kept"), sequences.last(b"old"), sequences.last(b"new")) == (
        None,
        3,
        4,
    )
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    message = record.getMessage()
    assert "stream=orders" in message
    assert "reference=b'kept'" in message
    assert "references_max=2" in message


@pytest.mark.parametrize("count", [9, 10, 11])
def test_the_limit_is_how_many_are_remembered(count: int) -> None:
    sequences = PublisherSequences("orders", 10)

    for number in range(count):
        sequences.record(b"%d" % number, number)

    assert len(sequences) == min(count, 10)


@given(st.dictionaries(st.binary(min_size=1, max_size=255), st.integers(0, 2**64 - 1), max_size=20))
def test_what_is_packed_is_restored_in_its_order_of_use(last: dict[bytes, int]) -> None:
    sequences = PublisherSequences("orders", 100)
    for reference, publishing_id in last.items():
        sequences.record(reference, publishing_id)

    restored = PublisherSequences("orders", 100)
    restored.restore(sequences.pack())

    assert list(restored._last.items()) == list(last.items())


def test_many_references_are_packed_in_parts_that_fit_a_table_entry() -> None:
    sequences = PublisherSequences("orders", 10_000)
    for number in range(10_000):
        sequences.record(b"%0255d" % number, number)

    parts = sequences.pack()

    assert max(map(len, parts)) <= 512 * 1024 + 264
    restored = PublisherSequences("orders", 10_000)
    restored.restore(parts)
    assert restored._last == sequences._last


def test_nothing_is_packed_into_no_part() -> None:
    assert PublisherSequences("orders", 1).pack() == []


# Marks


def restored(parts: list[bytes]) -> PublisherSequences:
    sequences = PublisherSequences("orders", 10)
    sequences.restore(parts)
    return sequences


def mark_of(sequences: PublisherSequences) -> tuple[int, bool]:
    return sequences.mark, sequences.is_mark_known


@pytest.mark.parametrize("mark", [1, 7, MARKS_END - 1])
def test_a_mark_is_restored_and_is_no_reference(mark: int) -> None:
    sequences = PublisherSequences("orders", 1)
    sequences.take(pack_trailer({b"": mark}))
    sequences.take(pack_trailer({b"p": 1}))

    again = restored(sequences.pack())

    assert mark_of(sequences) == mark_of(again) == (mark, True)
    assert sequences.all() == again.all() == {b"p": 1}
    assert not sequences.damaged


@pytest.mark.parametrize("value", [0, MARKS_END, 2**64 - 1])
def test_an_empty_reference_with_a_value_that_is_no_mark_is_damage(value: int) -> None:
    sequences = PublisherSequences("orders", 10)

    sequences.take(pack_trailer({b"p": 1, b"": value, b"q": 2}))

    assert sequences.damaged
    assert mark_of(sequences) == (0, False)


def test_zeros_in_a_snapshot_are_damage() -> None:
    sequences = restored([pack_id(b"p", 1) + bytes(20)])

    assert sequences.damaged
    assert sequences.all() == {b"p": 1}
    assert mark_of(sequences) == (0, False)


def test_a_mark_before_the_last_one_says_nothing() -> None:
    sequences = PublisherSequences("orders", 10)
    sequences.note_mark(7)
    sequences.lose()

    sequences.note_mark(6)

    assert mark_of(sequences) == (7, False)


def test_a_mark_behind_damage_is_the_last_one() -> None:
    sequences = PublisherSequences("orders", 10)
    sequences.note_mark(7)
    sequences.lose()
    assert mark_of(restored(sequences.pack())) == (7, False)

    sequences.note_mark(8)

    assert mark_of(sequences) == mark_of(restored(sequences.pack())) == (8, True)
    assert restored(sequences.pack()).damaged


def test_a_mark_outlives_damage_of_references_in_the_snapshot() -> None:
    sequences = PublisherSequences("orders", 10)
    sequences.note_mark(7)
    sequences.record(b"p", 1)
    mark, references = sequences.pack()

    again = restored([mark, references[:-1]])

    assert again.damaged
    assert mark_of(again) == (7, True)


@pytest.mark.parametrize("parts", [[UNKNOWN], [pack_id(b"p", 1)[:-1]]])
def test_damage_without_a_mark_leaves_it_unknown(parts: list[bytes]) -> None:
    assert mark_of(restored(parts)) == (0, False)


def test_a_part_says_that_a_later_mark_may_be_lost() -> None:
    assert mark_of(restored([pack_id(b"", 7), NO_MARK_KNOWN])) == (7, False)
    assert not restored([NO_MARK_KNOWN]).damaged


def test_a_snapshot_of_an_older_server_has_no_mark() -> None:
    assert mark_of(restored([pack_id(b"p", 1)])) == (0, True)


def test_without_units_a_snapshot_is_what_it_always_was() -> None:
    sequences = PublisherSequences("orders", 10)
    sequences.record(b"p", 1)

    assert sequences.pack() == [b"\x01p" + (1).to_bytes(8)]


def test_to_begin_anew_forgets_the_mark() -> None:
    sequences = PublisherSequences("orders", 10)
    sequences.note_mark(7)
    sequences.lose()

    sequences.clear()

    assert mark_of(sequences) == (0, True)
