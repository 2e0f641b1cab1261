"""Bodies of messages that are more than a run of bytes."""

import pytest

from pyspark_hutch.decoding import bodies
from pyspark_hutch.decoding.bodies import body_of
from tests.property.pyspark_hutch.chunk_rig import data, listed, mapped, section, sized, text


@pytest.mark.parametrize("before", [b"", section(0x74, mapped(a=text("b")))])
@pytest.mark.parametrize(
    ("message", "kind", "body"),
    [
        (data(b"a") + data(b"") + data(b"x" * 300), bodies.DATA, b"a" + b"x" * 300),
        (section(0x77, b"\x40"), bodies.VALUE, b"null"),
        (section(0x77, b"\x54\xff"), bodies.VALUE, b"-1"),
        (section(0x77, mapped(a=listed(text("ü")))), bodies.VALUE, '{"a":["ü"]}'.encode()),
        (section(0x77, b"\0\x53\x01\xa1\x01a"), bodies.VALUE, b'"a"'),
        (section(0x76, listed(b"\x41", text("a"))), bodies.SEQUENCE, b'[true,"a"]'),
        (section(0x76, listed(b"\x41")) * 2, bodies.SEQUENCE, b"[true,true]"),
        (section(0x76, b"\x45"), bodies.SEQUENCE, b"[]"),
    ],
)
def test_a_body_is_put_together(before: bytes, message: bytes, kind: int, body: bytes) -> None:
    assert body_of(before + message) == (kind, body)


@pytest.mark.parametrize(
    "message",
    [
        section(0x77, b"\xc0\x02\x02\x41"),
        section(0x76, b"\xc0\x02\x01\x3f"),
        section(0x77, b"\x4f"),
        section(0x76, sized(0xC0, b"x") * 1),
        section(0x76, b"\xd0" + (600_000).to_bytes(4) + (599_996).to_bytes(4) + b"\x41" * 599_996)
        * 2,
    ],
    ids=range(5),
)
def test_a_body_that_cannot_be_read_is_the_whole_message(message: bytes) -> None:
    assert body_of(message) == (bodies.RAW, message)
