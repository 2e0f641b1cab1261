"""The columns of a read as a schema of Spark, and a user's schema as a choice of columns."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, StructField, StructType, VariantType

from pyspark_hutch.columns import APP_TYPES, COLUMNS, DEFAULT, STREAM_COLUMNS, column
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.read_rules import read_settings
from pyspark_hutch.options.read_settings import Decoding
from pyspark_hutch.options.table import is_bare_table

STREAMS: Final = StructType(
    [StructField(known.name, from_arrow_type(known.arrow)) for known in STREAM_COLUMNS]
)
"""The schema of a read that describes streams."""


def schema_of_read(options: Mapping[str, str]) -> StructType:
    """Return the schema of a read that names none; raise WrongOption if no read can have them.

    Spark does not tell whether the read is a batch or a stream.
    """
    if is_bare_table(options):
        return schema_of(Decoding())
    errors = []
    for is_streaming in (False, True):
        try:
            settings = read_settings(options, is_streaming=is_streaming)
        except WrongOption as error:
            errors.append(error)
        else:
            return STREAMS if settings.describes_streams else schema_of(settings.decoding)
    raise min(errors, key=lambda error: len(error.problems))


def schema_of(decoding: Decoding) -> StructType:
    """Return the schema of the default columns and those that were asked for."""
    names = [
        known.name
        for known in COLUMNS
        if known.name in DEFAULT or known.name in decoding.extra_columns
    ]
    types = {name: _known_type(name, variant=decoding.variant) for name in names}
    types |= {name: _app_type(kind) for name, kind in decoding.app_columns}
    return StructType([StructField(name, kind) for name, kind in types.items()])


def _known_type(name: str, *, variant: bool) -> DataType:
    known = column(name, variant=variant)
    return VariantType() if known.spark == "variant" else from_arrow_type(known.arrow)


def _app_type(kind: str) -> DataType:
    return from_arrow_type(APP_TYPES[kind])


def columns_of(schema: StructType, decoding: Decoding) -> tuple[tuple[str, ...], bool]:
    """Return the names that a schema chooses, and whether it wants its maps as variants.

    Raises:
        WrongOption: It names no column, one twice, one that there is not, or one of another type.
    """
    names = _names(schema)
    forms = [_forms(field, decoding) for field in schema.fields]
    variants = {form for found in forms if len(found) == 1 for form in found}
    if len(variants) > 1:
        raise WrongOption(
            "schema: application properties and annotations must all be maps, or all be variants"
        )
    return names, variants == {True}


def stream_columns_of(schema: StructType) -> tuple[str, ...]:
    """Return the names that a schema chooses of the columns that describe streams.

    Raises:
        WrongOption: As for other columns.
    """
    names = _names(schema)
    types = {field.name: field.dataType for field in STREAMS.fields}
    for field in schema.fields:
        _require_known(field.name, tuple(types), ())
        _require_type(field, [types[field.name]])
    return names


def _names(schema: StructType) -> tuple[str, ...]:
    names = tuple(field.name for field in schema.fields)
    if not names:
        raise WrongOption("schema: names no column, and rows without columns cannot be counted")
    for name in names:
        if names.count(name) > 1:
            raise WrongOption(f"schema: column {name!r} is given twice")
    return names


def _forms(field: StructField, decoding: Decoding) -> set[bool]:
    """Return whether a field of a schema fits reads without variants, those with, or both."""
    applications = dict(decoding.app_columns)
    if field.name in applications:
        types = dict.fromkeys((False, True), _app_type(applications[field.name]))
    else:
        _require_known(field.name, tuple(known.name for known in COLUMNS), tuple(applications))
        types = {variant: _known_type(field.name, variant=variant) for variant in (False, True)}
    _require_type(field, list(types.values()))
    given = field.dataType.simpleString()
    return {variant for variant, kind in types.items() if kind.simpleString() == given}


def _require_type(field: StructField, types: list[DataType]) -> None:
    given = field.dataType.simpleString()
    known = dict.fromkeys(kind.simpleString() for kind in types)
    if given not in known:
        raise WrongOption(
            f"schema: column {field.name!r} has type {given}; it can be {' or '.join(known)}"
        )
    if not field.nullable or field.dataType not in types:
        raise WrongOption(
            f"schema: column {field.name!r} is not null, or has a field that is not; "
            "all that is read must be nullable"
        )


def _require_known(name: str, known: tuple[str, ...], others: tuple[str, ...]) -> None:
    names = [*known, *others]
    if name not in names:
        near = get_close_matches(name, names, 1) or get_close_matches(name.lower(), names, 1)
        hint = f"did you mean {near[0]!r}" if near else f"there are {', '.join(names)}"
        raise WrongOption(f"schema: no column {name!r} can be read; {hint}")
