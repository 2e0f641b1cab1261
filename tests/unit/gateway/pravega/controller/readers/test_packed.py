"""Values of Pravega's Java client: each kind, what is missing, and the limits."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from gateway.pravega.controller.readers import packed as module
from gateway.pravega.controller.readers.packed import (
    Framed,
    Packed,
    Steps,
    T,
    UnreadableValue,
    Work,
)
from tests.group_states import array, count, framed, listed, long, mapped, offsets, packed, text


def of(data: bytes) -> Packed:
    return Packed(data, Work())


def end(steps: Steps[T]) -> T:
    """Take all steps; return what they give."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            found: T = stop.value
            return found


@pytest.mark.parametrize("number", [0, 1, 127, 128, 16_383, 16_384, (1 << 30) - 1])
def test_counts_have_one_byte_or_two_or_four(number: int) -> None:
    read = of(count(number))

    assert read.count() == number
    assert read.is_at_end


def test_numbers_have_signs() -> None:
    read = of(struct.pack(">iqiq", -2, -(2**63), 2**31 - 1, -1))

    assert (read.integer(), read.long()) == (-2, -(2**63))
    assert (read.integer(), read.long()) == (2**31 - 1, -1)


def test_a_text_is_in_the_utf_8_of_java() -> None:
    halves = b"\xed\xa0\xbd\xed\xb8\x80"  # a pair of surrogates, each in three bytes
    data = b"a\xc0\x80\xc3\xa9" + halves
    read = of(text("reader-1") + struct.pack(">H", len(data)) + data)

    assert read.text() == "reader-1"
    assert read.text() == "a\0é\N{GRINNING FACE}"


@pytest.mark.parametrize("data", [b"\xff", b"\xed\xa0\xbd", b"\xc3"])
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableValue, match="a text is no text"):
        of(struct.pack(">H", len(data)) + data).text()


def test_maps_and_lists_are_read_with_their_values() -> None:
    data = (
        offsets({"a": 1, "b": -1})
        + mapped({"r": offsets({"a": 2}), "s": offsets({})})
        + listed([text("x"), text("y")])
    )
    read = of(data)

    assert end(read.offsets()) == {"a": 1, "b": -1}
    assert end(read.nested(Packed.offsets)) == {"r": {"a": 2}, "s": {}}
    assert end(read.list_of(Packed.text)) == ["x", "y"]


def test_an_object_is_read_up_to_its_oldest_revision() -> None:
    inner = of(packed(long(7), b"newer", b"newest") + b"behind").contents()

    assert inner.long() == 7
    assert inner.is_at_end
    alone = of(array(b"\0" + packed(long(8)))).whole()
    assert alone.long() == 8


@pytest.mark.parametrize(
    "data",
    [
        packed(long(7), version=1),
        bytes((0, 0)),
        bytes((0, 128)),
        bytes((0, 1, 1)) + struct.pack(">i", 0),
        bytes((0, 1, 0)) + struct.pack(">i", -1),
        bytes((0, 1, 0)) + struct.pack(">i", 1),
        bytes((0, 2, 0)) + struct.pack(">i", 0),
    ],
)
def test_an_object_of_another_form_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableValue):
        of(data).contents()


def test_another_format_is_refused() -> None:
    with pytest.raises(UnreadableValue, match="the format 1"):
        of(b"\1").begin()


@pytest.mark.parametrize("size", range(len(offsets({"segment": 3}))))
def test_a_map_of_which_bytes_are_missing_is_refused(size: int) -> None:
    with pytest.raises(UnreadableValue):
        end(of(offsets({"segment": 3})[:size]).offsets())


@pytest.mark.parametrize("kind", [Packed.offsets, lambda each: each.list_of(Packed.byte)])
def test_a_map_and_a_list_have_a_largest_number_of_entries(
    kind: Callable[[Packed], Steps[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENTRIES_MAX", 2)

    assert end(kind(of(offsets({"a": 1, "b": 2})))) is not None
    with pytest.raises(UnreadableValue, match="3 entries, above 2"):
        end(kind(of(offsets({"a": 1, "b": 2, "c": 3}))))


def test_the_entries_of_a_state_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORK_MAX", 5)
    work = Work()

    assert len(end(Packed(offsets({"a": 1, "b": 2}), work).offsets())) == 2
    work.count(3)
    with pytest.raises(UnreadableValue, match="more than 5 entries"):
        work.count()


def test_long_maps_are_read_in_steps() -> None:
    many = {str(number): number for number in range(1_000)}

    assert len(list(of(offsets(many)).offsets())) == 1_000 // module.ENTRIES_A_STEP
    inner = mapped({str(number): offsets(many) for number in range(2)})
    assert len(list(of(inner).nested(Packed.offsets))) == 2_002 // module.ENTRIES_A_STEP


@pytest.mark.parametrize("size", [1, 3, 8, 100])
def test_events_are_found_in_pieces_of_any_size(size: int) -> None:
    data, events = framed(b"one", b"", b"three"), Framed()
    found: list[bytes] = []
    for place in range(0, len(data), size):
        found += events.fed(data[place : place + size])

    assert found == [b"one", b"", b"three"]
    assert events.is_whole


def test_an_event_that_is_not_whole_is_known() -> None:
    events = Framed()

    assert list(events.fed(framed(b"one")[:-1])) == []
    assert not events.is_whole


@pytest.mark.parametrize("head", [struct.pack(">ii", 1, 0), struct.pack(">ii", 0, -1)])
def test_what_is_no_event_is_refused(head: bytes) -> None:
    with pytest.raises(UnreadableValue, match="no event"):
        list(Framed().fed(head))
