import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_hutch.offsets.position import (
    OFFSETS_MAX,
    StreamPlace,
    WrongPosition,
    document_of,
    position_of,
)

places = st.builds(StreamPlace, st.integers(0, OFFSETS_MAX - 1), st.none() | st.text(max_size=5))
positions = st.dictionaries(st.text(max_size=5), places)


@given(positions)
def test_a_position_comes_back_from_its_text(position: dict[str, StreamPlace]) -> None:
    text = json.dumps(document_of(position))

    assert position_of(json.loads(text)) == position


@given(positions, st.randoms())
def test_equal_positions_have_equal_texts(position: dict[str, StreamPlace], chance: object) -> None:
    streams = list(position)
    getattr(chance, "shuffle")(streams)  # noqa: B009  # hypothesis' Random has no type of its own
    other = {stream: position[stream] for stream in streams}

    assert json.dumps(document_of(other)) == json.dumps(document_of(position))


def test_both_forms_of_a_place_are_written_as_they_are_documented() -> None:
    position = {"orders-1": StreamPlace(456, "7f3a"), "orders-0": StreamPlace(123)}

    assert json.dumps(document_of(position)) == (
        '{"orders-0": {"o": 123}, "orders-1": {"i": "7f3a", "o": 456}}'
    )


def test_a_place_belongs_to_a_stream_unless_both_say_another_incarnation() -> None:
    assert StreamPlace(5, "7").may_be_in(7)
    assert not StreamPlace(5, "7").may_be_in(8)
    assert StreamPlace(5, "7").may_be_in(None)
    assert StreamPlace(5).may_be_in(8)
    assert StreamPlace(5).may_be_in(None)


@pytest.mark.parametrize(
    "value",
    [
        5,
        None,
        {},
        {"i": "a"},
        {"o": -1},
        {"o": True},
        {"o": 1.0},
        {"o": "1"},
        {"o": 1 << 63},
        {"o": 1, "i": 5},
        {"o": 1, "x": 2},
        [1],
    ],
)
def test_what_is_no_place_is_refused_with_its_stream(value: object) -> None:
    with pytest.raises(WrongPosition, match="position of stream 's' is no offset") as caught:
        position_of({"s": value})

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("document", [None, [], 5, "x" * 1_000])
def test_what_is_no_position_is_refused_in_few_words(document: object) -> None:
    with pytest.raises(WrongPosition, match="no object of streams") as caught:
        position_of(document)

    assert len(str(caught.value)) < 200
