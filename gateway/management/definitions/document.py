"""The JSON of definitions, read with bounds: whatever the bytes are, time and memory are limited.

JSON that makes no sense (a key twice in an object, a number of a thousand digits) is kept as a
mark in the tree. The code that knows the object complains.
"""

import json
import re
from typing import Final, NoReturn

from gateway.management.errors import DefinitionsError
from gateway.management.fields import DEPTH_MAX, DoubledKey, HugeNumber
from gateway.management.json_reader import read_json

BYTES_MAX: Final = 128 * 1024 * 1024
"""Two and a half times the largest that must work."""
CONTAINERS_MAX: Final = 2_000_000
"""Opening brackets and braces: an empty object costs 64 bytes and a call. 100,000 users, queues and
bindings have some 400,000."""
VALUES_MAX: Final = 8_000_000
"""Commas: a value costs at least its place in a list."""
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]', re.DOTALL)
_ENTRY_DEPTH: Final = 3
"""The document, the section, the entry."""
_DIGITS_MAX: Final = 4_300
"""As many as Python reads elsewhere, so whatever the server holds can be read back; the time that
one takes grows as its square."""


def read_document(content: bytes) -> dict[str, object]:
    """Read the JSON text of definitions.

    Args:
        content: UTF-8, with or without a byte order mark.

    Raises:
        DefinitionsError: It is too large, no JSON, nested too deeply, or not one object.
    """
    _require_bounds(content)
    try:
        document = read_json(content.decode("utf-8-sig"), _DECODER)
    except UnicodeDecodeError as error:
        raise DefinitionsError(f"is not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise DefinitionsError(f"{_deepest(content)} is nested too deeply") from None
    except ValueError as error:
        raise DefinitionsError(f"is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise DefinitionsError("is not a JSON object")
    if isinstance(document, DoubledKey):
        raise DefinitionsError(f"the key {document.key[:100]!r} stands twice")
    return document


def _require_bounds(content: bytes) -> None:
    if len(content) > BYTES_MAX:
        raise DefinitionsError(f"has {len(content)} bytes, more than {BYTES_MAX}")
    # Counted in strings too: that only makes the bound tighter.
    if content.count(b"{") + content.count(b"[") > CONTAINERS_MAX:
        raise DefinitionsError(f"has more than {CONTAINERS_MAX} objects and lists")
    if content.count(b",") > VALUES_MAX:
        raise DefinitionsError(f"has more than {VALUES_MAX} values")


def _deepest(content: bytes) -> str:
    """Name the entry in which the nesting first goes too far, as well as can be told."""
    depth, section, index = 0, "", -1
    for token in _TOKEN.finditer(content):
        kind = token[0][:1]
        if kind in b"[{":
            depth += 1
            if depth == _ENTRY_DEPTH:
                index += 1
            elif depth > DEPTH_MAX:
                break
        elif kind in b"]}":
            depth -= 1
        elif depth == 1:  # a key of the document, or its value
            section, index = token[0][1:-1][:100].decode("utf-8", "replace"), -1
    return f"{section}[{max(index, 0)}], at byte {token.start()},"


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) == len(pairs):
        return content
    doubled = DoubledKey(content)
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            doubled.key = key
        seen.add(key)
    return doubled


def _integer(text: str) -> int | HugeNumber:
    digits = len(text.lstrip("-"))
    return int(text) if digits <= _DIGITS_MAX else HugeNumber(digits)


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_constant=_constant
)
