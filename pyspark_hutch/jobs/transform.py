"""Applies a user's function to rows on a worker, and sorts out bad rows.

The function takes a row as a dictionary and gives one, a list of them, or None for no row:

    def mask(row):
        row["body"] = row["body"].replace(b"secret", b"******")
        return row

Or it takes a `pyarrow.RecordBatch` with these columns, and gives one. What it raises makes the row
a bad one; of a batch that fails, the rows are tried one by one to find those that do.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_hutch.columns import TEXTS, column
from pyspark_hutch.encoding.messages import FILTER
from pyspark_hutch.jobs.errors import JobFailed, cut
from pyspark_hutch.jobs.preparation.functions import NamedFunction

READ: Final = (
    "stream",
    "partition",
    "offset",
    "timestamp",
    "body",
    "body_type",
    "properties",
    "application_properties",
    "message_annotations",
)
"""Columns that the function gets; the first four are for it to know, and are not written."""

BAD_SUB_BATCH: Final = "bad_sub_batch"
"""Column that is read beside them with `badSubBatches=raw`; a row that has it is a bad one."""

SECTIONS: Final = ("properties", "application_properties", "message_annotations")
"""Those that are dictionaries, empty where a message has none."""

REASON: Final = "reason"
OUTPUT: Final = pa.struct(
    [
        ("body", pa.binary()),
        ("routing_key", pa.string()),
        (FILTER, pa.string()),
        ("properties", column("properties").arrow),
        ("application_properties", TEXTS),
        ("message_annotations", TEXTS),
        (REASON, pa.string()),
    ]
)
"""Columns of its rows; `reason` is set on bad rows only, by the job."""

WRITTEN: Final = tuple(field.name for field in OUTPUT if field.name != REASON)
REASON_CHARACTERS_MAX: Final = 500
DEAD_LETTER: Final = "dead-letter-"
"""Begins the names of the application properties of a bad row: reason, stream and offset."""

Row = dict[str, Any]


class BadRow(Exception):
    """A row that cannot be copied; the text says why."""


MISTAKES: Final = (Exception, SystemExit)
"""Any mistake of the function's makes its row a bad one."""


