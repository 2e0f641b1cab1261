"""AMQP 1.0 for all rows of a batch at once: values with their heads, lists, maps, sections.

    value       constructor u8 | size u8 | bytes        up to 255 bytes; else constructor + 0x10,
                                                        and the size is u32
    list, map   constructor u8 | size u8 | count u8 | items       the same; the size counts from
                                                                  the count on
    section     0x00 0x53 code | value

The head of a row's value stands before its bytes. Heads are made apart from the values, so that a
message is put together by one join. Strings of one row are encoded by
`hutch/formats/amqp/writing.py`.

Source: AMQP 1.0, parts 1.2 to 1.6.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyspark_hutch.encoding.arrays import (
    Counts,
    Octets,
    array_of,
    as_bytes,
    big_endian,
    data_of,
    join,
    nulls_of,
    positions_of,
    ragged,
    sizes_of,
)
from pyspark_hutch.encoding.errors import BadColumn

BINARY: Final = 0xA0
STRING: Final = 0xA1
SYMBOL: Final = 0xA3
LIST: Final = 0xC0
MAP: Final = 0xC1
TIMESTAMP: Final = 0x83
UINT: Final = 0x70

ANNOTATIONS: Final = b"\x00\x53\x72"
PROPERTIES: Final = b"\x00\x53\x73"
APPLICATION: Final = b"\x00\x53\x74"
DATA: Final = b"\x00\x53\x75"

_NULL: Final = 0x40
_LONG: Final = 0x10
_SHORT_MAX: Final = 0xFF
_ASCII_MAX: Final = 0x7F


def heads(
    constructor: int, sizes: Counts, *, before: bytes = b"", nulls: Counts | None = None
) -> pa.Array:
    """Make the heads of values of these sizes.

    Args:
        constructor: The one of the short form.
        sizes: Of the values, in bytes.
        before: Bytes before every head.
        nulls: For each row -1, or how often AMQP's null stands there in place of a value, 0 or 1.
    """
    is_long = sizes > _SHORT_MAX
    place = len(before)
    matrix: Octets = np.empty((len(sizes), place + 5), np.uint8)
    matrix[:, :place] = np.frombuffer(before, np.uint8)
    matrix[:, place] = constructor
    matrix[:, place + 1] = sizes  # the lowest byte
    if is_long.any():
        matrix[is_long, place] += _LONG
        matrix[is_long, place + 1 :] = big_endian(sizes[is_long], 4)
    return _with_nulls(matrix, place + 2 + 3 * is_long, nulls)


def fixed(constructor: int, values: npt.NDArray[np.int64], size: int, nulls: Counts) -> pa.Array:
    """Encode numbers of `size` bytes; `nulls` as for `heads`."""
    matrix: Octets = np.empty((len(values), 1 + size), np.uint8)
    matrix[:, 0] = constructor
    matrix[:, 1:] = big_endian(values, size)
    return _with_nulls(matrix, np.full(len(values), 1 + size, np.int64), nulls)


def _with_nulls(matrix: Octets, widths: Counts, nulls: Counts | None) -> pa.Array:
    if nulls is None:
        return ragged(matrix, widths)
    matrix[nulls >= 0, 0] = _NULL
    return ragged(matrix, np.where(nulls < 0, widths, nulls))


def compound_section(
    constructor: int, before: bytes, contents: pa.Array, counts: Counts
) -> tuple[pa.Array, pa.Array]:
    """Make a section that is a list or a map.

    Args:
        constructor: Of the list or the map, in its short form.
        before: The section's own head.
        contents: The items of each row, encoded, behind each other.
        counts: How many items; a row with none gets no section.

    Returns:
        Two arrays, which joined are the section.
    """
    sizes = sizes_of(contents)
    is_long = (sizes >= _SHORT_MAX) | (counts > _SHORT_MAX)
    place = len(before)
    matrix: Octets = np.empty((len(sizes), place + 9), np.uint8)
    matrix[:, :place] = np.frombuffer(before, np.uint8)
    matrix[:, place] = constructor
    matrix[:, place + 1] = sizes + 1
    matrix[:, place + 2] = counts
    if is_long.any():
        matrix[is_long, place] += _LONG
        matrix[is_long, place + 1 : place + 5] = big_endian(sizes[is_long] + 4, 4)
        matrix[is_long, place + 5 :] = big_endian(counts[is_long], 4)
    widths = np.where(counts > 0, place + 3 + 6 * is_long, 0)
    return ragged(matrix, widths), contents


def map_section(
    column: str, values: pa.Array, before: bytes, *, key_constructor: int
) -> tuple[pa.Array, pa.Array]:
    """Make a section of a column of maps from text to text; see `compound_section`.

    A value that is null becomes AMQP's null. A row without entries gets no section.
    """
    places: Counts = np.asarray(values.offsets, dtype=np.int64)
    first, last = int(places[0]), int(places[-1])
    keys = as_bytes(values.keys[first:last])
    items = as_bytes(values.items[first:last])
    if key_constructor == SYMBOL:
        check_ascii(column, keys)
    entries = join(
        heads(key_constructor, sizes_of(keys)),
        keys,
        heads(STRING, sizes_of(items), nulls=np.where(nulls_of(items), 1, -1)),
        items,
    )
    missing = nulls_of(values)
    positions = positions_of(entries)
    contents = array_of(data_of(entries), (positions - positions[0])[places - first], missing)
    return compound_section(MAP, before, contents, np.where(missing, 0, 2 * np.diff(places)))


def check_ascii(column: str, values: pa.Array) -> None:
    """Raise BadColumn if one of the texts, which become symbols, has other letters than ASCII's."""
    octets = np.frombuffer(data_of(values), np.uint8)
    if not (octets > _ASCII_MAX).any():
        return
    for value in values:
        text = value.as_py()
        if text is not None and not text.isascii():
            raise BadColumn(column, f"{text.decode()!r} has letters that are not ASCII")
