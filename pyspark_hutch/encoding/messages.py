"""The rows of a batch as messages, of which the bodies are not copied yet.

    message | annotations | properties | application properties | data: head | body |
            |------------------------- before --------------------------------|      |

A raw message is its body and nothing else. Routing keys and filter values are no part of messages.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from pyspark_hutch.encoding import sections
from pyspark_hutch.encoding.arrays import Counts, as_bytes, join, nulls_of, sizes_of
from pyspark_hutch.encoding.errors import BadColumn
from pyspark_hutch.encoding.properties import COLUMN as PROPERTIES
from pyspark_hutch.encoding.properties import properties_section

BODY: Final = "body"
FILTER: Final = "filter_value"
ANNOTATIONS: Final = "message_annotations"
APPLICATION: Final = "application_properties"

# The field before a filter value has 16 bits, and 0xFFFF in it stands for no value.
FILTER_BYTES_MAX: Final = 0xFFFE


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages in the order of their rows; the arrays hold byte strings.

    Attributes:
        before: The bytes before each body; None for raw messages.
        bodies: The bodies, none of them null.
        filters: Filter values, null where a row has none; None if no row has one.
        sizes: Of the messages, in bytes.
    """

    before: pa.Array | None
    bodies: pa.Array
    filters: pa.Array | None
    sizes: Counts

    def __len__(self) -> int:
        return len(self.bodies)

    @property
    def parts(self) -> tuple[pa.Array, ...]:
        """The arrays that joined row by row are the messages."""
        return (self.bodies,) if self.before is None else (self.before, self.bodies)

    def take(self, rows: Counts) -> "Messages":
        """Return some of the messages, in the order of `rows`, as a copy."""
        indices = pa.array(rows)
        return self._chosen(lambda values: values.take(indices), self.sizes[rows])

    def between(self, first: int, following: int) -> "Messages":
        """Return the messages from `first` to the one before `following`, not copied."""
        return self._chosen(lambda values: values[first:following], self.sizes[first:following])

    def _chosen(self, choose: Callable[[pa.Array], pa.Array], sizes: Counts) -> "Messages":
        before, filters = (
            None if values is None else choose(values) for values in (self.before, self.filters)
        )
        return Messages(before, choose(self.bodies), filters, sizes)


def concatenate(runs: Sequence[Messages]) -> Messages:
    """Put messages behind each other; none has a filter value, and either all are raw or none."""
    if len(runs) == 1:
        return runs[0]
    before = [run.before for run in runs if run.before is not None]
    return Messages(
        before=pa.concat_arrays(before) if before else None,
        bodies=pa.concat_arrays([run.bodies for run in runs]),
        filters=None,
        sizes=np.concatenate([run.sizes for run in runs]),
    )


def messages_of(batch: pa.RecordBatch, *, raw: bool = False) -> Messages:
    """Encode the rows of a batch whose columns `check_columns` has allowed.

    Raises:
        BadColumn: A value cannot be written.
    """
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    bodies = as_bytes(columns[BODY])
    if bodies.null_count:
        row = int(nulls_of(bodies).argmax())
        raise BadColumn(BODY, f"null in row {row} of a batch; a body may be empty, never null")
    before = None if raw else _before(columns, sizes_of(bodies))
    return Messages(
        before=before,
        bodies=bodies,
        filters=_filters(columns.get(FILTER)),
        sizes=sizes_of(bodies) + (0 if before is None else sizes_of(before)),
    )


def _before(columns: dict[str, pa.Array], body_sizes: Counts) -> pa.Array:
    parts: list[pa.Array] = []
    if ANNOTATIONS in columns:
        parts += sections.map_section(
            ANNOTATIONS,
            columns[ANNOTATIONS],
            sections.ANNOTATIONS,
            key_constructor=sections.SYMBOL,
        )
    if PROPERTIES in columns:
        parts += properties_section(columns[PROPERTIES])
    if APPLICATION in columns:
        parts += sections.map_section(
            APPLICATION,
            columns[APPLICATION],
            sections.APPLICATION,
            key_constructor=sections.STRING,
        )
    parts.append(sections.heads(sections.BINARY, body_sizes, before=sections.DATA))
    return join(*parts)


def _filters(column: pa.Array | None) -> pa.Array | None:
    if column is None or column.null_count == len(column):
        return None
    filters = as_bytes(column)
    largest = int(sizes_of(filters).max())
    if largest > FILTER_BYTES_MAX:
        raise BadColumn(FILTER, f"a value has {largest:,} bytes; at most {FILTER_BYTES_MAX:,} fit")
    return filters
