"""Filter values: those that a chunk has, and those that a subscription wants.

Behind a chunk's trailer may stand, all integers big-endian:

    u8 kind | u16 count | values or fingerprints | u32 xxh32 of all before

    kind   0x10, +1: some entries have no value, +2: fingerprints stand for the values, +4: too
           many values, any value may be there
    value          u16 size | bytes, in order                   few values: the set itself
    fingerprint    u8 width, then the first 2 or 3 bytes of each value's xxh3, in order

A chunk without these bytes has only entries without a value. If the bytes cannot be read, the chunk
is taken to hold any value. So a chunk is never held back by mistake. It may be let through by
mistake, but the client looks at each message anyway. Fingerprints let through at most one foreign
value in a hundred.

Source: RabbitMQ's subscription properties; the form of the bytes, which no client sees, is ours.
"""

import struct
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Final

from xxhash import xxh3_64_digest, xxh32_digest

FILTER_BYTES_MAX: Final = 64 * 1024
"""Largest size of the filter values behind a chunk."""

FINGERPRINTS_MAX: Final = 20_000
"""A chunk with more values than this says only that it may hold any."""

WANTED_MAX: Final = 1024
"""If a subscription wants more values than this, only fingerprints are kept. They have three bytes
each, and take about 70 in Python, which is less than the properties that named the values."""

_EXACT_VALUES_MAX: Final = 64
_EXACT_BYTES_MAX: Final = 1024
_NARROW_MAX: Final = 655
"""Most fingerprints of 16 bits in a chunk: 1 % of all that exist."""

_KIND: Final = 0x10
_SOME_WITHOUT: Final = 1
_FINGERPRINTS: Final = 2
_ANY: Final = 4
_HEAD: Final = struct.Struct(">BH")
_CHECK_BYTES: Final = 4
_WIDTHS: Final = (2, 3)
_WIDEST: Final = 3
_MEMO_BLOB_BYTES: Final = 256
_MEMO_COUNT: Final = 512
_FEW_WANTED: Final = 16

_PREFIX: Final = "filter."
_MATCH_UNFILTERED: Final = "match-unfiltered"


def fold(values: set[bytes], digests: set[bytes]) -> None:
    """Replace the values by hashes when they are too many to be kept; b"" stays.

    Args:
        values: A chunk's values; emptied, but for b"".
        digests: Gets the hashes. With more than FINGERPRINTS_MAX it takes no further ones.
    """
    has_unfiltered = b"" in values
    for value in values:
        if value and len(digests) <= FINGERPRINTS_MAX:
            digests.add(xxh3_64_digest(value))
    values.clear()
    if has_unfiltered:
        values.add(b"")


def pack_filters(values: Iterable[bytes], digests: set[bytes] | None = None) -> bytes:
    """Encode the filter values of a chunk; empty if no entry has one.

    Args:
        values: The values; b"" stands for entries without one.
        digests: The hashes that `fold` made of others.
    """
    named = sorted(values)
    some_without = bool(named) and not named[0]
    if some_without:
        del named[0]
    if not named and not digests:
        return b""
    kind = _KIND | some_without
    if (
        not digests
        and len(named) <= _EXACT_VALUES_MAX
        and sum(map(len, named)) + 2 * len(named) <= _EXACT_BYTES_MAX
    ):
        packed = _HEAD.pack(kind, len(named)) + b"".join(
            len(value).to_bytes(2, "big") + value for value in named
        )
        return packed + xxh32_digest(packed)
    whole = (digests or set()) | {xxh3_64_digest(value) for value in named}
    if len(whole) > FINGERPRINTS_MAX:
        packed = _HEAD.pack(kind | _ANY, 0)
    else:
        width = _WIDTHS[len(whole) > _NARROW_MAX]
        prints = sorted({digest[:width] for digest in whole})
        head = _HEAD.pack(kind | _FINGERPRINTS, len(prints))
        packed = b"".join((head, bytes((width,)), *prints))
    return packed + xxh32_digest(packed)


class SubscriptionFilter:
    """Selects the chunks that a subscription wants: those that may hold one of its values."""

    def __init__(self, values: Iterable[bytes], *, unfiltered: bool) -> None:
        """Want chunks with one of `values`, and if `unfiltered` also entries without a value."""
        self.unfiltered = unfiltered
        wanted = frozenset(values)
        self.values = wanted if len(wanted) <= WANTED_MAX else None
        """The wanted values; None if they are too many to be kept."""
        self._fingerprints: dict[int, frozenset[bytes]] = {
            width: frozenset(xxh3_64_digest(value)[:width] for value in wanted) for width in _WIDTHS
        }
        self._memo: dict[bytes, bool] = {}

    def lets_through(self, packed: bytes) -> bool:
        """Return whether a chunk whose filter values are `packed` may hold a wanted value."""
        if not packed:
            return self.unfiltered
        known = self._memo.get(packed)
        if known is not None:
            return known
        verdict = self._judge(packed)
        if len(packed) <= _MEMO_BLOB_BYTES:
            if len(self._memo) >= _MEMO_COUNT:
                self._memo.clear()
            self._memo[packed] = verdict
        return verdict

    def _judge(self, packed: bytes) -> bool:
        end = len(packed) - _CHECK_BYTES
        if end < _HEAD.size or xxh32_digest(packed[:end]) != packed[end:]:
            return True
        kind, count = _HEAD.unpack_from(packed)
        if kind & ~(_SOME_WITHOUT | _FINGERPRINTS) != _KIND:
            return True
        if kind & _SOME_WITHOUT and self.unfiltered:
            return True
        if kind & _FINGERPRINTS:
            return self._has_fingerprint(packed, count, end)
        return self._has_value(packed, count)

    def _has_value(self, packed: bytes, count: int) -> bool:
        position = _HEAD.size
        for _ in range(count):
            start = position + 2
            position = start + int.from_bytes(packed[position:start], "big")
            if self._wants(packed[start:position]):
                return True
        return False

    def _wants(self, value: bytes) -> bool:
        if self.values is not None:
            return value in self.values
        return xxh3_64_digest(value)[:_WIDEST] in self._fingerprints[_WIDEST]

    def _has_fingerprint(self, packed: bytes, count: int, end: int) -> bool:
        width = packed[_HEAD.size]
        first = _HEAD.size + 1
        wanted = self._fingerprints.get(width)
        if wanted is None or first + count * width != end:
            return True
        if len(wanted) > _FEW_WANTED:
            return not wanted.isdisjoint(
                packed[place : place + width] for place in range(first, end, width)
            )
        places = range(first, end, width)
        for one in wanted:
            index = bisect_left(places, one, key=lambda place: packed[place : place + width])
            if index < count and packed[places[index] : places[index] + width] == one:
                return True
        return False


def filter_of(properties: Mapping[str, str]) -> SubscriptionFilter | None:
    """Read a subscription's filter from its properties; None if it wants everything.

    Each key that begins with `filter.` gives one value; an empty one stands for entries without a
    value, as does `match-unfiltered` if it is exactly `true` and there is some `filter.` at all.
    With more than WANTED_MAX values a few more chunks are let through: of a million foreign values,
    60 pass for each thousand wanted values.
    """
    values = {
        value.encode("utf-8", "surrogateescape")
        for key, value in properties.items()
        if key.startswith(_PREFIX)
    }
    if not values:
        return None
    unfiltered = b"" in values or properties.get(_MATCH_UNFILTERED) == "true"
    return SubscriptionFilter(values - {b""}, unfiltered=unfiltered)
