"""The properties section: a column of structs to AMQP lists, each field for all rows at once.

Source: AMQP 1.0, part 3.2.4.
"""

from base64 import b64decode
from collections.abc import Callable
from typing import Final, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hutch.formats.amqp.writing import sized
from pyspark_hutch.encoding import sections
from pyspark_hutch.encoding.arrays import (
    BYTES,
    Counts,
    as_bytes,
    join,
    nulls_of,
    sizes_of,
)
from pyspark_hutch.encoding.errors import BadColumn

COLUMN: Final = "properties"
TYPE_SUFFIX: Final = "_type"
_UINT_MAX: Final = (1 << 32) - 1
_ULONG_MAX: Final = (1 << 64) - 1

Cell: TypeAlias = tuple[pa.Array, ...]
"""The form of a field in the list: arrays that are joined row by row."""


def properties_section(values: pa.Array) -> tuple[pa.Array, ...]:
    """Make the section; a row whose struct is null, or holds only nulls, gets none.

    Returns:
        Arrays, which joined are the section.

    Raises:
        BadColumn: An identifier is not what its type says, or a number has no place.
    """
    fields = {field.name: values.field(index) for index, field in enumerate(values.type)}
    if values.null_count:
        present = values.is_valid()
        fields = {name: _only(present, field) for name, field in fields.items()}
    counts = np.zeros(len(values), np.int64)
    for index, name in enumerate(ORDER, start=1):
        if name in fields:
            counts = np.where(nulls_of(fields[name]), counts, index)
    cells: list[pa.Array] = []
    for index, (name, encode) in enumerate(ORDER.items(), start=1):
        if index > counts.max(initial=0):
            break  # nulls at the end of the list are left out
        inside = np.where(counts >= index, 1, 0)
        if name in fields:
            nulls = np.where(nulls_of(fields[name]), inside, -1)
            kinds = fields.get(name + TYPE_SUFFIX)
            cells += encode(f"{COLUMN}.{name}", fields[name], nulls, kinds)
        else:
            cells.append(sections.fixed(0, inside, 1, nulls=inside))
    contents = join(*cells) if cells else pa.nulls(len(values), BYTES)
    return sections.compound_section(sections.LIST, sections.PROPERTIES, contents, counts)


def _only(present: pa.Array, values: pa.Array) -> pa.Array:
    return pc.if_else(present, values, pa.scalar(None, values.type))


def _sized(constructor: int) -> "_Encoder":
    def encode(column: str, values: pa.Array, nulls: Counts, _kinds: pa.Array | None) -> Cell:
        octets = as_bytes(values)
        if constructor == sections.SYMBOL:
            sections.check_ascii(column, octets)
        return sections.heads(constructor, sizes_of(octets), nulls=nulls), octets

    return encode


_text, _binary = _sized(sections.STRING), _sized(sections.BINARY)
_symbol = _sized(sections.SYMBOL)


def _timestamp(_column: str, values: pa.Array, nulls: Counts, _kinds: pa.Array | None) -> Cell:
    """Encode times as milliseconds, rounded down."""
    micros = values.cast(pa.timestamp("us", values.type.tz), safe=False).cast(pa.int64())
    millis = np.floor_divide(np.asarray(micros.fill_null(0), dtype=np.int64), 1000)
    return (sections.fixed(sections.TIMESTAMP, millis, 8, nulls),)


def _sequence(column: str, values: pa.Array, nulls: Counts, _kinds: pa.Array | None) -> Cell:
    numbers = np.asarray(values.cast(pa.int64()).fill_null(0), dtype=np.int64)
    wrong = (numbers < 0) | (numbers > _UINT_MAX)
    if wrong.any():
        raise BadColumn(column, f"{numbers[wrong.argmax()]} is not from 0 to {_UINT_MAX}")
    return (sections.fixed(sections.UINT, numbers, 4, nulls),)


def _identifier(column: str, values: pa.Array, nulls: Counts, kinds: pa.Array | None) -> Cell:
    """Encode identifiers: texts, but where the column beside them names another type."""
    if kinds is None:
        return _text(column, values, nulls, None)
    is_text = np.asarray(pc.equal(kinds, "string").fill_null(True))  # noqa: FBT003  # one argument
    is_other = ~is_text & (nulls < 0)
    if not is_other.any():
        return _text(column, values, nulls, None)
    encoded: list[bytes | None] = [None] * len(values)
    # A loop, but only over rows whose identifier is no text: those are seldom.
    rows = np.flatnonzero(is_other)
    for row, kind, text in zip(rows, _at(kinds, rows), _at(values, rows), strict=True):
        encoded[row] = _typed(column, kind, text)
    octets = as_bytes(_only(pa.array(~is_other), values))
    head = sections.heads(sections.STRING, sizes_of(octets), nulls=np.where(is_other, 0, nulls))
    return head, octets, pa.array(encoded, BYTES)


def _at(values: pa.Array, rows: Counts) -> list[str]:
    texts: list[str] = values.take(pa.array(rows)).to_pylist()
    return texts


def _typed(column: str, kind: str, text: str) -> bytes:
    """Encode an identifier that is no text."""
    encode = IDENTIFIERS.get(kind)
    if encode is None:
        allowed = ", ".join(["string", *IDENTIFIERS])
        raise BadColumn(column + TYPE_SUFFIX, f"{kind!r} is no type of identifiers: {allowed}")
    try:
        return encode(text)
    except ValueError:
        raise BadColumn(
            column, f"{text!r} is no {kind}, which {column}{TYPE_SUFFIX} says"
        ) from None


def _ulong(text: str) -> bytes:
    if not (text.isascii() and text.isdigit() and int(text) <= _ULONG_MAX):
        raise ValueError(text)
    return b"\x80" + int(text).to_bytes(8, "big")


def _uuid(text: str) -> bytes:
    return b"\x98" + UUID(text).bytes


def _base64(text: str) -> bytes:
    return sized(sections.BINARY, b64decode(text, validate=True))


IDENTIFIERS: Final[dict[str, Callable[[str], bytes]]] = {
    "ulong": _ulong,
    "uuid": _uuid,
    "binary": _base64,
}
"""Types of identifiers besides string, and how their text is read: a decimal number, a UUID in any
of its forms, bytes in base64; as they are read."""

_Encoder: TypeAlias = Callable[[str, pa.Array, Counts, "pa.Array | None"], Cell]
ORDER: Final[dict[str, _Encoder]] = {
    "message_id": _identifier,
    "user_id": _binary,
    "to": _text,
    "subject": _text,
    "reply_to": _text,
    "correlation_id": _identifier,
    "content_type": _symbol,
    "content_encoding": _symbol,
    "absolute_expiry_time": _timestamp,
    "creation_time": _timestamp,
    "group_id": _text,
    "group_sequence": _sequence,
    "reply_to_group_id": _text,
}
"""The fields in the order in which they stand in the list."""
