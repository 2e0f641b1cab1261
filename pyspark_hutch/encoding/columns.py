"""The columns, with their types, of a DataFrame that is written to streams.

It is checked before the first row, so that a job with a wrong column fails at once, in one line.
Types are shown by the names that Spark's users know.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pyarrow.types as kinds

from pyspark_hutch.columns import PROPERTY_FIELDS
from pyspark_hutch.encoding.errors import BadColumn
from pyspark_hutch.encoding.messages import FILTER

TYPE_SUFFIX: Final = "_type"


def _is_text(kind: pa.DataType) -> bool:
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(kinds.is_binary(kind) or kinds.is_large_binary(kind)) or _is_text(kind)


def _is_texts(kind: pa.DataType) -> bool:
    return kinds.is_map(kind) and _is_text(kind.key_type) and _is_text(kind.item_type)


def _is_number(kind: pa.DataType) -> bool:
    return bool(kinds.is_int64(kind) or kinds.is_int32(kind))


@dataclass(frozen=True, slots=True)
class ColumnKind:
    """The types that a column or field may have.

    Attributes:
        words: Spark's names of the types, for an error.
        fits: Tells whether an Arrow type is one of them.
        in_message: Whether it becomes a section of the message, which a raw one does not have.
    """

    words: str
    fits: Callable[[pa.DataType], bool]
    in_message: bool = False


_TEXT: Final = ColumnKind("string", _is_text)
_BYTES: Final = ColumnKind("binary or string", _is_bytes)
_TEXTS: Final = ColumnKind("map<string,string>", _is_texts, in_message=True)
_TIME: Final = ColumnKind("timestamp", kinds.is_timestamp)
_NUMBER: Final = ColumnKind("bigint or int", _is_number)

COLUMNS: Final[dict[str, ColumnKind]] = {
    "body": _BYTES,
    "routing_key": _TEXT,
    "stream": _TEXT,
    "properties": ColumnKind("struct", kinds.is_struct, in_message=True),
    "application_properties": _TEXTS,
    "message_annotations": _TEXTS,
    "filter_value": _TEXT,
}
"""All columns that can be written."""

_OF_FIELDS: Final = {"string": _TEXT, "binary": _BYTES, "timestamp": _TIME, "bigint": _NUMBER}
FIELDS: Final[dict[str, ColumnKind]] = {
    name: _OF_FIELDS[spark] for name, spark, _ in PROPERTY_FIELDS
}
"""The fields that the struct `properties` may have, each of them optional."""

ANYTHING: Final = ColumnKind("anything", lambda _: True)
KEY: Final = ColumnKind(
    "string, binary, bigint or int", lambda kind: _is_bytes(kind) or _is_number(kind)
)
NAME: Final = ColumnKind("string, bigint or int", lambda kind: _is_text(kind) or _is_number(kind))
NUMBER: Final = _NUMBER

_KNOWN_ELSEWHERE: Final = {
    "value": "body",
    "payload": "body",
    "data": "body",
    "message": "body",
    "key": "routing_key",
    "topic": "stream",
    "headers": "application_properties",
}
"""Names of these columns in other connectors."""


def check_columns(
    schema: pa.Schema,
    *,
    extra: Mapping[str, ColumnKind] = MappingProxyType({}),
    ignore_unknown: bool = False,
    raw: bool = False,
    sub_batches: str = "",
) -> None:
    """Check the columns of a DataFrame that is to be written.

    Args:
        schema: Of the rows that Spark will hand over.
        extra: Columns that options name, which must be there, with their possible types.
        ignore_unknown: Whether columns that are neither known nor in `extra` are passed over.
        raw: Whether bodies are published as they are, without AMQP sections.
        sub_batches: The option that asks for sub-batches, as an error is to show it
            (`compression=gzip`); empty if none does.

    Raises:
        BadColumn: The first thing that is wrong.
    """
    _check_names(list(schema.names), ("body", *extra))
    for field in schema:
        if field.name in extra:
            _check_type(field.name, field.type, extra[field.name])
        if field.name in COLUMNS:
            _check_known(field, raw=raw, sub_batches=sub_batches)
        elif field.name not in extra and not ignore_unknown:
            hint = _nearest(field.name, COLUMNS)
            raise BadColumn(
                field.name,
                f"({spark_name(field.type)}) no such column can be written; {hint}"
                f"drop it, or set ignoreUnknownColumns=true. Columns: {', '.join(COLUMNS)}",
            )


def _check_names(names: list[str], needed: Collection[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise BadColumn(name, "there are two of this name")
    for name in needed:
        if name not in names:
            raise BadColumn(name, _missing(name, names))


def _check_known(field: pa.Field, *, raw: bool, sub_batches: str) -> None:
    kind = COLUMNS[field.name]
    _check_type(field.name, field.type, kind)
    if raw and kind.in_message:
        raise BadColumn(field.name, "bodyFormat=raw has no place for it; drop it or use amqp")
    if sub_batches and field.name == FILTER:
        raise BadColumn(
            field.name,
            f"cannot be written together with option {sub_batches}: "
            "the protocol has no filter values on sub-batches",
        )
    if kinds.is_struct(field.type):
        _check_fields(field)


def _check_fields(struct: pa.Field) -> None:
    names = [field.name for field in struct.type]
    for field in struct.type:
        name = f"{struct.name}.{field.name}"
        if field.name not in FIELDS:
            hint = _nearest(field.name, FIELDS)
            raise BadColumn(name, f"no such field; {hint}fields: {', '.join(FIELDS)}")
        if names.count(field.name) > 1:
            raise BadColumn(name, "there are two of this name")
        _check_type(name, field.type, FIELDS[field.name])
        identifier = field.name.removesuffix(TYPE_SUFFIX)
        if identifier in FIELDS and identifier not in names:
            raise BadColumn(name, f"there is no {identifier} beside it")


def _check_type(name: str, found: pa.DataType, kind: ColumnKind) -> None:
    if not kind.fits(found):
        raise BadColumn(name, f"is {spark_name(found)}, must be {kind.words}")


def _missing(name: str, names: list[str]) -> str:
    """Say that a column is missing, and which one may be meant."""
    kind = f" ({COLUMNS[name].words})" if name in COLUMNS else ""
    meant = [each for each in names if _KNOWN_ELSEWHERE.get(each.lower()) == name]
    meant = meant or get_close_matches(name, names, n=1)
    hint = f"; is it {meant[0]!r}?" if meant else ""
    return f"missing{kind}; the rows have {', '.join(names) or 'no columns'}{hint}"


def _nearest(name: str, names: Collection[str]) -> str:
    lower = name.lower()
    near = get_close_matches(lower, names, n=1)
    meant = near[0] if near else _KNOWN_ELSEWHERE.get(lower)
    return f"did you mean {meant!r}? " if meant in names else ""


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
