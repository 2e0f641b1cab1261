"""Events in the bytes of a segment."""

from __future__ import annotations

import pytest

from gateway.pravega.controller.checking.streams import Events


def framed(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(8, "big") + body for body in bodies)


def counted(data: bytes, piece: int) -> int:
    events = Events()
    for place in range(0, len(data), piece):
        events.feed(data[place : place + piece])
    return events.count


@pytest.mark.parametrize("piece", [1, 3, 7, 8, 9, 20, 1000])
def test_events_are_counted_in_pieces_of_any_size(piece: int) -> None:
    assert counted(framed(b"one", b"", b"x" * 50, b"four"), piece) == 4
    assert counted(b"", piece) == 0


@pytest.mark.parametrize("piece", [1, 5, 1000])
@pytest.mark.parametrize(
    "data",
    [
        framed(b"one") + b"\0",
        framed(b"one")[:-1],
        framed(b"one") + b"\xff" * 8,
        b"\0\0\0\1" + framed(b"one")[4:],
        b"\0\0\0\0\x80\0\0\0",
        b"text that was written as a stream of bytes",
    ],
)
def test_bytes_that_do_not_add_up_are_no_events(data: bytes, piece: int) -> None:
    assert counted(data, piece) == 0
