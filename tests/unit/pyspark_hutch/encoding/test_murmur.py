"""The hash against known values and another implementation of it."""

import mmh3
import pyarrow as pa
import pytest

from pyspark_hutch.encoding.arrays import BYTES
from pyspark_hutch.encoding.murmur import SEED, murmur3


@pytest.mark.parametrize(
    ("seed", "hashes"),
    [
        (SEED, [1_321_743_225, 3_825_276_426, 2_970_740_106, 2_453_398_188]),
        (42, [3_806_057_185, 619_588_758, 1_483_300_585, 1_145_629_360]),
    ],
)
def test_the_java_clients_own_examples(seed: int, hashes: list[int]) -> None:
    words = pa.array([b"hello", b"brave", b"new", b"world"], BYTES)

    assert murmur3(words, seed).tolist() == hashes


def test_values_of_every_size_are_hashed_as_by_another_implementation() -> None:
    values = [bytes(range(256))[size:0:-1] for size in range(70)]

    for given in (values, values[::-1], values[17:40], values[::7] * 3):
        found = murmur3(pa.array(given, BYTES)).tolist()
        assert found == [mmh3.hash(value, SEED, signed=False) for value in given]


def test_a_part_of_an_array_is_hashed_as_that_part() -> None:
    values = pa.array([b"first", b"second one", b"", b"fourth"], BYTES)

    assert murmur3(values[1:3]).tolist() == murmur3(values).tolist()[1:3]
    assert murmur3(values[:0]).tolist() == []
