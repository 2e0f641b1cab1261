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
from typing import Final, NamedTuple

from gateway.broker.yielding import TurnBudget
from gateway.mewbase.documents import ARRAY, DOCUMENT, NULL, elements_of, number_of
from gateway.mewbase.wire.kernel.documents import chosen, elements
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
        path: The names of its key, if that has dots; otherwise empty.
    """

    code: int
    raw: bytes
    number: float | None
    fields: "Mapping[bytes, _Value] | None"
    path: tuple[bytes, ...]


class _Look(NamedTuple):
    """One look into one event: in each document of it the wanted names are looked for once.

    Attributes:
        event: The event.
        names: All names of the matcher, at any depth.
        found: The elements with such names, by the position of their document.
    """

    event: bytes
    names: frozenset[bytes]
    found: dict[int, Mapping[bytes, Element]]


async def read_matcher(document: bytes, turns: TurnBudget) -> "Matcher":
    """Read a whole document, when there is time for it. Raises BadMatcher."""
    time_slice = await turns.slice()
    try:
        return Matcher(document)
    finally:
        turns.end(time_slice)


class Matcher:
    """Tells which events are wanted.

    Attributes:
        size: Its bytes.
    """

    def __init__(self, matcher: bytes) -> None:
        """Read a whole document; an empty one matches all. Raises BadMatcher."""
        self.size = len(matcher)
        if self.size > MATCHER_BYTES_MAX:
            raise BadMatcher(
                f"the matcher has {self.size} bytes, and {MATCHER_BYTES_MAX} are the most"
            )
        self._wanted = _fields(matcher, 0, self.size)
        names: set[bytes] = set()
        _gather(self._wanted, names)
        self._names = frozenset(names)

    def matches(self, event: bytes) -> bool:
        """Return whether an event, a whole document, is wanted."""
        return _is_within(self._wanted, _Look(event, self._names, {}), 0, len(event))


def _gather(wanted: Mapping[bytes, _Value], names: set[bytes]) -> None:
    """Add all names that are wanted anywhere."""
    names.update(wanted)
    for value in wanted.values():
        names.update(value.path)
        if value.fields:
            _gather(value.fields, names)


def _is_within(wanted: Mapping[bytes, _Value], look: _Look, start: int, end: int) -> bool:
    """Return whether the document in [start, end) has all that is wanted."""
    found = _elements(look, start, end)
    for key, value in wanted.items():
        element = found.get(key)
        if element is None and value.path:
            element = _at_path(look, found, value.path)
        if not _matches(value, look, element):
            return False
    return True


def _elements(look: _Look, start: int, end: int) -> Mapping[bytes, Element]:
    """Return the elements of a document that have a name that is wanted anywhere."""
    found = look.found.get(start)
    if found is None:
        found = look.found[start] = chosen(look.event, start, end, look.names)
    return found


def _at_path(
    look: _Look, found: Mapping[bytes, Element], path: tuple[bytes, ...]
) -> Element | None:
    """Return the value that a path leads to from a document; None if there is none."""
    value = found.get(path[0])
    for name in path[1:]:
        if value is None or value[0] != DOCUMENT:
            return None
        value = _elements(look, value[1], value[2]).get(name)
    return value


def _matches(wanted: _Value, look: _Look, element: Element | None) -> bool:
    if element is None:
        return wanted.code == NULL
    code, start, end = element
    if wanted.code == DOCUMENT and wanted.fields is not None:
        return code == DOCUMENT and _is_within(wanted.fields, look, start, end)
    return _is_equal(wanted, look.event, element)


def _fields(source: bytes, start: int, end: int) -> dict[bytes, _Value]:
    return {
        _key(name): _value(source, name, element)
        for name, element in elements_of(source, start, end).items()
    }


def _key(name: bytes) -> bytes:
    if name.startswith(b"$"):
        raise BadMatcher(f"a matcher has no operators, and {name.decode()!r} looks like one")
    return name


def _value(source: bytes, name: bytes, element: Element) -> _Value:
    code, start, end = element
    is_compound = code in {DOCUMENT, ARRAY}
    fields = _fields(source, start, end) if is_compound else None
    raw = b"" if is_compound else source[start:end]
    path = tuple(name.split(b".")) if b"." in name else ()
    return _Value(code, raw, number_of(source, element), fields, path)


def _is_equal(wanted: _Value, source: bytes, element: Element) -> bool:
    code, start, end = element
    if wanted.number is not None:
        return wanted.number == number_of(source, element)
    if code != wanted.code:
        return False
    if wanted.fields is None:
        return len(wanted.raw) == end - start and wanted.raw == source[start:end]
    found = elements(source, start, end, len(wanted.fields))
    if found is None or len(found) < len(wanted.fields):
        return False
    return all(
        key in found and _is_equal(value, source, found[key])
        for key, value in wanted.fields.items()
    )
