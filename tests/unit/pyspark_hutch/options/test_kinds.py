from collections.abc import Callable

import pytest

from pyspark_hutch.options import kinds
from pyspark_hutch.options.errors import Unfit
from pyspark_hutch.options.kinds import ValueKind


def refused(kind: ValueKind | Callable[[str], object], text: str) -> str:
    """Return the reason for which a text is refused."""
    parse = kind.parse if isinstance(kind, ValueKind) else kind
    with pytest.raises(Unfit) as caught:
        parse(text)
    return str(caught.value)


@pytest.mark.parametrize("text", ["1", "7", "10"])
def test_a_whole_number_within_its_range_is_taken(text: str) -> None:
    assert kinds.integer(1, 10).parse(text) == int(text)


@pytest.mark.parametrize(
    "text", ["0", "11", "-1", "+1", "1.0", "1e1", "0x1", "1_0", "", "x", "²", "٣", "1" * 20]
)
def test_what_is_no_whole_number_in_its_range_is_refused(text: str) -> None:
    assert refused(kinds.integer(1, 10), text) == ""


def test_the_largest_number_is_a_bigint() -> None:
    kind = kinds.integer(1)

    assert kind.parse(str(2**63 - 1)) == 2**63 - 1
    assert refused(kind, str(2**63)) == ""
    assert kind.takes == "a whole number from 1 on"


@pytest.mark.parametrize(("text", "value"), [("true", True), ("FALSE", False), ("True", True)])
def test_true_and_false_are_taken_in_any_case(text: str, value: object) -> None:
    assert kinds.FLAG.parse(text) is value


@pytest.mark.parametrize("text", ["yes", "1", "", "on"])
def test_other_words_are_neither_true_nor_false(text: str) -> None:
    assert refused(kinds.FLAG, text) == ""


def test_one_of_some_words_is_taken_in_any_case() -> None:
    kind = kinds.choice("error", "latest")

    assert kind.parse("Latest") == "latest"
    assert refused(kind, "late") == ""
    assert kind.takes == "error or latest"


def test_three_words_are_listed() -> None:
    assert kinds.choice("none", "dedup", "other").takes == "none, dedup or other"


@pytest.mark.parametrize(
    ("text", "length_ms"),
    [
        ("500ms", 500),
        ("10s", 10_000),
        ("15m", 900_000),
        ("1h", 3_600_000),
        ("2d", 172_800_000),
        ("7D", 604_800_000),
        ("10 minutes", 600_000),
        ("1 Hour", 3_600_000),
        ("3 sec", 3_000),
    ],
)
def test_a_time_has_a_unit(text: str, length_ms: int) -> None:
    assert kinds.duration_ms(text) == length_ms


@pytest.mark.parametrize("text", ["10", "s", "", "-1s", "1.5s", "1 fortnight", "1s 5ms", "1Y"])
def test_what_is_no_time_is_refused(text: str) -> None:
    assert refused(kinds.duration_ms, text) == ""


def test_months_are_not_taken_for_minutes() -> None:
    assert refused(kinds.duration_ms, "1M") == ""


def test_a_time_has_a_range() -> None:
    kind = kinds.duration(1_000, 60_000)

    assert [kind.parse(text) for text in ("1s", "60s")] == [1_000, 60_000]
    assert refused(kind, "999ms") == refused(kind, "60001ms") == ""
    assert kind.takes.endswith("from 1s to 1m")


@pytest.mark.parametrize(
    ("length_ms", "text"), [(1, "1ms"), (1_500, "1500ms"), (90_000, "90s"), (86_400_000, "1d")]
)
def test_a_time_is_told_in_its_largest_unit(length_ms: int, text: str) -> None:
    assert kinds.shortest(length_ms) == text


@pytest.mark.parametrize(
    ("text", "count"),
    [("1", 1), ("64k", 65_536), ("16M", 2**24), ("2g", 2**31), ("1 GB", 2**30), ("5b", 5)],
)
def test_a_size_may_have_a_unit(text: str, count: int) -> None:
    assert kinds.size(1).parse(text) == count


