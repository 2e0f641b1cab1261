"""Texts of the errors."""

import copy

from pyspark_hutch.decoding.errors import DamagedChunk


def test_damage_says_where_and_why() -> None:
    error = DamagedChunk("orders", 5, "its data has another checksum")

    assert str(error) == "stream 'orders' is damaged at offset 5: its data has another checksum"
    assert (error.stream, error.offset) == ("orders", 5)
    assert str(copy.copy(error)) == str(error)
