"""Fields of AMQP lists and maps, those of many sections at once, by numpy.

    section   | 45 | or | c0 c1: size u8, count u8 | or | d0 d1: size u32, count u32 | fields
    field     | constructor | bytes | or, of variable size, | constructor | size u8 or u32 | bytes

All sections are walked together: first fields, second fields and so on. A section that holds what
the walk does not know (values within values), or is damaged, is left to
`pyspark_hutch.decoding.bodies`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hutch.formats.amqp.reading import VALUE_BYTES_MAX, value_of
from pyspark_hutch.columns import TIMESTAMP
from pyspark_hutch.decoding.conversions import converter

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

FIELDS_MAX: Final = 64
"""Sections with more are not walked together."""

_EMPTY_LIST, _NULL, _BOOLEAN, _MOMENT = 0x45, 0x40, 0x56, 0x83
_TEXT_CODES: Final = (0xA1, 0xA3, 0xB1, 0xB3)
_BINARY_CODES: Final = (0xA0, 0xB0)
_UNSIGNED_CODES: Final = (0x43, 0x44, 0x50, 0x52, 0x53, 0x60, 0x70)
_SIGNED_CODES: Final = (0x51, 0x54, 0x55, 0x61, 0x71, 0x81)
_ODD: Final = -1
_WIDTHS: Final = np.full(256, _ODD, np.int64)
"""Bytes of a value by its constructor."""
_SIZE_WIDTHS: Final = np.zeros(256, np.int64)
"""Bytes of the size in front of a value by its constructor."""
_WIDTHS[[0x40, 0x41, 0x42, 0x43, 0x44, *_TEXT_CODES, *_BINARY_CODES]] = 0
_WIDTHS[[0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56]] = 1
_WIDTHS[[0x60, 0x61]] = 2
_WIDTHS[[0x70, 0x71, 0x72]] = 4
_WIDTHS[[0x80, 0x81, 0x82, 0x83]] = 8
_WIDTHS[0x98] = 16
_SIZE_WIDTHS[[0xA0, 0xA1, 0xA3]] = 1
_SIZE_WIDTHS[[0xB0, 0xB1, 0xB3]] = 4
_PADDING: Final = bytes(16)
"""Behind the last section, so that a number may be looked at everywhere."""


@dataclass(frozen=True, slots=True)
class FieldValues:
    """One field of each of some sections, in their order.

    Attributes:
        data: The sections, one behind the other.
        begins: Where a field begins, with its constructor.
        starts: Where its bytes begin.
        sizes: How many there are.
        codes: Its constructor; that of null where a section has no such field.
    """

    data: npt.NDArray[np.uint8]
    begins: Numbers
    starts: Numbers
    sizes: Numbers
    codes: npt.NDArray[np.uint8]

    def at(self, indexes: Numbers) -> "FieldValues":
        """Return the fields at some indexes."""
        return FieldValues(self.data, *(each[indexes] for each in self.arrays()))

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """Return begins, starts, sizes and codes."""
        return self.begins, self.starts, self.sizes, self.codes


class Walked(NamedTuple):
    """Sections that were walked together.

    Attributes:
        fields: The first fields, the second, and so on; an even count of them.
        counts: How many fields each section has; 0 where it was not walked to its end.
        is_whole: Which sections were.
    """

    fields: list[FieldValues]
    counts: Numbers
    is_whole: Flags

    def nulls(self) -> FieldValues:
        """Return fields that no section has."""
        firsts = self.fields[0].begins
        none = np.zeros_like(firsts)
        codes = np.full(len(firsts), _NULL, np.uint8)
        return FieldValues(self.fields[0].data, firsts, firsts, none, codes)


def walk(raws: Sequence[bytes]) -> Walked:
    """Find the fields of lists or maps; each is as long as its own size says."""
    lengths = np.fromiter(map(len, raws), np.int64, len(raws))
    ends = np.cumsum(lengths)
    begins = ends - lengths
    data = np.frombuffer(b"".join((*raws, _PADDING)), np.uint8)
    heads = data[begins]
    is_small, is_large = heads >> 4 == 0xC, heads >> 4 == 0xD  # noqa: PLR2004
    counts = np.where(is_small, data[begins + 2], np.where(is_large, _u32(data, begins + 5), 0))
    places = begins + np.where(is_small, 3, np.where(is_large, 9, 1))
    is_whole = (is_small | is_large | (heads == _EMPTY_LIST)) & (counts <= FIELDS_MAX)
    is_whole &= (places <= ends) & (lengths <= VALUE_BYTES_MAX)
    fields = []
    most = max(1, int(counts.max(where=is_whole, initial=0)))
    for index in range(most + most % 2):
        is_there = is_whole & (counts > index)
        codes = data[places]
        widths, size_widths = _WIDTHS[codes], _SIZE_WIDTHS[codes]
        starts = places + 1 + size_widths
        sizes = np.where(size_widths == 1, data[places + 1], widths)
        if (is_wide := size_widths > 1).any():
            sizes = np.where(is_wide, _u32(data, places + 1), sizes)
        fits = (widths != _ODD) & (starts + sizes <= ends)
        fits &= (codes != _BOOLEAN) | (data[np.minimum(starts, ends)] <= 1)
        is_whole &= fits | ~is_there
        is_there &= fits
        places, before = np.where(is_there, starts + sizes, places), places
        fields.append(
            FieldValues(
                data,
                np.where(is_there, before, begins),
                np.where(is_there, starts, begins),
                np.where(is_there, sizes, 0),
                np.where(is_there, codes, np.uint8(_NULL)),
            )
        )
    is_whole &= places == ends
    return Walked(fields, np.where(is_whole, counts, 0), is_whole)


def _u32(data: npt.NDArray[np.uint8], places: Numbers) -> Numbers:
    return _whole(data, places, "u", 4)


def _whole(data: npt.NDArray[np.uint8], places: Numbers, kind: str, width: int) -> Numbers:
    """Read big-endian numbers."""
    # Of places behind the data those at its end are read: they are not used.
    firsts = np.minimum(places, len(data) - width)
    raw = data[firsts[:, np.newaxis] + np.arange(width)]
    return raw.view(f">{kind}{width}")[:, 0].astype(np.int64)


# ---- values ----------------------------------------------------------------------------------


def array_of(fields: FieldValues, kind: pa.DataType) -> pa.Array:
    """Return fields as a type of Arrow, as `conversions` does it one by one."""
    is_left = fields.codes != _NULL
    parts = []
    for is_quick, convert in _QUICK.get(str(kind), ()):
        is_now = is_left & is_quick[fields.codes]
        if is_now.any():
            is_left &= ~is_now
            parts.append(convert(fields, is_now))
    if is_left.any():
        parts.append(_one_by_one(fields, is_left, kind))
    if not parts:
        return pa.nulls(len(fields.codes), kind)
    return parts[0] if len(parts) == 1 else pc.coalesce(*parts)


def _one_by_one(fields: FieldValues, is_now: Flags, kind: pa.DataType) -> pa.Array:
    convert = converter(kind)
    memo: dict[bytes, object] = {}
    values: list[object] = [None] * len(is_now)
    stops = fields.starts + fields.sizes
    for index in np.flatnonzero(is_now).tolist():
        raw = fields.data[fields.begins[index] : stops[index]].tobytes()
        if raw not in memo:
            memo[raw] = convert(value_of(raw))
        values[index] = memo[raw]
    return pa.array(values, kind)


def _binaries(fields: FieldValues, is_now: Flags) -> pa.Array:
    """Take bytes out of an array over all data, whose values are by turns a field and the rest."""
    count = len(is_now)
    if not count:
        return pa.array([], pa.binary())
    places = np.empty(2 * count, np.int32)
    places[::2] = fields.starts
    places[1::2] = fields.starts + fields.sizes
    buffers = [None, pa.py_buffer(places), pa.py_buffer(fields.data)]
    by_turns = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
    return by_turns.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32), mask=~is_now))


def _texts(fields: FieldValues, is_now: Flags) -> pa.Array:
    found = _binaries(fields, is_now)
    try:
        return found.cast(pa.string())
    except pa.ArrowInvalid:  # not all of it is Unicode
        raws = found.to_pylist()
        texts = [None if raw is None else raw.decode("utf-8", "replace") for raw in raws]
        return pa.array(texts, pa.string())


def _bigints(fields: FieldValues, is_now: Flags) -> pa.Array:
    numbers = np.zeros(len(is_now), np.int64)
    for code in np.unique(fields.codes[is_now]).tolist():
        width = int(_WIDTHS[code])
        if width:
            sign = "u" if code in _UNSIGNED_CODES else "i"
            indexes = np.flatnonzero(is_now & (fields.codes == code))
            numbers[indexes] = _whole(fields.data, fields.starts[indexes], sign, width)
    return pa.array(numbers, mask=~is_now)


def _numbers_as_texts(fields: FieldValues, is_now: Flags) -> pa.Array:
    return _bigints(fields, is_now).cast(pa.string())


def _moments(fields: FieldValues, is_now: Flags) -> pa.Array:
    return micros_of(_whole(fields.data, fields.starts, "i", 8), ~is_now)


def micros_of(times_ms: Numbers, is_null: Flags | np.bool_ = np.False_) -> pa.Array:
    """Return milliseconds since 1970 as timestamps; null where they have no microseconds."""
    # Not by its size: the least number has none.
    is_far = (times_ms > _MS_MAX) | (times_ms < -_MS_MAX)
    micros = np.where(is_far, 0, times_ms) * 1000
    return pa.array(micros, mask=is_far | is_null).cast(TIMESTAMP)


def _among(*codes: int) -> Flags:
    found = np.zeros(256, np.bool_)
    found[list(codes)] = True
    return found


_IS_TEXT: Final = _among(*_TEXT_CODES)
_MS_MAX: Final = ((1 << 63) - 1) // 1000
_WHOLE: Final = _among(*_UNSIGNED_CODES, *_SIGNED_CODES)

_ID_TYPES: Final = ("ulong", "binary", "string", "uuid", None)
_TYPE_INDEXES: Final = np.full(256, 4, np.int32)
"""Index of an id's type in `_ID_TYPES`, by constructor."""
_TYPE_INDEXES[[*_UNSIGNED_CODES, *_SIGNED_CODES, 0x80]] = 0
_TYPE_INDEXES[list(_BINARY_CODES)] = 1
_TYPE_INDEXES[[*_TEXT_CODES, 0x73]] = 2
_TYPE_INDEXES[0x98] = 3

