"""Credentials of the scheme Basic, as HTTP and gRPC send them."""

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
