"""Credentials as clients send them: of the scheme Basic in HTTP and gRPC, and of AMQPLAIN."""

import base64
import binascii
from typing import Final, NamedTuple

_BYTES_MAX: Final = 4096


class BasicCredentials(NamedTuple):
    """A name with its password, as they were sent."""

    name: bytes
    password: bytes


def basic_credentials(header: str) -> BasicCredentials | None:
    """Return the credentials in an `authorization`; None if it has none that can be read.

    Source: RFC 7617, section 2.
    """
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "basic" or len(text) > _BYTES_MAX:
        return None
    try:
        name, colon, password = base64.b64decode(text.strip(), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return None
    if not colon or b"\x00" in name + password:
        return None
    return BasicCredentials(name, password)


_TEXTS: Final = frozenset(b"Sx")
_SIZES: Final = {
    ord(kind): size
    for size, kinds in ((0, "V"), (1, "tbB"), (2, "su"), (4, "Iif"), (5, "D"), (8, "lLdT"))
    for kind in kinds
}
_SIZED: Final = frozenset(b"SxFA")
"""A u32 with the size of the rest comes first."""


def credentials_of(data: bytes) -> tuple[bytes, bytes]:
    """Return the fields LOGIN and PASSWORD of AMQPLAIN's response; of a repeated one the first.

    It is an AMQP 0-9-1 field table without its outer length:

        field   u8 size of the key | key | u8 type | value of that type

    Source: AMQP 0-9-1, 4.2.5.5 Field Tables; RabbitMQ's errata for the types.

    Raises:
        ValueError: It is no such table, or has not these two.
    """
    found: dict[bytes, bytes] = {}
    position = 0
    while position < len(data):
        key, position = _take(data, position + 1, data[position])
        kind, position = _take(data, position, 1)
        if kind[0] in _SIZED:
            size, position = _take(data, position, 4)
            value, position = _take(data, position, int.from_bytes(size))
        elif kind[0] in _SIZES:
            value, position = _take(data, position, _SIZES[kind[0]])
        else:
            raise ValueError("a field of an unknown type")
        if key in (b"LOGIN", b"PASSWORD") and key not in found:
            is_text = kind[0] in _TEXTS
            if not is_text and key == b"LOGIN":
                raise ValueError("a name that is no text")
            found[key] = value if is_text else b""  # a number is no password
    if len(found) != 2:  # noqa: PLR2004  # both
        raise ValueError("a field is missing")
    return found[b"LOGIN"], found[b"PASSWORD"]


def _take(data: bytes, position: int, size: int) -> tuple[bytes, int]:
    end = position + size
    if end > len(data):
        raise ValueError("a field ends behind the table")
    return data[position:end], end
