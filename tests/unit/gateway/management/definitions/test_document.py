import json
import time

import pytest

from gateway.management.definitions.document import (
    BYTES_MAX,
    CONTAINERS_MAX,
    VALUES_MAX,
    read_document,
)
from gateway.management.errors import DefinitionsError
from gateway.management.fields import DEPTH_MAX, DoubledKey, HugeNumber, fault_within, is_text


def refusal(content: bytes) -> str:
    with pytest.raises(DefinitionsError) as error:
        read_document(content)
    return str(error.value)


def test_a_document_is_read_with_and_without_a_byte_order_mark() -> None:
    assert read_document(b'{"a": [1, 2.5, null, true, "\xc3\xa9"]}') == {
        "a": [1, 2.5, None, True, "é"]
    }
    assert read_document(b"\xef\xbb\xbf{}") == {}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"1", "not a JSON object"),
        (b'{"a": NaN}', "NaN is no number"),
        (b'{"a": -Infinity}', "no number"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 7"),
        (b'{"users": [], "users": []}', "'users' stands twice"),
        (b'{"a": ' + b"[" * 200_000, "a[0], at byte 45, is nested too deeply"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
        (
            b'{"a": [[], {}], "users": [{"name": "[["}, {"x\\"": []}, {"y": ' + b"[" * 100_000,
            "users[2], at byte",
        ),
    ],
)
def test_what_is_no_document_is_refused_in_words(content: bytes, words: str) -> None:
    assert words in refusal(content)


def test_a_document_above_the_bounds_is_refused_before_it_is_read() -> None:
    started = time.process_time()

    assert str(BYTES_MAX) in refusal(b" " * (BYTES_MAX + 1))
    assert "objects and lists" in refusal(b'{"a": [' + b"[]," * CONTAINERS_MAX + b"[]]}")
    assert "values" in refusal(b'{"a": [' + b"1," * VALUES_MAX + b"1,1]}")

    assert time.process_time() - started < 5


def test_the_largest_number_of_containers_is_read() -> None:
    content = b'{"a": [' + b",".join([b"[]"] * (CONTAINERS_MAX - 2)) + b"]}"

    containers = read_document(content)["a"]

    assert isinstance(containers, list)
    assert len(containers) == CONTAINERS_MAX - 2


def test_a_number_of_as_many_digits_as_anything_here_has_is_read() -> None:
    number = 10**4299

    assert read_document(b'{"a": [%d, -%d]}' % (number, number)) == {"a": [number, -number]}


def test_a_number_of_many_digits_is_marked_and_takes_no_time() -> None:
    document = read_document(b'{"a": {"b": ' + b"9" * 5_000_000 + b"}}")

    assert fault_within(document["a"]) == "has a number of 5000000 digits"


def test_a_key_that_stands_twice_is_marked_where_it_is() -> None:
    document = read_document(b'{"users": [{"name": "a", "name": "b"}]}')

    users = document["users"]
    assert isinstance(users, list)
    (entry,) = users
    assert isinstance(entry, DoubledKey)
    assert fault_within(entry) == "has the key 'name' twice"


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"a": [1, {"b": "c"}]}, ""),
        (DoubledKey(), "has the key '' twice"),
        ([[HugeNumber(70)]], "has a number of 70 digits"),
        ({"a": float("inf")}, "has a number that is too large"),
        ({"\ud800": 1}, "has '\\ud800', which is not Unicode text"),
        (["\udfff"], "has '\\udfff', which is not Unicode text"),
    ],
)
def test_what_nobody_means_is_found_however_deep(value: object, fault: str) -> None:
    assert fault_within(value) == fault


def test_the_depth_within_an_entry_is_bounded() -> None:
    def nested(levels: int) -> object:
        return json.loads("[" * levels + "]" * levels)

    assert fault_within(nested(DEPTH_MAX)) == ""
    assert "deeper" in fault_within(nested(DEPTH_MAX + 1))


def test_half_a_surrogate_pair_is_no_text() -> None:
    assert is_text("é𝄞")
    assert not is_text("a\ud834")
