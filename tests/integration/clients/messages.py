"""The records that clients send in these tests: of many sizes, each told from the others."""

from __future__ import annotations


def body(index: int, mark: str = "m") -> bytes:
    """The record with this index; the Node driver builds the same bytes.

    `m42-xxx…`: the index makes it unique, the filler gives it a size of 3 to about 100
    bytes, so that a record cut short, doubled or moved cannot pass for another.
    """
    return f"{mark}{index}-{'x' * (index * 7 % 90)}".encode()


def bodies(count: int, mark: str = "m", *, first: int = 0) -> list[bytes]:
    """The records `first`, `first + 1`, … in order."""
    return [body(index, mark) for index in range(first, first + count)]
