"""JSON that is safe to show and to read, whatever is in a name.

Names are kept as the bytes that clients sent. What is no text in them becomes U+FFFD, since half a
surrogate pair is an error to strict readers; control characters and all beyond ASCII are escaped,
and so are the characters that mean something to HTML.
"""

import json
import math
import re
from typing import Any, Final

from gateway.management.json_reader import read_json

_ESCAPE: Final = re.compile(
    r"\\(?:ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(ud[89a-f][0-9a-f]{2})|.)", re.DOTALL
)
_MARKUP: Final = (("<", r"\u003c"), (">", r"\u003e"), ("&", r"\u0026"))
# Made once: making one takes longer than most of what it encodes.
_encode: Final = json.JSONEncoder(separators=(",", ":")).encode
_REPLACEMENT: Final = r"\ufffd"
_HALVES: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def pack_json(value: object) -> str:
    """Return a value as JSON in ASCII."""
    text = _encode(value)
    if r"\ud" in text:
        text = _ESCAPE.sub(_whole, text)
    # Outside of texts JSON has none of these.
    for character, escaped in _MARKUP:
        text = text.replace(character, escaped)
    return text


def _whole(match: re.Match[str]) -> str:
    return match[0] if match[1] is None else _REPLACEMENT


class NotJson(Exception):
    """It is no JSON, or could be read in two ways."""


def unpack_json(text: bytes) -> Any:  # noqa: ANN401  # what JSON holds
    """Read JSON. Raises NotJson: it is none, or says one name of an object twice.

    Half a surrogate pair is no text, and what is beyond the largest number is none.
    """
    try:
        value = read_json(text.decode(json.detect_encoding(text), "surrogatepass"), _DECODER)
        if _HALVES.search(text) is not None:
            for part in _WHOLE.iterencode(value):
                part.encode()
    except (ValueError, RecursionError):
        raise NotJson from None
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name is said twice")
    return result


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large a number")
    return value


def _no_number(text: str) -> Any:  # noqa: ANN401
    raise ValueError(f"{text} is no number")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_each_once, parse_constant=_no_number, parse_float=_number
)
_WHOLE: Final = json.JSONEncoder(ensure_ascii=False)
