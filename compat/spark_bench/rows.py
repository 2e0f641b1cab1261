"""The rows of messages that the works read and write, drawn from a fixed seed, as Arrow batches."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

BATCH_ROWS: Final = 10_000
SEED: Final = 20_261_122
LEAST_DRAWN, MOST_DRAWN = 50, 150
DEVICES: Final = 1_000
HEX_DIGITS: Final = np.frombuffer(b"0123456789abcdef", np.uint8)

Draw = Callable[[np.random.Generator, int], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Rows:
    """A kind of rows.

    Attributes:
        name: Of the stream that holds them.
        draw: Gives a batch of so many.
        share: How many there are, of those of 100 B.
        write_options: How they are published.
    """

    name: str
    draw: Draw
    share: float = 1.0
    write_options: Mapping[str, str] = field(default_factory=dict)

    def batches(self, count: int) -> Iterator[pa.RecordBatch]:
        """Yield so many rows, the same ones each time."""
        generator = np.random.default_rng(SEED)
        for first in range(0, count, BATCH_ROWS):
            yield self.draw(generator, min(BATCH_ROWS, count - first))


def _binary(data: bytes | np.ndarray[tuple[int], np.dtype[np.uint8]], sizes: object) -> pa.Array:
    ends = np.concatenate([[0], np.cumsum(np.asarray(sizes))]).astype(np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, buffers)


def _of_size(size: int) -> Draw:
    def draw(generator: np.random.Generator, count: int) -> pa.RecordBatch:
        bodies = _binary(generator.bytes(count * size), np.full(count, size))
        return pa.record_batch({"body": bodies})

    return draw


def _of_drawn_sizes(generator: np.random.Generator, count: int) -> pa.RecordBatch:
    sizes = generator.integers(LEAST_DRAWN, MOST_DRAWN + 1, count)
    return pa.record_batch({"body": _binary(generator.bytes(int(sizes.sum())), sizes)})


def _hexadecimal(generator: np.random.Generator, count: int) -> pa.RecordBatch:
    digits = HEX_DIGITS[generator.integers(0, 16, 100 * count)]
    return pa.record_batch({"body": _binary(digits, np.full(count, 100))})


def _with_properties(generator: np.random.Generator, count: int) -> pa.RecordBatch:
    numbers = generator.integers(0, DEVICES, count)
    properties = pa.StructArray.from_arrays(
        [
            pa.array([f"{number:032x}" for number in generator.integers(0, 1 << 62, count)]),
            pa.array(["application/json"] * count),
            pa.array([f"reading-{number % 10}" for number in numbers]),
        ],
        names=["message_id", "content_type", "subject"],
    )
    values = [[("device", f"sensor-{number}"), ("site", "north")] for number in numbers]
    applications = pa.array(values, pa.map_(pa.string(), pa.string()))
    bodies = _binary(generator.bytes(count * 100), np.full(count, 100))
    return pa.record_batch(
        {"body": bodies, "properties": properties, "application_properties": applications}
    )


FIXED_100: Final = Rows("fixed-100", _of_size(100))
FIXED_1024: Final = Rows("fixed-1024", _of_size(1024), 0.25)
DRAWN: Final = Rows("drawn-50-150", _of_drawn_sizes)
GZIP: Final = Rows("gzip-100", _hexadecimal, 0.5, {"compression": "gzip", "subBatchSize": "1000"})
PROPERTIES: Final = Rows("properties-100", _with_properties, 0.25)
