"""The columns that a reader wants of a stream's records."""

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from pyspark_hutch.options.read_settings import Fate
from pyspark_hutch.rows.columns import DEFAULT, arrow_schema, column


@dataclass(frozen=True, slots=True)
class Wanted:
    """The columns to give, and what is constant in them.

    Attributes:
        columns: Names in the order of the batches: those of the table, and those of `app_columns`.
        stream: The stream that is read.
        super_stream: The super stream it is a partition of.
        partition: Its index there.
        body_format: `raw` takes each message as bytes, without looking for AMQP in them.
        variant: Whether the maps of AMQP are variants, which keep types, instead of texts.
        app_columns: Columns taken from the application properties of their name, and their types;
            one that `columns` does not name comes after those it names.
        bad_sub_batches: What becomes of sub-batches that cannot be opened.
    """

    columns: tuple[str, ...] = DEFAULT
    stream: str = ""
    super_stream: str | None = None
    partition: int = 0
    body_format: Literal["amqp", "raw"] = "amqp"
    variant: bool = False
    app_columns: tuple[tuple[str, pa.DataType], ...] = ()
    bad_sub_batches: Fate = "fail"

    def schema(self) -> pa.Schema:
        """Return the schema of the batches. Raises KeyError for a column that there is not."""
        typed = dict(self.app_columns)
        names = [*self.columns, *(name for name in typed if name not in self.columns)]
        if not typed:
            return arrow_schema(names, variant=self.variant)
        return pa.schema(
            [
                (name, typed[name] if name in typed else column(name, variant=self.variant).arrow)
                for name in names
            ]
        )
