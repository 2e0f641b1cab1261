"""Numbers, copies and checksums in bytes, which kernels take into themselves from `bytes.pxd`.

This is for kernels that are not compiled. What ends in `_in` takes a pointer there, what ends in
`_at` a memoryview; all numbers are big-endian. None of them checks a bound.
"""

import zlib
from typing import Any, TypeAlias

Source: TypeAlias = bytes | bytearray | memoryview


def u16_at(source: Source, position: int) -> int:
    """Return a number of two bytes."""
    return int.from_bytes(source[position : position + 2])


def u32_at(source: Source, position: int) -> int:
    """Return a number of four bytes."""
    return int.from_bytes(source[position : position + 4])


def u64_at(source: Source, position: int) -> int:
    """Return a number of eight bytes."""
    return int.from_bytes(source[position : position + 8])


def copy_at(target: Any, place: int, source: Source, start: int, size: int) -> None:  # noqa: ANN401  # also of numpy
    """Copy bytes. Compiled slices would do, but cost as much as copying 500 bytes."""
    target[place : place + size] = memoryview(source)[start : start + size]


def crc32_in(_table: object, source: Source, position: int, end: int, before: int) -> int:
    """Return the CRC-32 of [position, end) behind bytes whose CRC-32 is `before`.

    Compiled it takes eight bytes a step, by the eight tables of `gateway.log.kernel.sealing`.
    """
    return zlib.crc32(memoryview(source)[position:end], before)


def crc32_at(
    _fast: object, table: object, source: Source, position: int, end: int, before: int
) -> int:
    """Return that CRC-32 by the fast function, if there is one and it pays."""
    return crc32_in(table, source, position, end, before)


def event_size(source: Source, position: int, limit: int) -> int:
    """Return the size of the stored chunk at `position`; 0 if it is cut off, -1 if it is none.

    `gateway.log.kernel.chunks` draws it.
    """
    if position + 56 > limit:
        return 0
    size = u32_at(source, position + 4)
    rest = 48 + u32_at(source, position + 44) + u32_at(source, position + 48)
    if u32_at(source, position) != 0 or source[position + 8] != 0x50 or rest > size:  # noqa: PLR2004
        return -1
    return 0 if position + 8 + size > limit else 8 + size


def has_seal(
    _fast: object, table: object, source: Source, position: int, size: int, seed: int
) -> bool:
    """Return whether the stored chunk of `size` bytes at `position` ends with its seal."""
    rest = position + 56 + u32_at(source, position + 44)
    seal = position + size - 4
    if rest + u32_at(source, position + 48) > seal:
        return False
    crc = crc32_in(table, source, position + 8, position + 56, seed)
    return crc32_in(table, source, rest, seal, crc) == u32_at(source, seal)


u16_in, u32_in, u64_in, copy_in = u16_at, u32_at, u64_at, copy_at
