"""Text as Java writes it: UTF-8, but for two kinds of character.

    NUL                 c0 80
    above U+FFFF        its two surrogates, 3 bytes each

A zero byte is read as NUL, as Java reads it: clients that write plain UTF-8 send it so.

Source: java.io.DataInput, Modified UTF-8.
"""

from typing import Final

from hutch.pravega.errors import WireError

_NUL: Final = b"\xc0\x80"
_FOUR_BYTES: Final = 0xF0
"""Plain UTF-8 begins a character above U+FFFF with this byte or a higher one."""


def decode_text(data: bytes) -> str:
    """Return the text of a string's bytes.

    Raises:
        WireError: They are no modified UTF-8, or one of a pair of surrogates is missing.
    """
    if data.isascii():
        return data.decode("ascii")
    if max(data) >= _FOUR_BYTES:
        raise WireError("a string has a character of four bytes, not a pair of surrogates")
    try:
        halves = data.replace(_NUL, b"\0").decode("utf-8", "surrogatepass")
        return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        raise WireError("a string is no modified UTF-8") from error


def encode_text(text: str) -> bytes:
    """Return the bytes of a string.

    Raises:
        ValueError: The text has a lone surrogate.
    """
    if not text.isascii():
        units = memoryview(text.encode("utf-16-be"))
        halves = (chr(units[at] << 8 | units[at + 1]) for at in range(0, len(units), 2))
        return "".join(halves).encode("utf-8", "surrogatepass").replace(b"\0", _NUL)
    return text.encode("ascii").replace(b"\0", _NUL)
