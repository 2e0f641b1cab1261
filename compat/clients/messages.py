"""The messages that all programs exchange: each can be told from its body alone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Final, TypedDict

HEAD: Final = re.compile(rb"([a-z]+)(\d+)-")
LARGE_SIZES: Final = (1, 127, 255, 256, 4095, 65_535, 65_536, 1_000_000)


class Summary(TypedDict):
    """Digest of many messages: their number, and a SHA-256 of all bodies with their sizes."""

    count: int
    sha256: str


class WrongBody(Exception):
    """A message was read that was never written."""


def body(index: int, mark: str = "m") -> bytes:
    """Return the body of message `index` of a mark: its name, and up to 89 bytes of every value."""
    return f"{mark}{index}-".encode() + bytes((index + k) % 256 for k in range(index * 7 % 90))


def bodies(first: int, last: int, mark: str = "m") -> list[bytes]:
    """Return the bodies of messages `first` to `last`, both included."""
    return [body(index, mark) for index in range(first, last + 1)]


def large_body(size: int) -> bytes:
    """Return a body of `size` bytes; the `k`th is `(size + k) % 256`."""
    period = bytes((size + k) % 256 for k in range(256))
    return (period * (size // 256 + 1))[:size]


def index_of(found: bytes, mark: str = "m") -> int:
    """Return the index of a message of a mark.

    Raises:
        WrongBody: It is not, byte for byte, such a message.
    """
    head = HEAD.match(found)
    if head is None or head[1].decode() != mark or found != body(int(head[2]), mark):
        raise WrongBody(f"no message of mark {mark!r}: {found[:60]!r}, {len(found)} bytes")
    return int(head[2])


def indexes(found: Iterable[bytes], mark: str = "m") -> list[int]:
    """Return the indexes of messages, in their order."""
    return [index_of(one, mark) for one in found]


def summary(found: Sequence[bytes]) -> Summary:
    """Return what stands for many messages in a result."""
    digest = hashlib.sha256()
    for one in found:
        digest.update(len(one).to_bytes(4, "big"))
        digest.update(one)
    return {"count": len(found), "sha256": digest.hexdigest()}
