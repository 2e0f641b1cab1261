"""Kinds of values: the range of an option, in words and as a function of its text."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from pyspark_hutch.options.errors import Unfit, shown

NAME_BYTES_MAX: Final = 255  # of a stream, a reference or a filter value: what the protocol takes
TEXT_BYTES_MAX: Final = 4_096  # of any other text: a path is no longer on the systems we know
LIST_ITEMS_MAX: Final = (
    10_000  # of a list in one option: ten times the streams that a job plans for
)
JSON_CHARACTERS_MAX: Final = 4_000_000  # room for 10,000 streams with long names
INTEGER_MAX: Final = 2**63 - 1  # Spark's bigint

_DURATION: Final = re.compile(r"([0-9]{1,15})\s*([A-Za-z]+)")
_SIZE: Final = re.compile(r"([0-9]{1,19})\s*([a-z]*)")
_UNITS_MS: Final = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}
_UNITS_BYTES: Final = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40} | {
    "kb": 2**10,
    "mb": 2**20,
    "gb": 2**30,
    "tb": 2**40,
}


@dataclass(frozen=True, slots=True)
class ValueKind:
    """The values that an option takes.

    Attributes:
        takes: The range of values, in words that go on after "takes".
        parse: Makes the value of the text; raises `Unfit`.
        text: Makes a text of a value, as it is shown for a default.
    """

    takes: str
    parse: Callable[[str], object]
    text: Callable[[Any], str] = str


def text_of(bytes_max: int = TEXT_BYTES_MAX, *, takes: str = "") -> ValueKind:
    """Return the kind of a text that is not empty."""

    def parse(text: str) -> str:
        return checked_text(text, bytes_max)

    return ValueKind(takes or f"1 to {bytes_max:,} bytes of text", parse)


def checked_text(text: str, bytes_max: int) -> str:
    """Return a text that is not empty, not too long and has no control characters."""
    if not text or bytes_of(text) > bytes_max or not text.isprintable():
        raise Unfit("")
    return text


def bytes_of(text: str) -> int:
    """Return how many bytes a text has in UTF-8; half a surrogate pair counts like any other."""
    return len(text.encode("utf-8", "surrogatepass"))


def integer(low: int, high: int = INTEGER_MAX) -> ValueKind:
    """Return the kind of a whole number."""

    def parse(text: str) -> int:
        return _in_range(whole_number(text), low, high)

    bound = f"from {low} to {high}" if high < INTEGER_MAX else f"from {low} on"
    return ValueKind(f"a whole number {bound}", parse)


def _in_range(number: int, low: int, high: int) -> int:
    if not low <= number <= high:
        raise Unfit("")
    return number


def whole_number(text: str) -> int:
    """Return the number that plain digits stand for."""
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(INTEGER_MAX)):
        raise Unfit("")
    return int(text)


def one_of(values: Mapping[str, object]) -> ValueKind:
    """Return the kind of a word, in any case, that stands for a value."""

    def parse(text: str) -> object:
        word = text.lower()
        if word not in values:
            raise Unfit("")
        return values[word]

    def text_of_value(value: object) -> str:
        return next(word for word, meant in values.items() if meant == value)

    *others, last = values
    takes = f"{', '.join(others)} or {last}" if others else last
    return ValueKind(takes, parse, text_of_value)


def choice(*words: str) -> ValueKind:
    """Return the kind of one word of a few, in any case."""
    return one_of({word: word for word in words})


FLAG: Final = one_of({"true": True, "false": False})


def duration(low_ms: int, high_ms: int) -> ValueKind:
    """Return the kind of a time with its unit, in milliseconds."""

    def parse(text: str) -> int:
        return _in_range(duration_ms(text), low_ms, high_ms)

    return ValueKind(
        f"a time with its unit, as 500ms, 10s, 15m, 1h or 7d, "
        f"from {shortest(low_ms)} to {shortest(high_ms)}",
        parse,
        shortest,
    )


def duration_ms(text: str) -> int:
    """Return the milliseconds of a number with a unit of time."""
    found = _DURATION.fullmatch(text)
    if found is None or found[2] == "M":  # RabbitMQ's months, which Spark takes for minutes
        raise Unfit("")
    unit = found[2].lower()
    if unit not in _UNITS_MS:
        raise Unfit("")
    return int(found[1]) * _UNITS_MS[unit]


def shortest(length_ms: int) -> str:
    """Return a time in the largest unit that divides it."""
    for unit in ("d", "h", "m", "s"):
        if length_ms % _UNITS_MS[unit] == 0:
            return f"{length_ms // _UNITS_MS[unit]}{unit}"
    return f"{length_ms}ms"


def size(low: int, high: int = INTEGER_MAX) -> ValueKind:
    """Return the kind of a number of bytes, or of k, m, g or t of them (powers of 1,024)."""

    def parse(text: str) -> int:
        found = _SIZE.fullmatch(text.lower())
        if found is None or found[2] not in _UNITS_BYTES:
            raise Unfit("")
        return _in_range(int(found[1]) * _UNITS_BYTES[found[2]], low, high)

    bound = f"from {low:,} to {high:,}" if high < INTEGER_MAX else f"from {low:,} on"
    return ValueKind(f"bytes {bound}, also as 64k, 16m or 2g", parse)


def names(bytes_max: int = NAME_BYTES_MAX, *, what: str = "names") -> ValueKind:
    """Return the kind of a list between commas, or of a JSON list of texts."""

    def parse(text: str) -> tuple[str, ...]:
        items = _json_texts(text) if text.startswith("[") else [i.strip() for i in text.split(",")]
        return checked_list(items, bytes_max)

    return ValueKind(
        f"{what} of 1 to {bytes_max} bytes between commas, or a JSON list of them", parse
    )


def _json_texts(text: str) -> list[str]:
    items = json_of(text)
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise Unfit("")
    return items


def checked_list(items: list[str], bytes_max: int) -> tuple[str, ...]:
    """Return names of which none is empty, too long or twice there."""
    if not items or len(items) > LIST_ITEMS_MAX:
        raise Unfit(f"takes 1 to {LIST_ITEMS_MAX:,} items")
    seen: set[str] = set()
    for item in items:
        checked_text(item, bytes_max)
        if item in seen:
            raise Unfit(f"{shown(item)} is given twice")
        seen.add(item)
    return tuple(items)


def json_of(text: str) -> object:
    """Return the value of a JSON text; a key that stands twice in an object is refused."""
    if len(text) > JSON_CHARACTERS_MAX:
        raise Unfit(f"is longer than {JSON_CHARACTERS_MAX:,} characters")
    try:
        return json.loads(text, object_pairs_hook=_object_of_pairs)
    except Unfit:
        raise
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "a value is too large"
        raise Unfit(f"is no JSON: {reason}") from None


def _object_of_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made: dict[str, object] = {}
    for key, value in pairs:
        if key in made:
            raise Unfit(f"the key {shown(key)} is given twice")
        made[key] = value
    return made


def json_object(text: str) -> dict[str, object]:
    """Return a JSON object that is not empty and whose keys are names of streams."""
    made = json_of(text)
    if not isinstance(made, dict) or not made:
        raise Unfit("")
    checked_list(list(made), NAME_BYTES_MAX)
    return made


def is_integer(value: object, low: int, high: int = INTEGER_MAX) -> TypeGuard[int]:
    """Return whether a value of JSON is a whole number in a range; `true` is none."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
