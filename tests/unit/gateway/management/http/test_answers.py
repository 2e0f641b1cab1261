import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.management.http.answers import pack_json


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\udcff\udc80b", "a\ufffd\ufffdb"),
        ("\ud83d", "\ufffd"),
        ("😀", "😀"),
        (r"\udc80", r"\udc80"),
        ("\\" * 3 + "udc80\udc80", "\\" * 3 + "udc80\ufffd"),
        ("</script><b>&", "</script><b>&"),
        ("a\r\n\x1b[31m\x00", "a\r\n\x1b[31m\x00"),
    ],
)
def test_any_name_is_text_to_whoever_reads_it(name: str, shown: str) -> None:
    packed = pack_json({name: [name]})

    assert json.loads(packed) == {shown: [shown]}
    assert packed.isascii()
    assert packed.isprintable()
    assert not set(packed) & set("<>&")


@given(st.text(st.characters(exclude_categories=())))
def test_what_is_written_is_always_valid_utf8_and_ascii(name: str) -> None:
    packed = pack_json(name)

    assert packed.isascii()
    json.loads(packed).encode("utf-8")  # no half of a surrogate pair is left
