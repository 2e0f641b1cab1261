"""Names that administrators and settings may give, beside those of the stream port."""

import pytest

from gateway.broker.errors import PreconditionFailed
from gateway.broker.naming import NAME_BYTES_MAX, check_given_name, clean_name, is_text

TEXTS = ["a", "a b", "ä€😀", "[a]", '"', "amq", "a" * NAME_BYTES_MAX]


@pytest.mark.parametrize("name", TEXTS)
def test_a_name_of_text_is_taken(name: str) -> None:
    check_given_name(name)
    assert is_text(name)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "empty or reserved"),
        ("amq.a", "empty or reserved"),
        ("a" * (NAME_BYTES_MAX + 1), "has 256 bytes, more than 255"),
        ("ä" * 128, "has 256 bytes, more than 255"),
    ],
)
def test_a_name_that_is_reserved_or_too_long_is_refused(name: str, told: str) -> None:
    with pytest.raises(PreconditionFailed, match=told):
        check_given_name(name)


@pytest.mark.parametrize("character", "\0\1\n\r\t\x1b\x7f\x85\udcff")
def test_control_characters_and_what_is_no_unicode_are_no_text(character: str) -> None:
    assert not is_text(f"a{character}b")


@pytest.mark.parametrize("name", ["a" * 300, "a\1b", "a\udcff"])
def test_the_stream_port_takes_it_all_the_same(name: str) -> None:
    assert clean_name(name) == name


def test_the_stream_port_leaves_line_ends_out() -> None:
    assert clean_name("a\r\nb\n") == "ab"
