from dataclasses import dataclass
from typing import Annotated

import pytest

from hutch.pravega.errors import WireError
from hutch.pravega.layout import PayloadLayout, WireMessage, layout_of
from hutch.pravega.wire_types import Int, Long, Text


@dataclass(frozen=True, slots=True)
class Sample(WireMessage):
    number: Int
    text: Text = "none"
    place: Long = -1


LAYOUT = layout_of(Sample)


def test_fields_are_read_and_written_in_their_order() -> None:
    target = bytearray()

    LAYOUT.encode(Sample(5, "a", 7), target)

    assert target.hex() == "00000005 000161 0000000000000007".replace(" ", "")
    assert LAYOUT.decode(memoryview(target)) == Sample(5, "a", 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("00000005", Sample(5)),
        ("00000005000161", Sample(5, "a")),
        ("00000005000161ffffffffffffffff7777", Sample(5, "a", -1)),
    ],
)
def test_fields_that_older_versions_lack_have_defaults(text: str, message: Sample) -> None:
    assert LAYOUT.decode(memoryview(bytes.fromhex(text))) == message


@pytest.mark.parametrize("text", ["", "000000", "0000000500", "000000050001610000"])
def test_half_a_field_is_refused_by_name(text: str) -> None:
    with pytest.raises(WireError, match=r"^Sample: "):
        LAYOUT.decode(memoryview(bytes.fromhex(text)))


def test_a_value_that_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"^Sample: "):
        LAYOUT.encode(Sample(2**31), bytearray())


def test_a_layout_has_a_name_and_the_size_of_what_must_be_there() -> None:
    assert LAYOUT.name == "(number int, text string, place long)"
    assert LAYOUT.bytes_min == 4
    assert layout_of(Sample) is LAYOUT


def test_a_field_needs_one_wire_type() -> None:
    @dataclass(frozen=True, slots=True)
    class Plain(WireMessage):
        number: int

    @dataclass(frozen=True, slots=True)
    class Doubled(WireMessage):
        number: Annotated[int, 1, 2]

    for message_class, name in ((Plain, "Plain"), (Doubled, "Doubled")):
        with pytest.raises(TypeError, match=f"{name}.number has no wire type"):
            PayloadLayout(message_class)


@pytest.mark.parametrize(
    ("text", "last", "fields"),
    [
        ("00000005", "number", {"number": 5}),
        ("00000005000161", "text", {"number": 5, "text": "a"}),
        ("0000000500", "number", {"number": 5}),
        ("0000000500", "text", None),
        ("00000005000161", "none", None),
    ],
)
def test_fields_up_to_one_are_read_of_a_payload_that_is_not_whole(
    text: str, last: str, fields: dict[str, object] | None
) -> None:
    assert LAYOUT.decode_until(last, memoryview(bytes.fromhex(text))) == fields
