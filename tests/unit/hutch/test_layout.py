"""Layouts of all protocols: fields that are cut short, joined or newer."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import pytest

from hutch import layout


class Bad(Exception):
    """The error of a protocol."""


class Number(layout.Fixed[int]):
    malformed = Bad


class Layout(layout.Layout[layout.M]):
    malformed = Bad


Short = Annotated[int, Number("short", "H")]
Byte = Annotated[int, Number("byte", "B")]
Double = Annotated[int, Number("double byte", "B", lambda number: 2 * number)]


@dataclass(frozen=True, slots=True)
class Sample:
    one: Short
    two: Byte
    twice: Double
    newer: Byte = 7
    newest: Byte = 8


@dataclass(frozen=True, slots=True)
class Untyped:
    one: int
    shared: ClassVar[int] = 1


LAYOUT = Layout.of(Sample)


def test_numbers_are_joined_and_what_is_converted_stands_alone() -> None:
    assert LAYOUT.read(bytes([1, 2, 3, 4, 5, 6, 9]), 0) == (Sample(0x102, 3, 8, 5, 6), 6)


def test_newer_fields_may_be_absent_from_one_of_them_on() -> None:
    whole = bytes([0, 1, 2, 3, 4, 5])
    assert LAYOUT.read(whole[:5], 0) == (Sample(1, 2, 6, 4), 5)
    assert LAYOUT.read(whole[:4], 0) == (Sample(1, 2, 6), 4)


@pytest.mark.parametrize(
    ("size", "reason"), [(2, "one, two are cut short"), (3, "double byte is cut short")]
)
def test_what_is_cut_short_is_the_error_of_the_protocol(size: int, reason: str) -> None:
    with pytest.raises(Bad, match=reason):
        LAYOUT.read(bytes(size), 0)


def test_every_field_is_written() -> None:
    target = bytearray(b"?")
    LAYOUT.write(Sample(1, 2, 3), target)
    assert target == b"?\0\1\2\3\7\x08"


def test_a_class_has_one_layout_and_each_field_a_wire_type() -> None:
    assert Layout.of(Sample) is LAYOUT
    assert LAYOUT.name.startswith("(one short, two byte")
    with pytest.raises(TypeError, match=r"Untyped\.one has no wire type"):
        Layout(Untyped)