@dataclass(frozen=True, slots=True)
class Transform:
    """Makes rows that are written out of rows that were read.

    Attributes:
        function: The user's; None writes rows as they are.
        is_json: Whether bodies are JSON, which the function gets and gives as values.
        takes_batches: Whether the function takes batches, not rows.
        fails: Whether the first bad row ends the job.
        takes_filter_values: Whether rows may have filter values; else one that has ends the job.
    """

    function: NamedFunction | Callable[..., Any] | None = None
    is_json: bool = False
    takes_batches: bool = False
    fails: bool = True
    takes_filter_values: bool = True

    def __call__(self, rows: pa.StructArray) -> pa.StructArray:
        """Return the rows to write, bad ones among them with their reason.

        Raises:
            JobFailed: A row is bad, and that is to end the job; or it has a filter value, and the
                write has no place for one.
        """
        made = self._made(rows)
        if not self.takes_filter_values and made.field(FILTER).null_count < len(made):
            raise JobFailed(
                f"the function gave a {FILTER}, which staged and compressed rows cannot have "
                "(--to-option delivery=none without compression writes it, at least once)"
            )
        return made

    def _made(self, rows: pa.StructArray) -> pa.StructArray:
        batch = pa.RecordBatch.from_struct_array(rows)
        if BAD_SUB_BATCH not in batch.schema.names:
            return self._of_messages(batch)
        bad = batch.column(BAD_SUB_BATCH)
        batch = batch.drop_columns([BAD_SUB_BATCH])
        parts: list[pa.StructArray] = []
        start = 0
        for at in pc.indices_nonzero(bad.is_valid()).to_pylist():
            if start < at:
                parts.append(self._of_messages(batch.slice(start, at - start)))
            (row,) = _dictionaries(batch.slice(at, 1))
            reason = bad[at]["reason"].as_py()
            parts.append(pa.array([self._bad(row, BadRow(reason))], OUTPUT))
            start = at + 1
        if start < batch.num_rows or not parts:
            parts.append(self._of_messages(batch.slice(start)))
        return pa.concat_arrays(parts)

    def _of_messages(self, batch: pa.RecordBatch) -> pa.StructArray:
        given = self.function
        function = given.load() if isinstance(given, NamedFunction) else given
        if self.takes_batches and function is not None:
            return self._batch(function, batch)
        found: list[Row] = []
        for row in _dictionaries(batch):
            try:
                found += self._rows(function, row)
            except MISTAKES as error:
                found.append(self._bad(row, error))
        return pa.array(found, OUTPUT)

    def _rows(self, function: Any, row: Row) -> list[Row]:  # noqa: ANN401  # what a user gave
        given = row | {name: dict(row[name] or {}) for name in SECTIONS}  # for it to add to
        value = _value(row["body"]) if self.is_json else None
        if function is None:  # the body stays as it is, to the byte
            return [_output(given, is_json=False)]
        if self.is_json:
            given["body"] = value
        made = function(given)
        if made is None:
            return []
        is_one = isinstance(made, Mapping) or not isinstance(made, Iterable)
        return [_output(each, is_json=self.is_json) for each in ([made] if is_one else made)]

    def _bad(self, row: Row, error: BaseException) -> Row:
        text = str(error) if isinstance(error, BadRow) else f"{type(error).__name__}: {error}"
        reason = cut(text, REASON_CHARACTERS_MAX)
        if self.fails:
            raise JobFailed(
                f"row at offset {row['offset']} of stream {row['stream']!r}: {reason} "
                "(--bad-rows drop or --bad-rows STREAM goes on)"
            )
        said = {REASON: reason, "stream": row["stream"], "offset": str(row["offset"])}
        properties = dict(row["application_properties"] or {})
        properties |= {f"{DEAD_LETTER}{name}": text for name, text in said.items()}
        kept = {name: row[name] for name in ("body", "properties", "message_annotations")}
        return {**kept, "application_properties": properties, REASON: reason}

    # ---- functions that take batches ----------------------------------------------------------

    def _batch(self, function: Callable[..., Any], batch: pa.RecordBatch) -> pa.StructArray:
        try:
            return self._passed(function, batch)
        except MISTAKES as error:
            if batch.num_rows == 1:
                (row,) = _dictionaries(batch)
                return pa.array([self._bad(row, error)], OUTPUT)
            # Which of the rows it was is found out here.
            parts = [self._batch(function, batch.slice(at, 1)) for at in range(batch.num_rows)]
            return pa.concat_arrays(parts) if parts else pa.array([], OUTPUT)

    def _passed(self, function: Callable[..., Any], batch: pa.RecordBatch) -> pa.StructArray:
        if self.is_json:
            for body in batch.column("body"):
                _value(body.as_py())
        made = function(batch)
        if not isinstance(made, pa.RecordBatch):
            raise BadRow(f"the function gave {type(made).__name__}, not a RecordBatch")
        if "body" not in made.schema.names:
            raise BadRow("the function gave a batch without a column body")
        arrays = [
            made.column(field.name).cast(field.type)
            if field.name in made.schema.names and field.name != REASON
            else pa.nulls(made.num_rows, field.type)
            for field in OUTPUT
        ]
        return pa.StructArray.from_arrays(arrays, fields=list(OUTPUT))


def _dictionaries(batch: pa.RecordBatch) -> Iterable[Row]:
    rows: list[Row] = batch.to_pylist(maps_as_pydicts="lossy")
    return rows


def _value(body: bytes | None) -> Any:  # noqa: ANN401  # whatever the JSON is
    try:
        return json.loads((body or b"").decode("utf-8-sig"), parse_constant=_refuse)
    except ValueError as error:
        raise BadRow(f"the body is not JSON: {error}") from None


def _refuse(constant: str) -> None:
    """Refuse NaN, Infinity and -Infinity, which Python takes and JSON has not."""
    raise ValueError(f"no value {constant}")


def _output(row: Any, *, is_json: bool) -> Row:  # noqa: ANN401  # what a user gave
    if not isinstance(row, Mapping):
        raise BadRow(f"the function gave {type(row).__name__}, not a dictionary")
    made: Row = {name: row.get(name) for name in WRITTEN}
    made["body"] = _bytes(made["body"], is_json=is_json)
    for name in SECTIONS[1:]:
        texts = (made[name] or {}).items()
        made[name] = {str(key): None if text is None else str(text) for key, text in texts} or None
    if not any(value is not None for value in (made["properties"] or {}).values()):
        made["properties"] = None
    for name in ("routing_key", FILTER):
        if made[name] is not None:
            made[name] = str(made[name])
    pa.array([made["properties"]], OUTPUT.field("properties").type)  # fails for this row alone
    return made


def _bytes(body: Any, *, is_json: bool) -> bytes:  # noqa: ANN401  # what a user gave
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    if isinstance(body, str) and not is_json:
        return body.encode()
    if body is None and not is_json:
        raise BadRow("the function gave a row without a body")
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
