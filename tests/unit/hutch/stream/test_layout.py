from dataclasses import dataclass
from typing import Annotated

import pytest

from hutch.stream.errors import MalformedFrame
from hutch.stream.layout import FrameLayout, layout_of
from hutch.stream.messages import U8, U16, Broker, Code, PublishingError, String, Strings
from hutch.stream.wire_types import Counted


@dataclass(frozen=True)
class Mixed:
    first: U8
    second: U16
    text: String
    last: U16


@dataclass(frozen=True)
class Nothing:
    pass


def test_fields_are_read_and_written_in_their_order() -> None:
    layout = layout_of(Mixed)
    target = bytearray()

    layout.write(Mixed(1, 2, "ab", 3), target)

    assert target.hex(" ", 1) == "01 00 02 00 02 61 62 00 03"
    assert layout.decode(b"..." + target, 3) == Mixed(1, 2, "ab", 3)


def test_a_message_without_fields_has_no_bytes() -> None:
    target = bytearray()

    layout_of(Nothing).write(Nothing(), target)

    assert target == b""
    assert layout_of(Nothing).decode(b"", 0) == Nothing()


def test_a_layout_is_compiled_once() -> None:
    assert layout_of(Mixed) is layout_of(Mixed)


def test_neighbouring_numbers_are_malformed_together() -> None:
    with pytest.raises(MalformedFrame, match="first, second are cut short at byte 1"):
        layout_of(Mixed).decode(b".\1\0", 1)


def test_bytes_left_over_are_malformed() -> None:
    with pytest.raises(MalformedFrame, match="left over at byte 9"):
        layout_of(Mixed).decode(bytes.fromhex("01 0002 0002 6162 0003 00"), 0)


def test_a_nested_message_is_an_item_like_any_other() -> None:
    brokers = Counted(FrameLayout(Broker))
    target = bytearray()

    brokers.write((Broker(0, "h", 1), Broker(1, "", 2)), target)

    assert brokers.read(bytes(target), 0) == (
        (Broker(0, "h", 1), Broker(1, "", 2)),
        len(target),
    )
    assert brokers.item.zero == Broker(0, "", 0)


@pytest.mark.parametrize(
    ("layout", "text", "expected"),
    [
        (FrameLayout(Broker), "0001 0001 68 00000005", [Broker(1, "h", 5)]),
        (FrameLayout(PublishingError), "0000000000000001 0012", [PublishingError(1, 18)]),
        (FrameLayout(PublishingError), "", []),
    ],
    ids=["text", "numbers", "nothing"],
)
def test_messages_are_read_up_to_the_end_of_the_frame(
    layout: FrameLayout[object], text: str, expected: list[object]
) -> None:
    assert layout.read_rest(bytes.fromhex(text), 0) == expected


def test_a_field_without_a_wire_type_is_a_mistake_of_ours() -> None:
    @dataclass
    class Plain:
        number: int

    with pytest.raises(TypeError, match=r"Plain\.number has no wire type"):
        FrameLayout(Plain)


def test_a_field_with_two_wire_types_is_a_mistake_of_ours() -> None:
    @dataclass
    class Twice:
        number: Annotated[U8, "more"]

    with pytest.raises(TypeError, match=r"Twice\.number has no wire type"):
        FrameLayout(Twice)


def test_a_field_behind_one_that_ends_the_frame_is_a_mistake_of_ours() -> None:
    @dataclass
    class Endless:
        names: Strings
        code: Code

    with pytest.raises(TypeError, match=r"Endless\.names reads to the end, but is not last"):
        FrameLayout(Endless)