@pytest.mark.parametrize("text", ["", "k", "-1", "1.5g", "1x", "0", "9999999999999999999t"])
def test_what_is_no_size_is_refused(text: str) -> None:
    assert refused(kinds.size(1), text) == ""


def test_a_size_has_a_range() -> None:
    kind = kinds.size(9, 1_024)

    assert [kind.parse(text) for text in ("9", "1k")] == [9, 1_024]
    assert refused(kind, "8") == refused(kind, "1025") == ""
    assert "from 9 to 1,024" in kind.takes


@pytest.mark.parametrize("text", ["x", "ü" * 5, "a b"])
def test_a_text_within_its_size_is_taken(text: str) -> None:
    assert kinds.text_of(10).parse(text) == text


@pytest.mark.parametrize("text", ["", "x" * 11, "ü" * 6, "a\nb", "a\0", "\ud800"])
def test_a_text_that_is_empty_too_long_or_unprintable_is_refused(text: str) -> None:
    assert refused(kinds.text_of(10), text) == ""


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("a", ("a",)),
        ("b , a", ("b", "a")),
        ('["a,b", "c"]', ("a,b", "c")),
    ],
)
def test_a_list_stands_between_commas_or_in_json(text: str, items: tuple[str, ...]) -> None:
    assert kinds.names().parse(text) == items


@pytest.mark.parametrize("text", ["", "a,,b", "a,", ",", '[""]', "[1]", '["a", null]', '["a\\n"]'])
def test_a_list_with_an_empty_or_wrong_item_is_refused(text: str) -> None:
    assert refused(kinds.names(), text) == ""


def test_an_item_has_at_most_255_bytes() -> None:
    assert kinds.names().parse("x" * 255) == ("x" * 255,)
    assert refused(kinds.names(), "x" * 256) == ""


@pytest.mark.parametrize("text", ["a,b,a", '["a", "a"]'])
def test_an_item_twice_in_a_list_is_named(text: str) -> None:
    assert refused(kinds.names(), text) == "'a' is given twice"


def test_a_list_has_a_largest_length() -> None:
    most = [str(number) for number in range(kinds.LIST_ITEMS_MAX)]

    assert len(kinds.checked_list(most, 10)) == kinds.LIST_ITEMS_MAX
    assert "1 to 10,000 items" in refused(lambda _: kinds.checked_list([*most, "x"], 10), "")
    assert "1 to 10,000 items" in refused(kinds.names(), "[]")


def test_a_key_twice_in_json_is_refused_at_any_depth() -> None:
    assert refused(kinds.json_of, '{"a": 1, "a": 1}') == "the key 'a' is given twice"
    assert "'b' is given" in refused(kinds.json_of, '{"a": [{"b": 1, "b": 2}]}')


def test_what_is_no_json_is_refused_with_the_reason() -> None:
    assert refused(kinds.json_of, '{"a": ').startswith("is no JSON: Expecting value")
    assert refused(kinds.json_of, '{"a": ' + "9" * 5_000 + "}") == (
        "is no JSON: a value is too large"
    )
    assert refused(kinds.json_of, "[" * 200_000).startswith("is no JSON")


def test_json_has_a_largest_length() -> None:
    largest = '"' + "x" * (kinds.JSON_CHARACTERS_MAX - 2) + '"'

    assert kinds.json_of(largest) == largest.strip('"')
    assert refused(kinds.json_of, largest + " ") == "is longer than 4,000,000 characters"


@pytest.mark.parametrize("text", ["[]", "{}", "1", '"a"', "null", '{"": 1}'])
def test_a_json_object_has_names_of_streams(text: str) -> None:
    refused(kinds.json_object, text)

    assert kinds.json_object('{"a": 1}') == {"a": 1}


@pytest.mark.parametrize("value", [True, 1.0, "1", None, -1, 11])
def test_a_whole_number_of_json_is_nothing_else(value: object) -> None:
    assert not kinds.is_integer(value, 0, 10)
    assert kinds.is_integer(10, 0, 10)
