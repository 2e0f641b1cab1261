import pytest

from hutch.pravega.errors import WireError
from hutch.pravega.modified_utf8 import decode_text, encode_text

SAMPLES = [
    ("", ""),
    ("s/t/0.#epoch.0", "732f742f302e2365706f63682e30"),
    ("\0", "c080"),
    ("a\0é", "61c080c3a9"),
    ("\0é", "c080c3a9"),
    ("€", "e282ac"),
    ("😀", "eda0bdedb880"),
    ("\U0010ffff", "edafbfedbfbf"),
]


@pytest.mark.parametrize(("text", "data"), SAMPLES)
def test_text_is_written_and_read_as_java_does(text: str, data: str) -> None:
    assert encode_text(text).hex() == data
    assert decode_text(bytes.fromhex(data)) == text


@pytest.mark.parametrize("text", ["\0", "a\0é"])
def test_a_zero_byte_is_read_as_nul(text: str) -> None:
    assert decode_text(text.encode()) == text


@pytest.mark.parametrize(
    "data",
    [
        "f09f9880",  # a character of four bytes
        "ff",
        "c3",  # cut short
        "e2c080",  # NUL in the middle of a character
        "c1bf",  # longer than it needs to be
        "eda0bd",  # half a pair
        "edb880eda0bd",  # the halves in the wrong order
    ],
)
def test_what_is_no_modified_utf8_is_refused(data: str) -> None:
    with pytest.raises(WireError, match="a string"):
        decode_text(bytes.fromhex(data))


def test_half_a_pair_is_not_written() -> None:
    with pytest.raises(ValueError, match="surrogate"):
        encode_text("\ud83d")
