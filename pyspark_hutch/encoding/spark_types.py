"""Arrow types by the names that Spark users know, for errors."""

from typing import Final

import pyarrow as pa
import pyarrow.types as kinds

_NAMES: Final = {
    pa.null(): "void",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
}


def spark_name(kind: pa.DataType) -> str:
    """Return a type as Spark's DDL has it; Arrow's own text where Spark has no such type."""
    if kinds.is_map(kind):
        return f"map<{spark_name(kind.key_type)},{spark_name(kind.item_type)}>"
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        return f"array<{spark_name(kind.value_type)}>"
    if kinds.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{spark_name(field.type)}' for field in kind)}>"
    if kinds.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if kinds.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _NAMES.get(kind, str(kind))
