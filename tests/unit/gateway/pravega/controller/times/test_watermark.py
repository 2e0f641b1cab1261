"""Bytes of watermarks, as Pravega's Java client reads them."""

from __future__ import annotations

import pytest

from gateway.pravega.controller.epochs import Segment
from gateway.pravega.controller.times.watermark import Watermark, _compact, pack

TWO = {Segment(0.0, 0.5, 0, 0): 0x70, Segment(0.5, 1.0, 1, 0): 0xA8}


def test_a_watermark_has_the_bytes_that_the_java_client_took() -> None:
    """Its readers told the window of 100 and 120 when they came to them."""
    expected = (
        "00000000"
        "00000069"
        "0000010000000061"
        "0000000000000064"
        "0000000000000078"
        "02"
        "0000010000000018"
        "0000000000000000"
        "0000000000000000"
        "3fe0000000000000"
        "0000000000000070"
        "0000010000000018"
        "0000000000000001"
        "3fe0000000000000"
        "3ff0000000000000"
        "00000000000000a8"
    )

    assert pack(Watermark(100, 120, TWO)).hex() == expected


def test_times_may_be_below_zero() -> None:
    packed = pack(Watermark(-(1 << 63), -1, TWO))

    assert packed[16:32].hex() == "8000000000000000ffffffffffffffff"


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, "00"),
        (0x7F, "7f"),
        (0x80, "8080"),
        (0x3FFF, "bfff"),
        (0x4000, "c0004000"),
        (0x3FFFFFFF, "ffffffff"),
    ],
)
def test_numbers_take_as_many_bytes_as_they_need(number: int, expected: str) -> None:
    assert _compact(number).hex() == expected
