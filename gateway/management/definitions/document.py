"""The JSON of definitions, read with bounds: whatever the bytes are, time and memory are limited.

JSON that makes no sense (a key twice in an object, a number of a thousand digits) is kept as a
mark in the tree. The code that knows the object complains.
"""

import json
import re
from typing import Final, NoReturn

from gateway.management.definitions.errors import DefinitionsError
from gateway.management.json_reader import read_json

BYTES_MAX: Final = 128 * 1024 * 1024
"""Two and a half times the largest that must work."""
CONTAINERS_MAX: Final = 2_000_000
"""Opening brackets and braces: an empty object costs 64 bytes and a call. 100,000 users, queues and
bindings have some 400,000."""
VALUES_MAX: Final = 8_000_000
"""Commas: a value costs at least its place in a list."""
DEPTH_MAX: Final = 40
"""Levels of lists and objects within an object of the definitions."""
VALUE_DEPTH_MAX: Final = DEPTH_MAX - 2
"""The same of what an object holds, as a binding's arguments or, within a parameter's value, the
definition of a policy. What is taken any other way has no more, or an export could not be read."""
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]', re.DOTALL)
_ENTRY_DEPTH: Final = 3
"""The document, the section, the entry."""
_DIGITS_MAX: Final = 4_300
"""As many as Python reads elsewhere, so whatever the server holds can be read back; the time that
one takes grows as its square."""


class HugeNumber:
    """Stands for a whole number of too many digits."""

    def __init__(self, digits: int) -> None:
        self.digits = digits

    def __str__(self) -> str:
        return f"a number of {self.digits} digits"


class DoubledKey(dict[str, object]):
    """An object in which a key stands twice."""

    key: str = ""


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


def fault_within(value: object, depth_max: int = DEPTH_MAX) -> str:
    """Return what makes no sense in a value or what it holds; empty if all is well."""
    level: list[object] = [value]
    for _ in range(depth_max):
        below: list[object] = []
        for item in level:
            if fault := _fault_of(item):
                return fault
            if isinstance(item, dict):
                below.extend(item)
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        if not below:
            return ""
        level = below
    return f"is nested deeper than {depth_max} levels"


def _fault_of(item: object) -> str:
    if isinstance(item, DoubledKey):
        return f"has the key {item.key[:100]!r} twice"
    if isinstance(item, HugeNumber):
        return f"has {item}"
    if isinstance(item, float) and item in (float("inf"), float("-inf")):
        return "has a number that is too large"
    if isinstance(item, str) and not is_text(item):
        return f"has {item[:100]!r}, which is not Unicode text"
    return ""


def is_text(text: str) -> bool:
    """Return whether a JSON string is Unicode text: half of a surrogate pair is none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
