"""Paths taken apart exactly: percent signs are read once, and only within a segment.

`%2F` in a name is a slash of that name and no border, `%252F` the three letters `%2F`. What is not
written as a path should be is refused, never guessed: a proxy before this server must see the
same path that it sees.
"""

import re
from typing import Final

_ESCAPED: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_ALLOWED: Final = re.compile(rb"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*")
_DOTS: Final = frozenset((b".", b".."))
DEFAULT_EXCHANGE_NAME: Final = "amq.default"
"""Name of the default exchange in paths."""
_EXCHANGE_AT: Final = {b"exchanges": 3, b"bindings": 4}
"""Place of the exchange's name in a path, by the kind of path; that of the default one is empty."""
_SECRET: Final = re.compile("(/auth/hash_password/).*", re.DOTALL)
SEGMENTS_MAX: Final = 12


class WrongPath(ValueError):
    """A path that cannot be read in exactly one way."""


def segments_of(raw_path: bytes) -> list[bytes]:
    """Split a path; the segments stay encoded, one slash at the end is left out.

    The default exchange is called `amq.default`, also where the path has its empty name.

    Raises:
        WrongPath: Other empty segments, `.` or `..`, letters that belong encoded, or too many.
    """
    parts = raw_path.split(b"/")
    if parts[0] or len(parts) == 1:
        raise WrongPath("a path begins with a slash")
    parts = parts[1:-1] if len(parts) > 2 and not parts[-1] else parts[1:]  # noqa: PLR2004
    if len(parts) > SEGMENTS_MAX:
        raise WrongPath("a path of so many segments does not exist")
    exchange_at = _EXCHANGE_AT.get(parts[1] if len(parts) > 1 else b"", 0)
    if 0 < exchange_at < len(parts) and not parts[exchange_at]:
        parts[exchange_at] = DEFAULT_EXCHANGE_NAME.encode()
    for part in parts:
        if not part and raw_path != b"/":
            raise WrongPath("a path has no empty segments")
        if _ALLOWED.fullmatch(part) is None:
            raise WrongPath("a path holds percent-encoded ASCII")
        if part in _DOTS:
            raise WrongPath("a path has neither . nor ..")
    return parts


def without_secrets(path: str) -> str:
    """Return a path, encoded or not, as log lines may have it: without the password in it."""
    return _SECRET.sub(r"\1…", path)


def decode(segment: bytes) -> str:
    """Return what a segment says; bytes that are no UTF-8 are kept as names keep them."""
    raw = _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode("ascii")), segment)
    return raw.decode("utf-8", "surrogateescape")


def encode(name: str) -> str:
    """Write a name as a segment."""
    raw = name.encode("utf-8", "surrogateescape")
    return "".join(
        chr(byte) if (chr(byte).isalnum() and byte < 128) or byte in b"-._~" else f"%{byte:02X}"  # noqa: PLR2004
        for byte in raw
    )
