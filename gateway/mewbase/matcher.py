"""Matchers: documents that say which events a subscription wants.

An event matches if it has each key of the matcher with an equal value. A document in the matcher
matches a document that has its keys, and perhaps others; an array one of equal items. Numbers are
compared by value, whatever their type; a boolean is no number. Null matches null, and a key that
is absent. A key with dots is the key of that name, or else a path.

The protocol's page says no more than "object to match on the event fields"; all this is our reading
of it. Events are looked at as the bytes that they are, so no value is beyond it.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.mewbase.wire.kernel.documents import elements
from gateway.mewbase.wire.reading import Element

_DOCUMENT, _ARRAY, _NULL = 0x03, 0x04, 0x0A
_NUMBERS: Final = {0x01: struct.Struct("<d"), 0x10: struct.Struct("<i"), 0x12: struct.Struct("<q")}


class BadMatcher(ValueError):
    """A matcher with a key that begins with $: there are no operators."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A value that is wanted.

    Attributes:
        code: Its type.
        raw: Its bytes.
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
        self._wanted = _fields(matcher, 0, len(matcher))

    def matches(self, event: bytes) -> bool:
        """Tell whether an event, a whole document, is wanted."""
        return _is_within(self._wanted, event, _elements(event, 0, len(event)))


def _fields(source: bytes, start: int, end: int) -> dict[bytes, _Value]:
    return {
        _key(name): _value(source, element)
        for name, element in _elements(source, start, end).items()
    }


def _key(name: bytes) -> bytes:
    if name.startswith(b"$"):
        raise BadMatcher(f"a matcher has no operators, and {name.decode()!r} looks like one")
    return name


def _value(source: bytes, element: Element) -> _Value:
    code, start, end = element
    is_compound = code in {_DOCUMENT, _ARRAY}
    fields = _fields(source, start, end) if is_compound else None
    return _Value(code, source[start:end], _number(source, element), fields)


def _elements(source: bytes, start: int, end: int) -> dict[bytes, Element]:
    return elements(source, start, end) or {}


def _number(source: bytes, element: Element) -> float | None:
    code, start, _ = element
    form = _NUMBERS.get(code)
    if form is None:
        return None
    number: float = form.unpack_from(source, start)[0]
    return number


def _is_within(
    wanted: Mapping[bytes, _Value], source: bytes, found: Mapping[bytes, Element]
) -> bool:
    return all(_matches(value, source, _at(source, found, key)) for key, value in wanted.items())


def _at(source: bytes, found: Mapping[bytes, Element], key: bytes) -> Element | None:
    """Return the value of a key, or what its path leads to; None if there is none."""
    element = found.get(key)
    if element is not None or b"." not in key:
        return element
    *path, last = key.split(b".")
    for part in path:
        code, start, end = found.get(part, (_NULL, 0, 0))
        if code != _DOCUMENT:
            return None
        found = _elements(source, start, end)
    return found.get(last)


def _matches(wanted: _Value, source: bytes, element: Element | None) -> bool:
    if element is None:
        return wanted.code == _NULL
    code, start, end = element
    if wanted.fields is not None and wanted.code == _DOCUMENT:
        return code == _DOCUMENT and _is_within(
            wanted.fields, source, _elements(source, start, end)
        )
    return _is_equal(wanted, source, element)


def _is_equal(wanted: _Value, source: bytes, element: Element) -> bool:
    code, start, end = element
    if wanted.number is not None:
        return wanted.number == _number(source, element)
    if code != wanted.code:
        return False
    if wanted.fields is None:
        return wanted.raw == source[start:end]
    found = _elements(source, start, end)
    if len(found) != len(wanted.fields):
        return False
    return all(
        key in found and _is_equal(value, source, found[key])
        for key, value in wanted.fields.items()
    )
