import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.management import json_reader
from gateway.management.json_reader import read_json

PLAIN = json.JSONDecoder()
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.fixture(params=[1, 12, 1 << 16], autouse=True, scope="module")
def window(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have windows that end wherever they may."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_reader, "WINDOW", request.param)
        yield


def outcome(text: str, *, in_pieces: bool) -> object:
    try:
        return read_json(text, PLAIN) if in_pieces else PLAIN.decode(text)
    except ValueError as error:
        return str(error)


@given(values, st.sampled_from([None, 1]))
def test_what_is_written_is_read(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert read_json(text, PLAIN) == value


@given(values, st.data())
def test_damaged_json_is_refused_in_the_same_words(value: object, data: st.DataObject) -> None:
    text = json.dumps(value)
    place = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 2))
    damaged = (
        text[:place] + data.draw(st.text('[]{}",:-.e1 n', max_size=2)) + text[place + length :]
    )
    assert outcome(damaged, in_pieces=True) == outcome(damaged, in_pieces=False)


@pytest.mark.parametrize(
    "text", ["", " ", "[1,]", '{"a":1,}', "[1 2]", '{"a" 1}', "{1:2}", "1 2", '"a', "[", "{", "nul"]
)
def test_what_is_no_json_is_refused_in_the_same_words(text: str) -> None:
    assert outcome(text, in_pieces=True) == outcome(text, in_pieces=False)


def test_hooks_see_every_object_and_number() -> None:
    text = json.dumps({"a": [{"b": 1}, {}, 2.5], "c": {}})
    seen: list[object] = []

    def note(pairs: list[tuple[str, object]]) -> dict[str, object]:
        seen.append(pairs)
        return dict(pairs)

    decoder = json.JSONDecoder(
        object_pairs_hook=note,
        parse_int=lambda digits: f"i{digits}",
        parse_float=lambda digits: f"f{digits}",
    )
    assert read_json(text, decoder) == {"a": [{"b": "i1"}, {}, "f2.5"], "c": {}}
    for one in ([("b", "i1")], [], [("a", [{"b": "i1"}, {}, "f2.5"]), ("c", {})]):
        assert one in seen
