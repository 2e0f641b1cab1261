import pytest

from gateway.management.http.answers import ApiRefusal
from gateway.management.http.bodies import QUICK_BYTES_MAX, json_object

WRONG = [b"{", b"nul", b'{"a":1,"a":2}', b"NaN", b"[Infinity]", b"\xff", b'{"a":"\\ud800"}', b"[]"]


@pytest.mark.parametrize("text", [*WRONG, b"[" * 100_000])
def test_what_is_no_json_object_is_refused(text: bytes) -> None:
    with pytest.raises(ApiRefusal):
        json_object(text)


@pytest.mark.parametrize("text", WRONG)
def test_so_it_is_where_it_is_larger_than_what_is_read_in_one_go(text: bytes) -> None:
    with pytest.raises(ApiRefusal):
        json_object(b" " * QUICK_BYTES_MAX + text)


def test_an_object_is_read_whatever_its_size_and_nothing_is_an_empty_one() -> None:
    assert json_object(b"") == {}
    assert json_object(b' {"a": [1]} ') == {"a": [1]}
    assert json_object(b'{"a": [1]}' + b" " * QUICK_BYTES_MAX) == {"a": [1]}
