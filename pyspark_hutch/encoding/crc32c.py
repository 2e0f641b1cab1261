"""CRC-32C (Castagnoli), which frames of snappy carry, for workers that have no cramjam.

Python has no such function, and a loop over bytes is slow. So the bytes are laid out as the lanes
of a matrix, whose checksums numpy takes at once, a column at a time; a checksum is linear, so those
of lanes are put together by multiplying with powers of two.

Source: RFC 3720, appendix B.4; snappy's framing format, section 3.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

_POLYNOMIAL: Final = 0x82F63B78  # reflected
_LANE_BYTES: Final = 256
_ALL: Final = 0xFFFF_FFFF
_MASK: Final = 0xA282EAD8


def _table() -> npt.NDArray[np.uint32]:
    rows = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        rows = np.where(rows & 1, (rows >> 1) ^ np.uint32(_POLYNOMIAL), rows >> 1)
    return rows.astype(np.uint32)


_TABLE: Final = _table()


def _lane_shift() -> list[list[int]]:
    """Tabulate the effect of a lane of zeros on each value of each byte of a checksum."""
    crcs = np.concatenate([np.arange(256, dtype=np.uint32) << shift for shift in (0, 8, 16, 24)])
    for _ in range(_LANE_BYTES):
        crcs = _TABLE[crcs & 0xFF] ^ (crcs >> 8)
    return [[int(each) for each in part] for part in crcs.reshape(4, 256)]


_SHIFT: Final = _lane_shift()


def crc32c(source: memoryview) -> int:
    """Compute the checksum of some bytes."""
    octets = np.frombuffer(source, np.uint8)
    whole = len(octets) // _LANE_BYTES
    lanes = octets[: whole * _LANE_BYTES].reshape(whole, _LANE_BYTES).T
    crcs = np.zeros(whole, np.uint32)
    for column in np.ascontiguousarray(lanes):
        crcs = _TABLE[(crcs ^ column) & 0xFF] ^ (crcs >> 8)
    crc = _ALL
    first, second, third, fourth = _SHIFT
    for lane in crcs.tolist():
        crc = lane ^ (
            first[crc & 0xFF]
            ^ second[crc >> 8 & 0xFF]
            ^ third[crc >> 16 & 0xFF]
            ^ fourth[crc >> 24]
        )
    for octet in octets[whole * _LANE_BYTES :].tolist():
        crc = int(_TABLE[(crc ^ octet) & 0xFF]) ^ (crc >> 8)
    return crc ^ _ALL


def masked_crc32c(source: memoryview) -> int:
    """Compute the checksum as snappy's frames hold it."""
    crc = crc32c(source)
    return ((crc >> 15 | crc << 17) + _MASK) & _ALL
