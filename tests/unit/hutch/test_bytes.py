"""The functions of kernels that are not compiled; those of the kernels' tests try both kinds."""

import zlib

import pytest

from hutch import bytes as in_bytes

SOURCE = bytes(range(1, 12))


@pytest.mark.parametrize("source", [SOURCE, bytearray(SOURCE), memoryview(SOURCE)])
def test_numbers_are_big_endian(source: bytes | bytearray | memoryview) -> None:
    assert in_bytes.u16_at(source, 1) == 0x0203
    assert in_bytes.u32_at(source, 2) == 0x03040506
    assert in_bytes.u64_at(source, 3) == 0x0405060708090A0B


def test_bytes_are_copied_to_their_place() -> None:
    target = bytearray(6)

    in_bytes.copy_at(target, 1, SOURCE, 4, 3)

    assert target == bytes((0, 5, 6, 7, 0, 0))


def test_a_checksum_goes_on_behind_another() -> None:
    before = zlib.crc32(SOURCE[:4])

    assert in_bytes.crc32_at(None, None, SOURCE, 4, 11, before) == zlib.crc32(SOURCE)


def event(data: bytes, trailer: bytes = b"", seed: int = 0) -> bytearray:
    """A stored chunk with its seal, as `gateway.log.kernel.chunks` draws it."""
    sizes = len(data).to_bytes(4) + len(trailer).to_bytes(4)
    header = b"\x50" + bytes(35) + sizes + bytes(4)
    seal = zlib.crc32(header + trailer, seed).to_bytes(4)
    rest = header + data + trailer + seal
    return bytearray(bytes(4) + len(rest).to_bytes(4) + rest)


def test_the_size_of_a_chunk_is_told_if_all_of_it_is_there() -> None:
    stored = event(b"data", b"trailer")

    assert in_bytes.event_size(b"??" + stored, 2, 2 + len(stored)) == len(stored)
    assert in_bytes.event_size(stored, 0, len(stored) - 1) == 0
    assert in_bytes.event_size(stored, 0, 55) == 0


@pytest.mark.parametrize("position", [0, 4, 8, 44, 48])
def test_what_is_no_chunk_has_no_size(position: int) -> None:
    stored = event(b"data")
    stored[position] = 0x51 if position != 4 else 0
    if position == 4:
        stored[7] = 51

    assert in_bytes.event_size(stored, 0, len(stored)) == -1


@pytest.mark.parametrize("seed", [0, 7])
def test_a_seal_is_of_header_and_trailer_and_not_of_data(seed: int) -> None:
    stored = event(b"data", b"trailer", seed)
    size = len(stored)
    assert in_bytes.has_seal(None, None, stored, 0, size, seed)

    stored[56] ^= 1
    assert in_bytes.has_seal(None, None, stored, 0, size, seed)
    for position in (9, 60, size - 1):
        stored[position] ^= 1
        assert not in_bytes.has_seal(None, None, stored, 0, size, seed)
        stored[position] ^= 1
    stored[51] = 8  # the trailer reaches into the seal
    assert not in_bytes.has_seal(None, None, stored, 0, size, seed)
