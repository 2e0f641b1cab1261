"""BSON documents as bytes: values found by paths, and documents made of others; all exact.

Values stay the bytes that they are. So nothing is lost of types that Python does not know.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Final

from gateway.mewbase.wire.kernel import documents
from gateway.mewbase.wire.reading import Element
from gateway.mewbase.wire.writing import document, element

DOUBLE, TEXT, DOCUMENT, ARRAY, NULL, INT32, INT64 = 0x01, 0x02, 0x03, 0x04, 0x0A, 0x10, 0x12
_FORMS: Final = {
    DOUBLE: struct.Struct("<d"),
    INT32: struct.Struct("<i"),
    INT64: struct.Struct("<q"),
}
FIELDS_MAX: Final = 10_000
"""The most fields of a document that is made of others, not counting those of documents in it."""
_INT32: Final = range(-(1 << 31), 1 << 31)
_INT64: Final = range(-(1 << 63), 1 << 63)

EMPTY: Final = document()


class NoDocument(ValueError):
    """An event of which no document can be made."""


def elements_of(source: bytes, start: int, end: int) -> Mapping[bytes, Element]:
    """Return the elements of a document in [start, end) by their names; none if it is no document.

    Each is its type, and where its value begins and ends.
    """
    return documents.elements(source, start, end, end - start) or {}


def value_in(source: bytes, key: bytes) -> Element | None:
    """Return the value of a key in a document; None if there is none.

    A key with dots is the key of that name; if there is none, it is a path.
    """
    first, *path = key.split(b".")
    found = documents.chosen(source, 0, len(source), frozenset((key, first)))
    value = found.get(key)
    if value is not None or not path:
        return value
    value = found.get(first)
    for part in path:
        if value is None or value[0] != DOCUMENT:
            return None
        value = documents.chosen(source, value[1], value[2], frozenset((part,))).get(part)
    return value


def number_of(source: bytes, value: Element) -> float | None:
    """Return a value as a number; None if it is none."""
    code, start, _ = value
    form = _FORMS.get(code)
    if form is None:
        return None
    number: float = form.unpack_from(source, start)[0]
    return number


def text_of(source: bytes, value: Element) -> str | None:
    """Return a string, or a whole number in its decimal form; None for any other value."""
    code, start, end = value
    if code == TEXT:
        return source[start + 4 : end - 1].decode()
    return str(number_of(source, value)) if code in {INT32, INT64} else None


def merged(older: bytes, newer: bytes, fields_max: int = FIELDS_MAX) -> bytes:
    """Return a document with the elements of both; of two with one name the newer one.

    Raises NoDocument: It would have more fields than `fields_max`.
    """
    new = documents.merged(older, newer, fields_max)
    if new is None:
        raise NoDocument(f"the document would have more than {fields_max} fields")
    return new


def added(
    source: bytes,
    path: Sequence[bytes],
    amount_in: bytes,
    amount: Element,
    fields_max: int = FIELDS_MAX,
) -> bytes:
    """Return a document with an amount added to the number at a path, which begins as 0.

    Two whole numbers give an int32, or an int64 if one of them is, or if the sum needs it; with a
    double the sum is one.

    Args:
        source: The document.
        path: The names on the way; documents that are missing are made.
        amount_in: The document that has the amount.
        amount: The amount in it.
        fields_max: The most fields of the result.

    Raises:
        NoDocument: Something else is in the way, the sum is beyond an int64, or the result would
            have too many fields.
    """
    name, *rest = path
    found = documents.chosen(source, 0, len(source), frozenset((name,)))
    code, start, end = found.get(name, (NULL, 0, 0))
    if rest:
        if code not in {DOCUMENT, NULL}:
            raise NoDocument(f"{_shown(name)} of the document is no document")
        inner = EMPTY if code == NULL else source[start:end]
        new = element(DOCUMENT, name, added(inner, rest, amount_in, amount, len(inner)))
    else:
        here = _number(source, (code, start, end), name) if code != NULL else (INT32, 0)
        new = element(*_sum(here, _number(amount_in, amount, b"the quantity"), name))
    return merged(source, document(new), fields_max)


def _number(source: bytes, value: Element, name: bytes) -> tuple[int, float]:
    number = number_of(source, value)
    if number is None:
        raise NoDocument(f"{_shown(name)} is no number")
    return value[0], number


def _sum(one: tuple[int, float], other: tuple[int, float], name: bytes) -> tuple[int, bytes, bytes]:
    """Return type, name and value of the sum of two numbers with their types."""
    codes, total = {one[0], other[0]}, one[1] + other[1]
    if DOUBLE in codes:
        code = DOUBLE
    elif INT64 in codes or total not in _INT32:
        code = INT64
        if total not in _INT64:
            raise NoDocument(f"the sum for {_shown(name)} is beyond an int64")
    else:
        code = INT32
    return code, name, _FORMS[code].pack(total)


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "replace")[:80]
