"""Logging in, being refused, and renewing the secret of an open connection."""

from __future__ import annotations

import struct

from compat.differential import frames as f
from compat.differential.script import (
    Reached,
    Script,
    Wait,
    ask,
    ending,
    opened,
    reached,
    script,
    timed,
)

TO_THE_END = Wait(fin=True)


def table(**values: str) -> bytes:
    """Return an AMQP field table of long strings, without its outer length."""
    return b"".join(
        struct.pack(">B", len(key)) + key.encode() + b"S" + struct.pack(">I", len(value))
        + value.encode()
        for key, value in values.items()
    )  # fmt: skip


def login(name: str, mechanism: str, data: bytes | None) -> Script:
    """Return a first login, up to what follows from it."""
    wait = Wait(frames=2, timeout_s=6.0)
    return script(
        f"login: {name}",
        reached("A", Reached.MECHANISMS),
        timed("A", f.sasl_authenticate(mechanism, data), wait=wait, label="login"),
        ask("A", f.heartbeat(), wait=Wait(fin=True, timeout_s=0.5), label="afterwards"),
    )


LOGINS = tuple(
    login(*case)
    for case in (
        ("the right password", "PLAIN", b"\0guest\0guest"),
        ("a wrong password", "PLAIN", b"\0guest\0wrong"),
        ("an unknown user", "PLAIN", b"\0nobody\0guest"),
        ("an empty password", "PLAIN", b"\0guest\0"),
        ("an empty user", "PLAIN", b"\0\0guest"),
        ("an authorization id beside the user", "PLAIN", b"guest\0guest\0guest"),
        ("another NUL in the password", "PLAIN", b"\0guest\0gue\0st"),
        ("a NUL at the end", "PLAIN", b"\0guest\0guest\0"),
        ("no NUL in between", "PLAIN", b"\0guestguest"),
        ("no NUL at all", "PLAIN", b"guest"),
        ("only NULs", "PLAIN", b"\0\0"),
        ("no data", "PLAIN", b""),
        ("null data", "PLAIN", None),
        ("bytes that are no text", "PLAIN", b"\0\xff\xfe\0\xfd"),
        ("garbage", "PLAIN", b"\xff\xfe\xfd"),
        ("a mechanism that nobody knows", "SCRAM-SHA-1", b"\0guest\0guest"),
        ("a mechanism in lower case", "plain", b"\0guest\0guest"),
        ("an empty mechanism", "", b"\0guest\0guest"),
        ("EXTERNAL without a certificate", "EXTERNAL", b""),
        ("AMQPLAIN with the right password", "AMQPLAIN", table(LOGIN="guest", PASSWORD="guest")),
        ("AMQPLAIN with a wrong password", "AMQPLAIN", table(LOGIN="guest", PASSWORD="no")),
        ("ANONYMOUS", "ANONYMOUS", b""),
    )
)

MALFORMED = (
    script(
        "login: data shorter than its length",
        reached("A", Reached.MECHANISMS),
        ending("A", f.request(0x13, f.text("PLAIN") + struct.pack(">i", 99) + b"\0guest\0guest")),
    ),
    script(
        "login: data with a byte behind it",
        reached("A", Reached.MECHANISMS),
        ending("A", f.plain() + b"\0"),
    ),
    script(
        "login: no data field",
        reached("A", Reached.MECHANISMS),
        ending("A", f.request(0x13, f.text("PLAIN"))),
    ),
    script(
        "login: what is sent during the delay is not looked at",
        reached("A", Reached.MECHANISMS),
        timed("A", f.plain(password="no", corr=1), f.plain(corr=2), wait=TO_THE_END),
    ),
)

AGAIN = (
    script(
        "again once open: the same user",
        opened("A"),
        ask("A", f.plain(corr=21)),
        ask("A", f.metadata()),
        ask("A", f.plain(corr=22), f.plain(corr=23)),
    ),
    script(
        "again once open: publishers and subscriptions stay",
        opened("A"),
        ask("A", f.create("~s")),
        ask("A", f.declare(1, "~s")),
        ask("A", f.subscribe(1, "~s")),
        ask("A", f.plain()),
        ask("A", f.messages(1, 1, b"after"), wait=Wait(confirmed=1, records=1)),
    ),
    script(
        "again once open: another mechanism",
        opened("A"),
        timed("A", f.sasl_authenticate("AMQPLAIN", table(LOGIN="guest", PASSWORD="guest")),
              wait=TO_THE_END),
    ),
    script(
        "again once open: an unknown mechanism",
        opened("A"),
        timed("A", f.sasl_authenticate("NONE", b""), wait=TO_THE_END),
    ),
    script(
        "again once open: a wrong password",
        opened("A"),
        timed("A", f.plain(password="no"), wait=TO_THE_END),
    ),
    script(
        "again once open: an unknown user",
        opened("A"),
        timed("A", f.plain("nobody"), wait=TO_THE_END),
    ),
    script(
        "again once open: malformed data",
        opened("A"),
        timed("A", f.sasl_authenticate("PLAIN", b"garbage"), wait=TO_THE_END),
    ),
    script(
        "again once open: null data",
        opened("A"),
        timed("A", f.sasl_authenticate("PLAIN", None), wait=TO_THE_END),
    ),
    script(
        "again once open: a byte too many",
        opened("A"),
        ending("A", f.plain() + b"\0"),
    ),
)  # fmt: skip

SCRIPTS: tuple[Script, ...] = (*LOGINS, *MALFORMED, *AGAIN)
