"""Columns that come from the sections of AMQP messages: header, properties and the maps.

A section is decoded once for all of its columns, and only once a batch where messages repeat its
bytes: a row keeps the index of its section among those that differ. Many that differ are decoded
together (`fields`); a few, and those that this leaves out, one by one. Decoded values become arrays
of Arrow soon, since as objects of Python they are many times larger.

A section that is damaged within, or larger than may be decoded, is null. The rest of its message is
as it is: whether a message is AMQP is told by its sections alone.
"""

from array import array
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hutch.formats.amqp.reading import list_of, map_of
from hutch.formats.amqp.sections import NotAmqp, Source
from hutch.formats.amqp.values import Value, text_of
from pyspark_hutch.columns import HEADER_FIELDS, MAPS, PROPERTY_FIELDS, VARIANT, WantedColumns
from pyspark_hutch.decoding.bodies import EXTENT_NAMES, EXTENTS
from pyspark_hutch.decoding.conversions import converter
from pyspark_hutch.decoding.fields import Pairs, Walked, pairs_of, structs_of, walk
from pyspark_hutch.decoding.variants import variant_of

_PENDING_MAX: Final = 4_096
_PENDING_BYTES_MAX: Final = 256 << 10
_FEW: Final = 40
"""The count of sections that costs as much one by one as together."""
_IDS: Final = ("message_id", "correlation_id")

Converter = Callable[[Value], object]


class SectionColumn(NamedTuple):
    """A column that comes from a section.

    Attributes:
        convert: Makes a value of it from the section's.
        together: Makes an array of it from many sections; None: there is no such way.
    """

    name: str
    kind: pa.DataType
    convert: Converter
    together: Callable[[Any], pa.Array] | None


class SectionRows:
    """The rows of a batch that have a section, and the section's columns."""

    def __init__(self, name: str, columns: list[SectionColumn]) -> None:
        self._columns = columns
        self.name = name
        self._start = 2 * EXTENT_NAMES.index(name)
        self._is_map = name in MAPS
        self._decode: Callable[[bytes], Value] = map_of if self._is_map else list_of
        self.clear()

    def clear(self) -> None:
        """Begin a new batch."""
        self._memo: dict[bytes, int] = {}
        self._rows = array("i")
        self._picks = array("i")
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._done: list[list[pa.Array]] = [[] for _ in self._columns]

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
        """Take a section that is new in this batch."""
        self._pending.append(raw)
        self._pending_bytes += len(raw)
        if len(self._pending) >= _PENDING_MAX or self._pending_bytes >= _PENDING_BYTES_MAX:
            self._settle()

    def _settle(self) -> None:
        """Decode the sections that wait."""
        raws, self._pending, self._pending_bytes = self._pending, [], 0
        together: Walked | Pairs | None = None
        left: Sequence[int] = range(len(raws))
        if len(raws) > _FEW and all(column.together for column in self._columns):
            together = pairs_of(walk(raws)) if self._is_map else walk(raws)
            left = np.flatnonzero(~together.is_whole).tolist()
        by_column: list[list[object]] = [[] for _ in self._columns]
        for index in left:
            value = self._value(raws[index])
            for column, values in zip(self._columns, by_column, strict=True):
                values.append(None if value is None else column.convert(value))
        for column, values, done in zip(self._columns, by_column, self._done, strict=True):
            made = _array(values, column.kind)
            if together is not None and column.together is not None:
                made = _replaced(column.together(together), left, made)
            done.append(made)

    def _value(self, raw: bytes) -> Value:
        try:
            return self._decode(raw)
        except NotAmqp:
            return None

    def makers(self, count: Callable[[], int]) -> dict[str, Callable[[object], pa.Array]]:
        """Return a function for each column of a batch, by name; `count` has the batch's rows."""

        def maker(index: int) -> Callable[[object], pa.Array]:
            return lambda _: self._column(index, count())

        return {column.name: maker(index) for index, column in enumerate(self._columns)}

    def _column(self, index: int, count: int) -> pa.Array:
        kind = self._columns[index].kind
        if not self._picks:
            return pa.nulls(count, kind) if kind != VARIANT else _variants([None] * count)
        if self._pending:
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


def _replaced(array: pa.Array, indexes: Sequence[int], values: pa.Array) -> pa.Array:
    """Put other values at some indexes; those of `if_else` cannot be structs or maps."""
    if not len(indexes):
        return array
    places = np.arange(len(array))
    places[indexes] = len(array) + np.arange(len(indexes))
    return pa.concat_arrays([array, values]).take(pa.array(places))


def sections_of(wanted: WantedColumns) -> list[SectionRows]:
    """Return the sections that the wanted columns come from."""
    schema, typed = wanted.schema(), dict(wanted.app_columns)
    found: list[SectionRows] = []
    for name in EXTENT_NAMES:
        columns = []
        if name in schema.names and name not in typed:
            columns.append(_column(name, schema.field(name).type, variant=wanted.variant))
        if name == "application_properties":
            columns += [_property(key, kind) for key, kind in typed.items()]
        if columns:
            found.append(SectionRows(name, columns))
    return found


def _column(name: str, kind: pa.DataType, *, variant: bool) -> SectionColumn:
    """Return the column that shows a whole section."""
    if name in MAPS:
        if variant:
            return SectionColumn(name, kind, variant_of, None)
        return SectionColumn(name, kind, _texts, Pairs.maps)
    convert, fields = (
        (_header, HEADER_FIELDS) if name == "header" else (_properties, PROPERTY_FIELDS)
    )
    members = [(field, arrow) for field, _, arrow in fields]
    return SectionColumn(name, kind, convert, lambda walked: structs_of(walked, members))


def _property(name: str, kind: pa.DataType) -> SectionColumn:
    """Return the column of one application property."""
    convert = converter(kind)
    return SectionColumn(
        name,
        kind,
        lambda value: convert(value.get(name)) if isinstance(value, dict) else None,
        lambda pairs: pairs.named(name, kind),
    )


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
    """Return which of AMQP's types an id has; its text does not say it."""
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