_QUICK: Final[dict[str, tuple[tuple[Flags, Callable[[FieldValues, Flags], pa.Array]], ...]]] = {
    str(pa.string()): ((_IS_TEXT, _texts), (_WHOLE, _numbers_as_texts)),
    str(pa.binary()): ((_among(*_BINARY_CODES), _binaries),),
    str(pa.int64()): ((_WHOLE, _bigints),),
    str(TIMESTAMP): ((_among(_MOMENT), _moments),),
}
"""Constructors with values that are decoded all at once, and their decoders, by type name."""


# ---- sections --------------------------------------------------------------------------------


def structs_of(walked: Walked, members: Iterable[tuple[str, pa.DataType]]) -> pa.Array:
    """Return lists as structs; a member `…_id_type` is the type of the member before it."""
    nulls = walked.nulls()
    fields = iter(walked.fields)
    columns: dict[str, pa.Array] = {}
    field = nulls
    for name, kind in members:
        if name.endswith("_id_type"):
            id_types = pa.array(_ID_TYPES, pa.string())
            columns[name] = id_types.take(pa.array(_TYPE_INDEXES[field.codes]))
        else:
            field = next(fields, nulls)
            columns[name] = array_of(field, kind)
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


@dataclass(frozen=True, slots=True)
class Pairs:
    """Keys and values of maps, those of all maps behind one another.

    Attributes:
        rows: Indexes of the maps that they belong to.
        keys: Texts.
        values: As many.
        is_whole: Maps whose pairs are here: each key is a text, and there but once.
        nulls: A value for each map that has none.
    """

    rows: Numbers
    keys: pa.Array
    values: FieldValues
    is_whole: Flags
    nulls: FieldValues

    def maps(self) -> pa.Array:
        """Return the maps, as texts by texts."""
        counts = np.bincount(self.rows, minlength=len(self.is_whole))
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return pa.MapArray.from_arrays(ends, self.keys, array_of(self.values, pa.string()))

    def named(self, name: str, kind: pa.DataType) -> pa.Array:
        """Return the value that each map has under a name, as a type of Arrow."""
        found = np.flatnonzero(pc.equal(self.keys, name).to_numpy(zero_copy_only=False))
        values, at = self.values.at(found), self.rows[found]
        columns = self.nulls.at(np.arange(len(self.is_whole)))
        for column, found_there in zip(columns.arrays(), values.arrays(), strict=True):
            column[at] = found_there
        return array_of(columns, kind)


