import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.log.sequences import PublisherSequences


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
