"""Arrays of byte strings, built and joined for all rows at once.

All of them are of Arrow's type `large_binary`, so that no batch is too large for its positions.
"""

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

BYTES: Final = pa.large_binary()
_NULL_IS_EMPTY: Final = pc.JoinOptions(null_handling="replace", null_replacement="")

Bools: TypeAlias = npt.NDArray[np.bool_]
Counts: TypeAlias = npt.NDArray[np.int64]
Octets: TypeAlias = npt.NDArray[np.uint8]


def as_bytes(values: pa.Array) -> pa.Array:
    """Take texts or byte strings as byte strings, without a copy."""
    return values.cast(BYTES)


def sizes_of(values: pa.Array) -> Counts:
    """Count the bytes of each value; 0 for null."""
    sizes: Counts = np.asarray(pc.binary_length(values).fill_null(0), dtype=np.int64)
    return sizes


def nulls_of(values: pa.Array) -> Bools:
    """Return a mask of the null values."""
    if not values.null_count:
        return np.zeros(len(values), np.bool_)
    nulls: Bools = np.asarray(values.is_null())
    return nulls


def join(*arrays: pa.Array) -> pa.Array:
    """Put the values of each row behind each other; null counts as empty."""
    if len(arrays) == 1 and not arrays[0].null_count:
        return arrays[0]
    nothing = pa.scalar(b"", BYTES)
    return pc.binary_join_element_wise(*arrays, nothing, options=_NULL_IS_EMPTY)


def data_of(values: pa.Array) -> memoryview:
    """Return the bytes of all rows together, which lie there without gaps; they are not copied."""
    buffer = values.buffers()[2]
    if buffer is None:
        return memoryview(b"")
    first, last = (int(place) for place in positions_of(values)[[0, -1]])
    return memoryview(buffer)[first:last]


def positions_of(values: pa.Array) -> Counts:
    """Return the begin of each row in the array's data, and the end of the last one."""
    return np.frombuffer(values.buffers()[1], np.int64, len(values) + 1, values.offset * 8)


def array_of(data: Any, positions: Counts, nulls: Bools | None = None) -> pa.Array:  # noqa: ANN401  # any buffer
    """Make an array of bytes and the places where its rows begin."""
    validity = None
    if nulls is not None and nulls.any():
        validity = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    places = pa.py_buffer(np.ascontiguousarray(positions, np.int64))
    return pa.LargeBinaryArray.from_buffers(
        BYTES, len(positions) - 1, [validity, places, pa.py_buffer(data)]
    )


def ragged(matrix: Octets, widths: Counts) -> pa.Array:
    """Make an array of the first `widths[i]` bytes of each row `i` of a matrix."""
    positions = np.zeros(len(widths) + 1, np.int64)
    np.cumsum(widths, out=positions[1:])
    if len(widths) and (widths == widths[0]).all():
        return array_of(np.ascontiguousarray(matrix[:, : int(widths[0])]), positions)
    return array_of(matrix[np.arange(matrix.shape[1]) < widths[:, None]], positions)


def big_endian(values: npt.NDArray[Any], size: int) -> Octets:
    """Return each number as a row of `size` bytes, the highest first."""
    octets: Octets = values.astype(f">u{size}").view(np.uint8).reshape(len(values), size)
    return octets
