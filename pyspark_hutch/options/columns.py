"""Values that name columns and partitions: `metadataFields`, `appColumns`, `assign` and others."""

import re
from typing import Final

from pyspark_hutch.options.errors import Unfit, shown
from pyspark_hutch.options.kinds import (
    LIST_ITEMS_MAX,
    NAME_BYTES_MAX,
    ValueKind,
    checked_list,
    checked_text,
    is_integer,
    json_object,
    names,
)

FIELDS: Final = (
    "header",
    "properties",
    "application_properties",
    "message_annotations",
    "delivery_annotations",
    "footer",
)
"""Columns of AMQP's sections, in the order that rows have them."""

BAD_SUB_BATCH: Final = "bad_sub_batch"
NAMED: Final = (*FIELDS, BAD_SUB_BATCH)
"""Columns that `metadataFields` may name."""

CHUNK_FIELDS: Final = ("chunk_id", "entry_index", "sub_index")
TAKEN: Final = frozenset(
    ("stream", "super_stream", "partition", "offset", "timestamp", "body", "body_type")
) | frozenset(NAMED + CHUNK_FIELDS)
"""Names of columns that a row has anyway."""

INDEX_MAX: Final = 2**31 - 1  # the column `partition` is an int

_TYPES: Final = {
    "string": "string",
    "bigint": "bigint",
    "long": "bigint",
    "int": "int",
    "integer": "int",
    "double": "double",
    "boolean": "boolean",
    "binary": "binary",
    "timestamp": "timestamp",
}
_APP_COLUMN: Final = re.compile(r"\s*(?:([A-Za-z_]\w*)|`((?:[^`]|``)+)`)\s*[ :]\s*(\w+)\s*(?:,|$)")
_COMMA_AT_END: Final = re.compile(r",\s*$")


def _metadata_fields(text: str) -> tuple[str, ...]:
    given = checked_list([item.strip().lower() for item in text.split(",")], NAME_BYTES_MAX)
    for item in given:
        if item not in NAMED:
            raise Unfit("")
    return tuple(name for name in NAMED if name in given)


def _app_columns(text: str) -> tuple[tuple[str, str], ...]:
    found: dict[str, tuple[str, str]] = {}
    position = 0
    while position < len(text):
        match = _APP_COLUMN.match(text, position)
        if match is None or len(found) == LIST_ITEMS_MAX:
            raise Unfit("")
        name, spark_type = _column(match)
        if name.lower() in found:
            raise Unfit(f"column {shown(name)} is given twice")
        found[name.lower()] = name, spark_type
        position = match.end()
    if not found or _COMMA_AT_END.search(text):
        raise Unfit("")
    return tuple(found.values())


def _column(match: re.Match[str]) -> tuple[str, str]:
    name = checked_text(match[1] or match[2].replace("``", "`"), NAME_BYTES_MAX)
    if name.lower() in TAKEN:
        raise Unfit(f"rows have a column {shown(name)} anyway")
    spark_type = _TYPES.get(match[3].lower())
    if spark_type is None:
        raise Unfit(f"type {shown(match[3])} is none of {', '.join(_TYPES)}")
    return name, spark_type


def _assign(text: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((name, _indexes(name, value)) for name, value in json_object(text).items())


def _indexes(name: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= LIST_ITEMS_MAX:
        raise Unfit("")
    indexes = tuple(item for item in value if is_integer(item, 0, INDEX_MAX))
    if len(indexes) < len(value):
        raise Unfit(f"the value of {shown(name)} is no list of indexes from 0 on")
    if len(set(indexes)) < len(indexes):
        raise Unfit(f"{shown(name)} has an index twice")
    return indexes


METADATA_FIELDS: Final = ValueKind(f"names between commas of {', '.join(NAMED)}", _metadata_fields)
APP_COLUMNS: Final = ValueKind(
    f"names with a type, as tenant string, user_id bigint; types are {', '.join(_TYPES)}; an odd "
    f"name stands in backquotes",
    _app_columns,
)
ASSIGN: Final = ValueKind('JSON of super streams and partitions, as {"orders": [0, 2]}', _assign)
FILTER_VALUES: Final = names(what="filter values")
COLUMNS: Final = names(what="names of columns")
