"""Texts of the errors."""

import copy

import pytest

from pyspark_hutch.decoding.errors import DamagedChunk, UnopenedSubBatch

REASON = "a publisher sent a sub-batch of 4 records that is not 28 bytes compressed by gzip"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            DamagedChunk("orders", 5, "its data has another checksum"),
            "stream 'orders' is damaged at offset 5: its data has another checksum",
        ),
        (
            UnopenedSubBatch("orders", 5, REASON),
            f"stream 'orders': at offset 5 {REASON}. Set badSubBatches to skip or raw to go on.",
        ),
    ],
)
def test_an_error_says_where_and_why(error: DamagedChunk | UnopenedSubBatch, text: str) -> None:
    assert str(error) == text
    assert (error.stream, error.offset) == ("orders", 5)
    assert str(copy.copy(error)) == str(error)
