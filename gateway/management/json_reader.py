"""JSON read in pieces, so that a thread never holds Python's lock for long.

The decoder of the standard library reads a text in one go: ten million bytes of numbers take
0.2 s, in which no other thread has its turn. Here a list or object that is larger than a window is
taken apart in Python, and what is in it is read by that decoder.
"""

import json
import re
import sys
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any, Final, NoReturn

WINDOW: Final = 256 * 1024
"""Characters that are read in one go: 10 ms at most, whatever they are."""
_SPACE: Final = frozenset(" \t\n\r")
_SPACES: Final = re.compile(r"[ \t\n\r]+")
_MARGIN: Final = 8
"""A number or word so near to the end of a window may go on behind it."""
_NAMES_COMMAS: Final = sys.version_info >= (3, 13)
"""True if the standard library has words of their own for commas that nothing follows."""


def read_json(text: str, decoder: json.JSONDecoder) -> Any:  # noqa: ANN401  # what JSON holds
    """Return what a text holds, as `decoder.decode` does.

    Raises:
        ValueError: It is no JSON, or a hook of the decoder says so.
        RecursionError: It is nested too deeply.
    """
    return _Reader(text, decoder).read()


class _Reader:
    def __init__(self, text: str, decoder: json.JSONDecoder) -> None:
        self._text = text
        self._decoder: Any = decoder  # its hooks and its scanner have no types
        self._begin = 0
        self._window = text[:WINDOW]
        # Items of lists before this place are taken one by one.
        self._one_by_one = 0

    def read(self) -> Any:  # noqa: ANN401
        value, end = self._value(self._behind_spaces(0))
        end = self._behind_spaces(end)
        if end != len(self._text):
            self._fail("Extra data", end)
        return value

    def _value(self, place: int) -> tuple[Any, int]:
        """Return the value at a place and where it ends."""
        found = None if place == 0 and not self._is_last() else self._in_window(place)
        if found is None and place - self._begin > WINDOW // 2:
            self._begin, self._window = place, self._text[place : place + WINDOW]
            found = self._in_window(place)
        if found is not None:
            return found
        match self._text[place : place + 1]:
            case "[":
                return self._list(place + 1)
            case "{":
                return self._object(place + 1)
        try:  # a text or a number that is larger than a window, or what is no JSON
            value, end = self._decoder.scan_once(self._text, place)
        except StopIteration as error:
            self._fail("Expecting value", error.value)
        return value, end

    def _is_last(self) -> bool:
        return self._begin + len(self._window) == len(self._text)

    def _in_window(self, place: int) -> tuple[Any, int] | None:
        """Return the value at a place and where it ends, if it surely ends in the window."""
        at, size = place - self._begin, len(self._window)
        if at >= size:
            return None
        try:
            value, end = self._decoder.scan_once(self._window, at)
        except (JSONDecodeError, StopIteration):
            return None
        if end + _MARGIN > size and not self._is_last():
            return None
        return value, end + self._begin

    def _list(self, place: int) -> tuple[Any, int]:
        values: list[Any] = []
        place = self._behind_spaces(place)
        if self._text[place : place + 1] == "]":
            return values, place + 1
        while True:
            place = self._many(place, values)
            value, place = self._value(place)
            values.append(value)
            place = self._behind_spaces(place)
            following = self._text[place : place + 1]
            if following == "]":
                return values, place + 1
            if following != ",":
                self._fail("Expecting ',' delimiter", place)
            place = self._behind_comma(place, "]", "array")

    def _many(self, place: int, values: list[Any]) -> int:
        """Take the items of a list that a window surely holds, but for its last; return the place.

        That is the rest item by item: a comma at the window's end may lie within one.
        """
        if place < self._one_by_one:
            return place
        part = self._text[place : place + WINDOW]
        self._one_by_one = place + len(part)
        last = part.rfind("},") + 1 or part.rfind(",")
        try:
            found, end = self._decoder.scan_once(f"[{part[:last]}]", 0)
        except (JSONDecodeError, StopIteration):
            return place
        if last <= 0 or end != last + 2:
            return place
        values += found
        self._one_by_one = 0
        return self._behind_comma(place + last, "]", "array")

    def _object(self, place: int) -> tuple[Any, int]:
        pairs: list[tuple[str, Any]] = []
        place = self._behind_spaces(place)
        if self._text[place : place + 1] == "}":
            return self._made(pairs), place + 1
        while True:
            if self._text[place : place + 1] != '"':
                self._fail("Expecting property name enclosed in double quotes", place)
            name, place = scanstring(self._text, place + 1, self._decoder.strict)
            place = self._behind_spaces(place)
            if self._text[place : place + 1] != ":":
                self._fail("Expecting ':' delimiter", place)
            value, place = self._value(self._behind_spaces(place + 1))
            pairs.append((name, value))
            place = self._behind_spaces(place)
            following = self._text[place : place + 1]
            if following == "}":
                return self._made(pairs), place + 1
            if following != ",":
                self._fail("Expecting ',' delimiter", place)
            place = self._behind_comma(place, "}", "object")

    def _made(self, pairs: list[tuple[str, Any]]) -> Any:  # noqa: ANN401
        hook = self._decoder.object_pairs_hook
        return dict(pairs) if hook is None else hook(pairs)

    def _behind_comma(self, comma: int, end: str, what: str) -> int:
        """Return the place of what follows a comma, which has to be more than the end."""
        place = self._behind_spaces(comma + 1)
        if _NAMES_COMMAS and self._text[place : place + 1] == end:
            self._fail(f"Illegal trailing comma before end of {what}", comma)
        return place

    def _behind_spaces(self, place: int) -> int:
        if self._text[place : place + 1] not in _SPACE:
            return place
        found = _SPACES.match(self._text, place)
        return place if found is None else found.end()

    def _fail(self, what: str, place: int) -> NoReturn:
        raise JSONDecodeError(what, self._text, place)
