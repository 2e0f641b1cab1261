"""Matchers: documents that say which events a subscription wants.

An event matches if it has each key of the matcher with an equal value. A document in the matcher
matches a document that has its keys, and perhaps others; an array one of equal items. Numbers are
compared by value, whatever their type; a boolean is no number. Null matches null, and a key that
is absent. A key with dots is the key of that name, or else a path.

The protocol's page says no more than "object to match on the event fields"; all this is our reading
of it. Events are looked at as the bytes that they are, so no value is beyond it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.mewbase.documents import (
    ARRAY,
    DOCUMENT,
    NULL,
    elements_of,
    number_of,
    value_at,
)
from gateway.mewbase.wire.reading import Element

MATCHER_BYTES_MAX: Final = 16 * 1024
"""Largest matcher: some 2,000 keys, which take less than 1 MiB and some milliseconds to read."""


class BadMatcher(ValueError):
    """A matcher that is too large, or has a key that begins with $: there are no operators."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A value that is wanted.

    Attributes:
        code: Its type.
        raw: Its bytes; empty if it is a document or an array.
        number: It as a number; None if it is none.
        fields: What is in it; None if it is no document and no array.
    """

    code: int
    raw: bytes
    number: float | None
    fields: "Mapping[bytes, _Value] | None"


class Matcher:
    """Tells which events are wanted."""

    def __init__(self, matcher: bytes) -> None:
        """Read a whole document; an empty one matches all. Raises BadMatcher."""
        if len(matcher) > MATCHER_BYTES_MAX:
            raise BadMatcher(
                f"the matcher has {len(matcher)} bytes, and {MATCHER_BYTES_MAX} are the most"
            )
        self._wanted = _fields(matcher, 0, len(matcher))

    def matches(self, event: bytes) -> bool:
        """Tell whether an event, a whole document, is wanted."""
        return _is_within(self._wanted, event, elements_of(event, 0, len(event)))


def _fields(source: bytes, start: int, end: int) -> dict[bytes, _Value]:
    return {
        _key(name): _value(source, element)
        for name, element in elements_of(source, start, end).items()
    }


def _key(name: bytes) -> bytes:
    if name.startswith(b"$"):
        raise BadMatcher(f"a matcher has no operators, and {name.decode()!r} looks like one")
    return name


def _value(source: bytes, element: Element) -> _Value:
    code, start, end = element
    is_compound = code in {DOCUMENT, ARRAY}
    fields = _fields(source, start, end) if is_compound else None
    return _Value(
        code, b"" if is_compound else source[start:end], number_of(source, element), fields
    )


def _is_within(
    wanted: Mapping[bytes, _Value], source: bytes, found: Mapping[bytes, Element]
) -> bool:
    return all(
        _matches(value, source, value_at(source, found, key)) for key, value in wanted.items()
    )


def _matches(wanted: _Value, source: bytes, element: Element | None) -> bool:
    if element is None:
        return wanted.code == NULL
    code, start, end = element
    if wanted.fields is not None and wanted.code == DOCUMENT:
        return code == DOCUMENT and _is_within(
            wanted.fields, source, elements_of(source, start, end)
        )
    return _is_equal(wanted, source, element)


def _is_equal(wanted: _Value, source: bytes, element: Element) -> bool:
    code, start, end = element
    if wanted.number is not None:
        return wanted.number == number_of(source, element)
    if code != wanted.code:
        return False
    if wanted.fields is None:
        return wanted.raw == source[start:end]
    found = elements_of(source, start, end)
    if len(found) != len(wanted.fields):
        return False
    return all(
        key in found and _is_equal(value, source, found[key])
        for key, value in wanted.fields.items()
    )