def pairs_of(walked: Walked) -> Pairs:
    """Return the pairs of maps."""
    keys, values = walked.fields[::2], walked.fields[1::2]
    is_whole = walked.is_whole & (walked.counts % 2 == 0)
    for index, key in enumerate(keys):
        is_whole &= _IS_TEXT[key.codes] | (walked.counts <= 2 * index)
    counts = np.where(is_whole, walked.counts // 2, 0)
    has = np.arange(len(values)) < counts[:, np.newaxis]
    rows = np.nonzero(has)[0]
    flat_keys = _flat(keys, has)
    texts = _texts(flat_keys, _IS_TEXT[flat_keys.codes])
    is_twin = _is_twin(rows, texts)
    is_whole[rows[is_twin]] = False
    kept = np.flatnonzero(is_whole[rows])
    keys_kept, values_kept = texts.take(pa.array(kept)), _flat(values, has).at(kept)
    return Pairs(rows[kept], keys_kept, values_kept, is_whole, walked.nulls())


def _flat(fields: Sequence[FieldValues], has: Flags) -> FieldValues:
    """Put the fields of a section behind one another, and sections too."""
    arrays = zip(*(field.arrays() for field in fields), strict=True)
    return FieldValues(fields[0].data, *(np.stack(each, axis=1)[has] for each in arrays))


def _is_twin(rows: Numbers, keys: pa.Array) -> Flags:
    """Return which keys their section has another time."""
    numbers = keys.dictionary_encode().indices.to_numpy().astype(np.int64)
    places = rows * (len(keys) + 1) + numbers
    order = np.argsort(places, kind="stable")
    is_twin = np.zeros(len(keys), np.bool_)
    is_twin[order[1:]] = places[order[1:]] == places[order[:-1]]
    return is_twin
