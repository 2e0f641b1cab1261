"""MurmurHash3 (x86, 32 bits) of many values at once.

Source: MurmurHash3.cpp by Austin Appleby; rabbitmq-stream-java-client, HashUtils (seed and text
encoding).
"""

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyspark_hutch.encoding.arrays import data_of, positions_of, sizes_of

SEED: Final = 104729
"""The seed with which the official clients choose a partition."""

Words: TypeAlias = npt.NDArray[np.uint32]

_C1: Final = np.uint32(0xCC9E2D51)
_C2: Final = np.uint32(0x1B873593)
_WORD_BYTES: Final = 4


def murmur3(values: pa.Array, seed: int = SEED) -> Words:
    """Hash each byte string; null as the empty one."""
    sizes = sizes_of(values)
    starts = positions_of(values)
    # Room behind the last value, so that its last bytes can be read as a whole word.
    octets = np.frombuffer(bytes(data_of(values)) + bytes(_WORD_BYTES), np.uint8)
    order = np.argsort(-sizes, kind="stable")  # so that those that still have words come first
    sizes, starts = sizes[order], (starts[:-1] - starts[0])[order]
    hashes = np.full(len(sizes), seed, np.uint32)
    words = sizes // _WORD_BYTES
    for index in range(int(words.max(initial=0))):
        active = int(np.searchsorted(-words, -index, side="left"))
        word = _words_at(octets, starts[:active] + index * _WORD_BYTES)
        hashes[:active] = _rotated(hashes[:active] ^ _scrambled(word), 13) * np.uint32(
            5
        ) + np.uint32(0xE6546B64)
    tail = sizes % _WORD_BYTES
    mask = (np.uint32(1) << (8 * tail).astype(np.uint32)) - np.uint32(1)
    hashes ^= _scrambled(_words_at(octets, starts + words * _WORD_BYTES) & mask)
    hashed = np.empty(len(sizes), np.uint32)
    hashed[order] = _finished(hashes ^ sizes.astype(np.uint32))
    return hashed


def _words_at(octets: npt.NDArray[np.uint8], places: npt.NDArray[np.int64]) -> Words:
    """Read a little-endian word at each place."""
    words: Words = octets[places].astype(np.uint32)
    for index in range(1, _WORD_BYTES):
        words |= octets[places + index].astype(np.uint32) << np.uint32(8 * index)
    return words


def _rotated(words: Words, bits: int) -> Words:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def _scrambled(words: Words) -> Words:
    return _rotated(words * _C1, 15) * _C2


def _finished(hashes: Words) -> Words:
    hashes ^= hashes >> np.uint32(16)
    hashes *= np.uint32(0x85EBCA6B)
    hashes ^= hashes >> np.uint32(13)
    hashes *= np.uint32(0xC2B2AE35)
    hashes ^= hashes >> np.uint32(16)
    return hashes
