"""Rows of the table of options: they stand as annotations on the fields of settings.

A field with an `Option` holds its value. A field with one `PartOption` or more is made by a rule,
of their values. The text behind an option is its meaning. The page has the options in the order of
the fields; a `Heading` begins a group of them.
"""

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import Flag, auto
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Final, get_args, get_origin

from pyspark_hutch.options.kinds import ValueKind

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class Use(Flag):
    """The purposes of an option."""

    BATCH_READ = auto()
    STREAMING_READ = auto()
    BATCH_WRITE = auto()
    STREAMING_WRITE = auto()

    def __str__(self) -> str:
        return " or ".join(word for use, word in _USES.items() if use in self)


_USES: Final = {
    Use.BATCH_READ: "a batch read",
    Use.STREAMING_READ: "a streaming read",
    Use.BATCH_WRITE: "a batch write",
    Use.STREAMING_WRITE: "a streaming write",
}
READ: Final = Use.BATCH_READ | Use.STREAMING_READ
WRITE: Final = Use.BATCH_WRITE | Use.STREAMING_WRITE
ALL: Final = READ | WRITE


@dataclass(frozen=True, slots=True)
class Option:
    """An option.

    Attributes:
        name: As users write it; Spark hands it over in lower case.
        uses: Its purposes.
        kind: The values that it takes; None if it is always refused.
        without: The rule that holds without it, for the page, where there is no default text.
        default: The text that stands in for it; None if nothing does.
        hidden: Whether its value may be or hold a password, which no error may show.
        meaning: One line for the page of options. For a refused one the reason.
    """

    name: str
    uses: Use
    kind: ValueKind | None
    without: str = ""
    default: str | None = None
    hidden: bool = False
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class PartOption(Option):
    """An option of which a rule makes a field's value, alone or with others; or a refused one."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading on the page of the options that follow."""

    title: str


def contents(settings: "type[DataclassInstance]") -> Iterator[Heading | Option]:
    """Yield headings and options of settings and of the settings in them, field by field."""
    for field in fields(settings):
        for note, text in pairwise((*_notes(field.type), None)):
            if isinstance(note, Option):
                assert isinstance(text, str), note.name
                default = (
                    note.default if isinstance(note, PartOption) else _text(note, field.default)
                )
                yield replace(note, meaning=text, default=default)
            elif isinstance(note, Heading):
                yield note
        for inner in _inner(field.type):
            yield from contents(inner)


def filled(settings: "type[DataclassInstance]") -> Iterator[tuple[str, Option]]:
    """Yield each field that holds the value of an option, with the option."""
    for field in fields(settings):
        for note in _notes(field.type):
            if isinstance(note, Option) and not isinstance(note, PartOption):
                yield field.name, note


def names_of(settings: "type[DataclassInstance]") -> tuple[str, ...]:
    """Return the names of all options from which settings are made."""
    return tuple(entry.name for entry in contents(settings) if isinstance(entry, Option))


def _notes(annotation: object) -> tuple[object, ...]:
    return get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()


def _inner(annotation: object) -> Iterator["type[DataclassInstance]"]:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and is_dataclass(part):
            yield part


def _text(option: Option, default: object) -> str | None:
    if option.kind is None or default is MISSING or default in (None, ()):
        return None
    return option.kind.text(default)
