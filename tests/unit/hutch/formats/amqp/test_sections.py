"""Where the sections of a message begin and end, and which bytes are no message."""

import pytest

from hutch.formats.amqp.sections import NotAmqp, TooManySections, sections, undescribed
from tests.property.pyspark_hutch.chunk_rig import data, listed, mapped, section, sized, text

HEADER = section(0x70, listed(b"\x41"))
ANNOTATIONS = section(0x72, mapped(a=text("b")))
VALUE = 0x77
ONE_OF_EACH_WIDTH = [
    b"\x40",
    b"\x50\x01",
    b"\x60\x00\x01",
    b"\x70" + bytes(4),
    b"\x80" + bytes(8),
    b"\x98" + bytes(16),
    b"\xa1\x02ab",
    b"\xb1\x00\x00\x00\x02ab",
    b"\xc0\x03\x01\x50\x01",
    b"\xd0\x00\x00\x00\x06\x00\x00\x00\x01\x50\x01",
]


def test_each_section_is_given_with_the_place_of_its_value() -> None:
    message = HEADER + ANNOTATIONS + data(b"body")
    body = len(HEADER + ANNOTATIONS)

    assert sections(message, 0, len(message)) == [
        (0x70, 3, len(HEADER)),
        (0x72, len(HEADER) + 3, body),
        (0x75, body + 3, len(message)),
    ]


def test_only_the_bytes_between_position_and_end_are_looked_at() -> None:
    message = data(b"body")
    around = memoryview(b"\xff" * 5 + message + b"\xff" * 5)

    assert sections(around, 5, 5 + len(message)) == [(0x75, 8, 5 + len(message))]


def test_a_code_in_eight_bytes_is_the_same_section() -> None:
    message = section(0x75, sized(0xA0, b"body"), is_long=True)

    assert sections(message, 0, len(message)) == [(0x75, 10, len(message))]


@pytest.mark.parametrize("value", ONE_OF_EACH_WIDTH)
def test_a_value_of_any_width_is_passed_over_and_none_may_be_cut_short(value: bytes) -> None:
    message = section(VALUE, value)

    assert sections(message, 0, len(message)) == [(VALUE, 3, len(message))]
    for end in range(1, len(message)):
        with pytest.raises(NotAmqp):
            sections(message, 0, end)


def test_a_described_value_is_passed_over_with_its_description() -> None:
    message = section(VALUE, b"\x00\xa3\x04name\x00\x53\x01" + text("value"))

    assert sections(message, 0, len(message)) == [(VALUE, 3, len(message))]
    for end in range(1, len(message)):
        with pytest.raises(NotAmqp):
            sections(message, 0, end)


def test_a_body_is_many_sections_of_data_or_of_sequences() -> None:
    sequence = section(0x76, listed(b"\x41"))

    assert [code for code, *_ in sections(data(b"a") * 3, 0, 18)] == [0x75] * 3
    assert [code for code, *_ in sections(sequence * 2, 0, 2 * len(sequence))] == [0x76] * 2


@pytest.mark.parametrize(
    "message",
    [
        HEADER + HEADER,
        ANNOTATIONS + data(b"") + ANNOTATIONS,
        data(b"") + section(VALUE, b"\x40"),
        data(b"") + section(0x76, listed()),
        section(0x76, listed()) + data(b""),
        section(VALUE, b"\x40") * 2,
    ],
)
def test_a_section_that_excludes_another_is_no_message(message: bytes) -> None:
    with pytest.raises(NotAmqp):
        sections(message, 0, len(message))


@pytest.mark.parametrize(
    "message",
    [
        b"\x01\x53\x75\xa0\x00",  # not described
        b"\x00\x54\x75\xa0\x00",  # a code that is neither small nor large
        b"\x00\x53\x6f\xa0\x00",  # below the first section
        b"\x00\x53\x79\xa0\x00",  # above the last one
        b"\x00\x80" + (0x175).to_bytes(8) + b"\xa0\x00",  # only its lowest byte is a section's
        section(0x75, b"\x40"),  # data that is nothing
        section(0x70, mapped()),  # a header that is a map
        section(0x72, listed()),  # annotations that are a list
        section(VALUE, b"\x3f"),  # a constructor without a width
        section(VALUE, b"\x00\x00\x40\x40"),  # a description that is described
    ],
)
def test_what_is_no_section_is_no_message(message: bytes) -> None:
    with pytest.raises(NotAmqp):
        sections(message, 0, len(message))


def test_nothing_has_no_sections() -> None:
    assert sections(b"", 0, 0) == []


def test_sections_and_descriptors_are_counted_where_there_is_a_limit() -> None:
    message = data(b"a") * 3
    assert len(sections(message, 0, len(message), 3)) == 3
    with pytest.raises(TooManySections, match="more than 2 sections"):
        sections(message, 0, len(message), 2)
    value = b"\0\x40" * 3 + b"\x40"
    assert undescribed(value, 0, len(value), 3) == 6
    with pytest.raises(TooManySections, match="more than 2 descriptors"):
        undescribed(value, 0, len(value), 2)
    message = b"\0\x53\x77" + value
    assert len(sections(message, 0, len(message), 3)) == 1
    with pytest.raises(TooManySections):
        sections(message, 0, len(message), 2)
