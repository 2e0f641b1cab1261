"""Columns that come from the sections of AMQP messages: header, properties and the maps.

A section is decoded once for all of its columns, and only once a batch where messages repeat its
bytes, as properties often do: a row keeps the index of its section among those that differ.
Decoded values become arrays of Arrow soon, since as objects of Python they are many times larger.

A section that is damaged within, or larger than may be decoded, is null. The rest of its message is
as it is: whether a message is AMQP is told by its sections alone.
"""

from array import array
from collections.abc import Callable
from typing import Final
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyspark_hutch.decoding.amqp import list_of, map_of
from pyspark_hutch.decoding.conversions import converter
from pyspark_hutch.decoding.reasons import EXTENT_NAMES, EXTENTS
from pyspark_hutch.decoding.skimming import NotAmqp, Source
from pyspark_hutch.decoding.values import Value, text_of
from pyspark_hutch.decoding.variants import variant_of
from pyspark_hutch.decoding.wanted import Wanted
from pyspark_hutch.rows.columns import HEADER_FIELDS, MAPS, PROPERTY_FIELDS, VARIANT

_PENDING_MAX: Final = 1_024
_PENDING_BYTES_MAX: Final = 256 << 10
_IDS: Final = ("message_id", "correlation_id")

Converter = Callable[[Value], object]


class Section:
    """The rows of a batch that have a section, and the section's columns.

    Attributes:
        columns: Name, type and conversion of each.
    """

    def __init__(self, name: str, columns: list[tuple[str, pa.DataType, Converter]]) -> None:
        self.columns = columns
        self._start = 2 * EXTENT_NAMES.index(name)
        self._decode: Callable[[bytes], Value] = map_of if name in MAPS else list_of
        self.clear()

    def clear(self) -> None:
        """Begin a new batch."""
        self._memo: dict[bytes, int] = {}
        self._rows = array("i")
        self._picks = array("i")
        self._pending: list[list[object]] = [[] for _ in self.columns]
        self._pending_bytes = 0
        self._done: list[list[pa.Array]] = [[] for _ in self.columns]

    def gather(self, source: Source, extents: npt.NDArray[np.int64], row: int) -> None:
        """Take the sections of messages; `extents` says where they are, `row` is the first's."""
        starts = extents[self._start :: EXTENTS]
        ends = extents[self._start + 1 :: EXTENTS]
        found = np.flatnonzero(ends)
        self._rows.extend((found + row).tolist())
        memo, picks = self._memo, self._picks
        for start, end in zip(starts[found].tolist(), ends[found].tolist(), strict=True):
            raw = bytes(source[start:end])
            pick = memo.get(raw)
            if pick is None:
                pick = memo[raw] = len(memo)
                self._add(raw)
            picks.append(pick)

    def _add(self, raw: bytes) -> None:
        """Decode a section that is new in this batch."""
        try:
            value: Value = self._decode(raw)
        except NotAmqp:
            value = None
        for (_, _, convert), pending in zip(self.columns, self._pending, strict=True):
            pending.append(None if value is None else convert(value))
        self._pending_bytes += len(raw)
        if len(self._pending[0]) >= _PENDING_MAX or self._pending_bytes >= _PENDING_BYTES_MAX:
            self._settle()

    def _settle(self) -> None:
        for (_, kind, _), pending, done in zip(
            self.columns, self._pending, self._done, strict=True
        ):
            done.append(_array(pending, kind))
            pending.clear()
        self._pending_bytes = 0

    def makers(self, count: Callable[[], int]) -> dict[str, Callable[[object], pa.Array]]:
        """Return what makes each column of a batch, by name; `count` tells the batch's rows."""

        def maker(index: int) -> Callable[[object], pa.Array]:
            return lambda _: self._column(index, count())

        return {name: maker(index) for index, (name, _, _) in enumerate(self.columns)}

    def _column(self, index: int, count: int) -> pa.Array:
        kind = self.columns[index][1]
        if not self._picks:
            return pa.nulls(count, kind) if kind != VARIANT else _variants([None] * count)
        if self._pending[index]:
            self._settle()
        done = self._done[index]
        values = done[0] if len(done) == 1 else pa.concat_arrays(done)
        if len(self._memo) == len(self._picks) == count:
            return values
        picks = np.full(count, -1, np.int32)
        picks[np.frombuffer(self._rows, np.int32)] = np.frombuffer(self._picks, np.int32)
        taken = values.take(pa.array(picks, mask=picks < 0))
        return _without_nulls(taken) if kind == VARIANT else taken


def _array(values: list[object], kind: pa.DataType) -> pa.Array:
    return _variants(values) if kind == VARIANT else pa.array(values, kind)


def _variants(values: list[object]) -> pa.Array:
    return _without_nulls(pa.array(values, VARIANT))


def _without_nulls(variants: pa.Array) -> pa.Array:
    """Put empty bytes under variants that are null: the fields of a variant are never null."""
    if not variants.null_count:
        return variants
    fields = [variants.field(index).fill_null(b"") for index in range(2)]
    return pa.StructArray.from_arrays(fields, fields=list(VARIANT), mask=variants.is_null())


def sections_of(wanted: Wanted) -> list[Section]:
    """Return the sections that the wanted columns come from."""
    typed = dict(wanted.app_columns)
    names = [name for name in wanted.schema().names if name not in typed]
    found: list[Section] = []
    for name in EXTENT_NAMES:
        columns = [(name, _kind(wanted, name), _converter(wanted, name))] if name in names else []
        if name == "application_properties":
            columns += [(key, kind, _field(key, kind)) for key, kind in typed.items()]
        if columns:
            found.append(Section(name, columns))
    return found


def _kind(wanted: Wanted, name: str) -> pa.DataType:
    return wanted.schema().field(name).type


def _converter(wanted: Wanted, name: str) -> Converter:
    if name in MAPS:
        return variant_of if wanted.variant else _texts
    return _header if name == "header" else _properties


def _field(name: str, kind: pa.DataType) -> Converter:
    """Return what finds one application property, as a type."""
    convert = converter(kind)
    return lambda value: convert(value.get(name)) if isinstance(value, dict) else None


def _texts(value: Value) -> object:
    assert isinstance(value, dict)
    return [(name, text_of(item)) for name, item in value.items()]


_HEADER: Final = [converter(kind) for _, _, kind in HEADER_FIELDS]
_PROPERTIES: Final = [
    (index, converter(kind), name in _IDS)
    for index, (name, _, kind) in enumerate(PROPERTY_FIELDS)
    if not name.endswith("_id_type")
]
"""AMQP's fields in their order: where each stands in a row, and whether it is an id."""


def _header(value: Value) -> object:
    assert isinstance(value, list)
    fields = [*value, *[None] * len(_HEADER)]
    return tuple(convert(field) for convert, field in zip(_HEADER, fields, strict=False))


def _properties(value: Value) -> object:
    assert isinstance(value, list)
    found: list[object] = [None] * len(PROPERTY_FIELDS)
    for (index, convert, is_id), field in zip(_PROPERTIES, value, strict=False):
        if field is not None:
            found[index] = convert(field)
            if is_id:
                found[index + 1] = _id_type(field)
    return tuple(found)


def _id_type(value: Value) -> str | None:
    """Tell which of AMQP's types an id has; its text does not."""
    match value:
        case bool():
            return None
        case int():
            return "ulong"
        case bytes():
            return "binary"
        case str():
            return "string"
        case UUID():
            return "uuid"
        case _:
            return None
