"""Heads and seals of chunks, compiled and interpreted."""

import zlib
from types import ModuleType

import pytest

from tests.property.gateway.chunk_model import Stored
from tests.property.gateway.kernel_builds import BUILDS, load


@pytest.fixture(params=BUILDS)
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    return load("gateway.log.kernel.sealing", request.param)


@pytest.mark.parametrize("is_crc_given", [False, True])
@pytest.mark.parametrize("trailer", [b"", b"\0\1p" + bytes(8)])
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 1_000])
def test_a_sealed_chunk_is_what_its_parts_make(
    kernel: ModuleType, size: int, trailer: bytes, *, is_crc_given: bool
) -> None:
    wanted = Stored(
        bytes(place % 251 for place in range(size)),
        entries=0x1234,
        records=0x8765_4321,
        chunk_id=0x1122_3344_5566_7788,
        timestamp_ms=-2,
        epoch=2**64 - 1,
        trailer=trailer,
        rest=b"filter",
        seed=0xFEED_BEEF,
    )
    event = wanted.event()
    data_end = 56 + len(wanted.data)
    buffer = bytearray(b"\xff" * 56 + wanted.data + trailer + b"filter" + b"\xff" * 20)

    kernel.seal_chunk(
        buffer,
        data_end,
        len(event),
        wanted.entries,
        wanted.records,
        wanted.timestamp_ms,
        wanted.epoch,
        wanted.chunk_id,
        zlib.crc32(wanted.data) if is_crc_given else -1,
        len(trailer),
        wanted.seed,
    )

    assert buffer[: len(event)] == event
    assert buffer[len(event) :] == b"\xff" * 16


def test_the_tables_are_those_of_the_ieee_polynomial(kernel: ModuleType) -> None:
    assert len(kernel.CRC_TABLE) == 8 * 256
    for value in range(256):
        # Row n: the checksum of a byte that n zero bytes follow.
        for row in range(8):
            message = bytes([value]) + bytes(row)
            nothing = zlib.crc32(bytes(row + 1))
            assert kernel.CRC_TABLE[row * 256 + value] == zlib.crc32(message) ^ nothing


def test_a_copy_has_the_bytes_between_two_places(kernel: ModuleType) -> None:
    buffer = bytearray(b"0123456789")

    copied = kernel.copy_of(buffer, 2, 5)
    buffer[3] = 0

    assert copied == b"234"
