"""AMQPLAIN: the table in which user and password come, right and wrong."""

from __future__ import annotations

import struct

from pamqp import encode

from compat.differential import frames as f
from compat.differential.script import (
    Reached,
    Script,
    Step,
    Wait,
    ask,
    opened,
    reached,
    script,
    timed,
)

TO_THE_END = Wait(fin=True)


def field(key: str, kind: str, value: bytes) -> bytes:
    """Return one field, its value as it is."""
    return struct.pack(">B", len(key)) + key.encode() + kind.encode() + value


def text_field(key: str, value: str | bytes, *, kind: str = "S") -> bytes:
    """Return one field of a long text."""
    raw = value.encode() if isinstance(value, str) else value
    return field(key, kind, struct.pack(">I", len(raw)) + raw)


LOGIN = text_field("LOGIN", "guest")
PASSWORD = text_field("PASSWORD", "guest")
# As another library writes it: a table, from which its outer length is taken off.
BY_PAMQP = encode.field_table({"LOGIN": "guest", "PASSWORD": "guest"})[4:]

RIGHT = {
    "as a library writes it": BY_PAMQP,
    "the password first": PASSWORD + LOGIN,
    "other fields of every kind": LOGIN
    + field("t", "t", b"\x01")
    + field("b", "b", b"\xff")
    + field("I", "I", bytes(4))
    + field("l", "l", bytes(8))
    + field("d", "d", bytes(8))
    + field("T", "T", bytes(8))
    + field("D", "D", bytes(5))
    + field("V", "V", b"")
    + text_field("x", b"\xff\x00", kind="x")
    + text_field("F", field("in", "t", b"\x01"), kind="F")
    + text_field("A", b"t\x01", kind="A")
    + PASSWORD,
    "another user behind": LOGIN + PASSWORD + text_field("LOGIN", "nobody"),
    "bytes for a password": LOGIN + text_field("PASSWORD", b"guest", kind="x"),
    "bytes for a user": text_field("LOGIN", b"guest", kind="x") + PASSWORD,
    "a field without a name": field("", "t", b"\x01") + LOGIN + PASSWORD,
}
WRONG = {
    "a wrong password": LOGIN + text_field("PASSWORD", "no"),
    "an empty password": LOGIN + text_field("PASSWORD", ""),
    "an unknown user": text_field("LOGIN", "nobody") + PASSWORD,
    "an empty user": text_field("LOGIN", "") + PASSWORD,
    "no table at all": b"",
    "only a user": LOGIN,
    "only a password": PASSWORD,
    "names in lower case": text_field("login", "guest") + text_field("password", "guest"),
    "a number for a password": LOGIN + field("PASSWORD", "I", bytes(4)),
    "a flag for a password": LOGIN + field("PASSWORD", "t", b"\x01"),
    "a number for a user": field("LOGIN", "I", bytes(4)) + PASSWORD,
    "the outer length in front": len(LOGIN + PASSWORD).to_bytes(4) + LOGIN + PASSWORD,
    "a password cut short": LOGIN + PASSWORD[:-1],
    "a name cut short": LOGIN + PASSWORD + b"\x05ab",
    "a kind that nobody knows": LOGIN + PASSWORD + field("z", "Z", b""),
    "what PLAIN sends": b"\0guest\0guest",
}


def anonymous() -> tuple[Step, ...]:
    """Begin on A without a user."""
    return (
        reached("A", Reached.MECHANISMS),
        ask("A", f.sasl_authenticate("ANONYMOUS", b"who"), wait=Wait(frames=2)),
        ask("A", f.tune(), f.open_host(), wait=Wait(frames=1)),
    )


SCRIPTS: tuple[Script, ...] = (
    *(
        script(
            f"amqplain: {name}",
            reached("A", Reached.MECHANISMS),
            ask("A", f.sasl_authenticate("AMQPLAIN", data), wait=Wait(frames=2)),
        )
        for name, data in RIGHT.items()
    ),
    *(
        script(
            f"amqplain, refused: {name}",
            reached("A", Reached.MECHANISMS),
            timed("A", f.sasl_authenticate("AMQPLAIN", data), wait=TO_THE_END),
        )
        for name, data in WRONG.items()
    ),
    script(
        "amqplain, refused: null data",
        reached("A", Reached.MECHANISMS),
        timed("A", f.sasl_authenticate("AMQPLAIN", None), wait=TO_THE_END),
    ),
    script(
        "amqplain: renewed by itself, not by another mechanism",
        reached("A", Reached.MECHANISMS),
        ask("A", f.sasl_authenticate("AMQPLAIN", BY_PAMQP), wait=Wait(frames=2)),
        ask("A", f.tune(), f.open_host(), wait=Wait(frames=1)),
        ask("A", f.sasl_authenticate("AMQPLAIN", BY_PAMQP)),
        timed("A", f.plain(), wait=TO_THE_END),
    ),
    script(
        "anonymous: renewed by itself, not by another mechanism",
        reached("A", Reached.MECHANISMS),
        ask("A", f.sasl_authenticate("ANONYMOUS", b"who"), wait=Wait(frames=2)),
        ask("A", f.tune(), f.open_host(), wait=Wait(frames=1)),
        ask("A", f.sasl_authenticate("ANONYMOUS", b"")),
        timed("A", f.plain(), wait=TO_THE_END),
    ),
    script("anonymous: not before PLAIN", *anonymous(), timed("A", f.plain(), wait=TO_THE_END)),
    script(
        "anonymous: not after PLAIN",
        opened("A"),
        timed("A", f.sasl_authenticate("ANONYMOUS", b""), wait=TO_THE_END),
    ),
)
