r"""RabbitMQ's patterns in RE2's syntax: what means the same, written out; the rest is refused.

RabbitMQ's are Perl's as PCRE2 10.43 and later reads them, on bytes. RE2 has most of that syntax,
but some of it means something else there (`a{,3}`, `\v`, `\s`, letters beyond ASCII without regard
to case), and a right must never mean something that was not written. So nothing is passed through:
each piece is read by Perl's rules, and written in a form in which RE2 has but one meaning.

Only whether there is a match counts, so that groups need neither numbers nor names, and the
shortest run is as good as the longest.

Source: PCRE2, "pcre2pattern"; RE2's syntax.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from gateway.broker.pattern_classes import (
    ALL,
    CLASSES,
    LETTERS,
    LINE_END,
    NAMED,
    class_of,
    of_category,
    written,
)

_CHARACTERS: Final = {"a": 0x07, "e": 0x1B, "f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09}
_SIMPLE_ASSERTIONS: Final = {"z": r"\z", "A": r"\A", "G": r"\A", "b": r"\b", "B": r"\B", "K": ""}
_END: Final = r"(?:\n?\z)"
"""The end, or where one line's end is left: in front of nothing else this is what `$` says."""

_REPETITION: Final = re.compile(
    r"[*+?]"
    r"|\{[ \t]*+(?:([0-9]++)[ \t]*+(?:(,)[ \t]*+([0-9]++)?)?|,[ \t]*+([0-9]++))[ \t]*+\}"
)
_REPETITIONS_MAX: Final = 1_000
"""RE2's; it takes larger numbers for text, or refuses them."""
_GROUP: Final = re.compile(r"\?(?:[:|]|P?<([A-Za-z_][A-Za-z0-9_]{0,31})>|'([A-Za-z_]\w{0,31})')")
_FLAGS: Final = re.compile(r"\?(\^?)([iJnsU]*)(?:-([iJnsU]*))?([:)])")
_HEXADECIMAL: Final = re.compile(r"[0-9A-Fa-f]{1,2}|\{[ \t]*0*([0-9A-Fa-f]{1,2})[ \t]*\}")
_BRACED_OCTAL: Final = re.compile(r"\{[ \t]*0*([0-7]{1,3})[ \t]*\}")
_NUMBERS: Final = {"x": (_HEXADECIMAL, 16), "o": (_BRACED_OCTAL, 8)}
_PROPERTY: Final = re.compile(r"([LMNPSZC])|\{(\^?)([LMNPSZC][a-z&]?|Any)\}")
_POSIX: Final = re.compile(r"\[:(\^?)([a-z]+):\]")


class ForeignSyntax(ValueError):
    """What cannot be said in RE2, or is no pattern at all; the message says which."""


@dataclass(slots=True)
class _Level:
    """What holds at a place within a group."""

    ignores_case: bool = False
    dot_takes_all: bool = False
    after_end_at_first: bool = False
    """Whether the group itself stands behind a `$`."""
    after_end: bool = False
    has_end: bool = False
    """Whether some alternative so far has a `$`."""


def to_re2(pattern: bytes) -> bytes:
    """Return a pattern of RabbitMQ's in RE2's syntax, for matching bytes (Latin-1).

    Args:
        pattern: Each byte is a character.

    Returns:
        ASCII.

    Raises:
        ForeignSyntax: It says what cannot be translated exactly, or is no pattern.
    """
    return _Translation(pattern.decode("latin-1")).whole().encode("ascii")


class _Translation:
    """One pass over a pattern."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._out: list[str] = []
        self._levels = [_Level()]
        self._can_repeat = False
        """Whether a repetition may follow."""
        self._is_end = False
        """Whether what it would repeat has a `$`."""
        self._names: set[str] = set()
        self._group_count_at_most = text.count("(")

    def whole(self) -> str:
        while self._place < len(self._text):
            self._piece()
        if len(self._levels) > 1:
            raise ForeignSyntax("a group is not closed")
        return "".join(self._out)

    def _piece(self) -> None:
        character = self._text[self._place]
        repetition = self._repetition()
        if repetition is not None:
            self._repeat(repetition)
            return
        self._place += 1
        known = self._READERS.get(character)
        if known is None:
            self._byte(ord(character))
        else:
            known(self)

    # What a pattern is made of

    def _atom(self, text: str) -> None:
        if self._levels[-1].after_end:
            raise ForeignSyntax("something follows what says that the name ends ($)")
        self._out.append(text)
        self._can_repeat, self._is_end = True, False

    def _byte(self, byte: int) -> None:
        if self._levels[-1].ignores_case and byte in LETTERS:
            self._atom(f"[{chr(byte).upper()}{chr(byte).lower()}]")
        else:
            self._atom(written(byte))

    def _dot(self) -> None:
        self._atom(r"(?s:.)" if self._levels[-1].dot_takes_all else ".")

    def _start(self) -> None:
        self._assertion(r"\A")

    def _brackets(self) -> None:
        self._atom(class_of(self._read_class()))

    def _or(self) -> None:
        level = self._levels[-1]
        level.has_end |= level.after_end
        level.after_end = level.after_end_at_first
        self._out.append("|")
        self._can_repeat = False

    def _assertion(self, text: str) -> None:
        self._atom(text)
        self._can_repeat = False

    def _end(self) -> None:
        self._out.append(_END)
        self._levels[-1].after_end = True
        self._can_repeat = False

    def _repeat(self, found: re.Match[str]) -> None:
        if not self._can_repeat:
            raise ForeignSyntax(f"{found[0]} has nothing to repeat")
        if self._is_end and found[0] != "?":
            raise ForeignSyntax(f"{found[0]} repeats what says that the name ends ($)")
        self._place = found.end()
        self._out.append(_counts(found) if found[0].startswith("{") else found[0])
        follows = self._text[self._place : self._place + 1]
        if follows == "+":
            raise ForeignSyntax(f"{found[0]}+ gives nothing back (possessive)")
        self._place += follows == "?"  # fewer or more: there is a match or there is none
        self._can_repeat = False

    def _open(self) -> None:
        rest = self._text[self._place : self._place + 2]
        if rest.startswith("*"):
            raise ForeignSyntax("(* begins a verb")
        above = self._levels[-1]
        level = _Level(
            above.ignores_case, above.dot_takes_all, above.after_end, above.after_end
        )  # fmt: skip
        if rest == "?#":
            self._comment()
            return
        if rest.startswith("?") and not self._is_plain() and not self._begins_group(level):
            self._can_repeat = False
            return
        self._levels.append(level)
        self._out.append("(?:")
        self._can_repeat = False

    def _comment(self) -> None:
        end = self._text.find(")", self._place)
        if end < 0:
            raise ForeignSyntax("(?# has no end")
        self._place = end + 1

    def _is_plain(self) -> bool:
        """Read what `(?` begins if it is a group with a name or without a number."""
        group = _GROUP.match(self._text, self._place)
        if group is None:
            return False
        name = group[1] or group[2]
        if name in self._names:
            raise ForeignSyntax(f"two groups are called {name}")
        if name:
            self._names.add(name)
        self._place = group.end()
        return True

    def _begins_group(self, level: _Level) -> bool:
        """Read flags behind `(?`; tell whether they are those of a group, or of what follows."""
        flags = _FLAGS.match(self._text, self._place)
        if flags is None or (flags[1] and flags[3] is not None):
            raise ForeignSyntax(
                f"{self._text[self._place - 1 : self._place + 3]} begins what is not looked for:"
                " ahead, behind, other groups, many lines"
            )
        is_group = flags[4] == ":"
        set_on = level if is_group else self._levels[-1]
        if flags[1]:
            set_on.ignores_case = set_on.dot_takes_all = False
        for letters, value in ((flags[2], True), (flags[3] or "", False)):
            if "i" in letters:
                set_on.ignores_case = value
            if "s" in letters:
                set_on.dot_takes_all = value
        self._place = flags.end()
        return is_group

    def _close(self) -> None:
        if len(self._levels) == 1:
            raise ForeignSyntax("a group is closed that was not opened")
        level = self._levels.pop()
        has_end = level.has_end or level.after_end
        self._levels[-1].after_end |= has_end
        self._out.append(")")
        self._can_repeat, self._is_end = True, has_end

    # Backslashes

    def _escape(self) -> None:
        letter = self._next("\\ ends it")
        if letter == "Q":
            self._quoted()
        elif letter in _SIMPLE_ASSERTIONS:
            self._assertion(_SIMPLE_ASSERTIONS[letter])
        elif letter == "Z":
            self._end()
        elif letter in ("N", "C"):
            if self._text.startswith("{", self._place) and not self._repetition():
                raise ForeignSyntax(f"\\{letter}{{ begins the name of a character")
            self._atom(class_of(ALL - {LINE_END} if letter == "N" else ALL))
        elif letter != "E":  # the end of a quotation that is none says nothing
            is_number = letter in "123456789"
            found = self._octal_or_reference(letter) if is_number else self._class_or_byte(letter)
            if isinstance(found, int):
                self._byte(found)
            else:
                self._atom(class_of(found))

    def _repetition(self) -> re.Match[str] | None:
        return _REPETITION.match(self._text, self._place)

    def _quoted(self) -> None:
        end = self._text.find("\\E", self._place)
        stop = len(self._text) if end < 0 else end
        for character in self._text[self._place : stop]:
            self._byte(ord(character))
        self._place = stop if end < 0 else end + 2

    def _class_or_byte(self, letter: str) -> frozenset[int] | int:
        """Read what a backslash says both within brackets and outside."""
        if letter in CLASSES:
            return CLASSES[letter]
        if letter in ("p", "P"):
            return self._property(is_not=letter == "P")
        return self._character(letter)

    def _character(self, letter: str) -> int:
        """Read the one byte that a backslash says."""
        if letter in _CHARACTERS:
            return _CHARACTERS[letter]
        if letter in _NUMBERS:
            return self._number(*_NUMBERS[letter], f"\\{letter}")
        if letter == "0":
            return self._octal(letter)
        if letter == "c":
            control = self._next("\\c ends it")
            if " " <= control <= "~":
                return ord(control.upper()) ^ 0x40
        if letter.isascii() and letter.isalnum():
            raise ForeignSyntax(f"\\{letter} means nothing that is looked for here")
        return ord(letter)

    def _number(self, syntax: re.Pattern[str], digits: int, what: str) -> int:
        found = syntax.match(self._text, self._place)
        value = -1 if found is None else int(found[1] or found[0], digits)
        if found is None or value > 0xFF:  # noqa: PLR2004  # a byte
            raise ForeignSyntax(f"{what} is followed by no number of one byte")
        self._place = found.end()
        return value

    def _octal_or_reference(self, first: str) -> int:
        rest = self._text[self._place :]
        digits = first + rest[: len(rest) - len(rest.lstrip("0123456789"))]
        if first in "89" or len(digits) == 1 or int(digits[:9]) <= self._group_count_at_most:
            raise ForeignSyntax(f"\\{digits[:9]} refers back to a group")
        return self._octal(first)

    def _octal(self, first: str) -> int:
        digits = first
        while len(digits) < 3 and self._text[self._place : self._place + 1] in tuple("01234567"):  # noqa: PLR2004
            digits += self._text[self._place]
            self._place += 1
        value = int(digits, 8)
        if value > 0xFF:  # noqa: PLR2004  # a byte
            raise ForeignSyntax(f"\\{digits} is no byte")
        return value

    def _property(self, *, is_not: bool) -> frozenset[int]:
        found = _PROPERTY.match(self._text, self._place)
        if found is None or self._levels[-1].ignores_case:
            raise ForeignSyntax("only \\p of a general category is known, with regard to case")
        self._place = found.end()
        chosen = of_category(found[1] or found[3])
        if chosen is None:
            raise ForeignSyntax(f"\\p{found[0]} is no general category")
        return ALL - chosen if is_not != bool(found[2]) else chosen

    def _next(self, otherwise: str) -> str:
        if self._place >= len(self._text):
            raise ForeignSyntax(otherwise)
        self._place += 1
        return self._text[self._place - 1]

    _READERS: Final[dict[str, Callable[["_Translation"], None]]] = {
        "\\": _escape,
        "[": _brackets,
        "(": _open,
        ")": _close,
        "|": _or,
        "^": _start,
        "$": _end,
        ".": _dot,
    }

    # Brackets

    def _read_class(self) -> frozenset[int]:
        """Read what stands in brackets, by PCRE2's rules for ranges."""
        if self._is_posix(self._place - 1):
            raise ForeignSyntax("[: :], [. .] and [= =] stand within brackets")
        is_not = self._text.startswith("^", self._place)
        self._place += is_not
        chosen: set[int] = set()
        low: int | None = None  # what a range may begin with
        is_range = False
        for found, is_hyphen in self._in_class():
            if is_hyphen and low is not None and not is_range:
                is_range = True
                continue
            low, is_range = self._into(chosen, found, low if is_range else None), False
        if is_range:
            chosen.add(ord("-"))
        if self._levels[-1].ignores_case:
            chosen |= {byte ^ 0x20 for byte in chosen if byte in LETTERS}
        return ALL - chosen if is_not else frozenset(chosen)

    def _in_class(self) -> Iterator[tuple[frozenset[int] | int, bool]]:
        """Read to the closing bracket; with each piece, whether it is a hyphen that may join."""
        is_first, is_quoted = True, False
        while True:
            if self._text.startswith("\\E", self._place):
                is_quoted, self._place = False, self._place + 2
            elif not is_quoted and self._text.startswith("\\Q", self._place):
                is_quoted, self._place = True, self._place + 2
            else:
                character = self._next("[ is not closed")
                if is_quoted:
                    yield ord(character), False
                elif character == "]" and not is_first:
                    return
                else:
                    yield self._piece_of_class(character), character == "-"
                is_first = False

    def _piece_of_class(self, character: str) -> frozenset[int] | int:
        if character == "\\":
            return self._escape_in_class()
        if character == "[" and self._is_posix(self._place - 1):
            return self._posix()
        return ord(character)

    def _into(self, chosen: set[int], found: frozenset[int] | int, low: int | None) -> int | None:
        """Take in a byte, a range from `low` or a class; return what a range may begin with."""
        if isinstance(found, frozenset):
            follows = self._text[self._place : self._place + 2]
            if low is not None or (follows.startswith("-") and follows != "-]"):
                raise ForeignSyntax("a range begins or ends with more than one character")
            chosen |= found
            return None
        if low is None:
            chosen.add(found)
            return found
        if found < low:
            raise ForeignSyntax("a range ends before it begins")
        chosen.update(range(low, found + 1))
        return None

    def _escape_in_class(self) -> frozenset[int] | int:
        letter = self._next("[ is not closed")
        if letter == "b":
            return 0x08
        if letter in "1234567":
            return self._octal(letter)
        return self._class_or_byte(letter)

    def _is_posix(self, place: int) -> bool:
        """Tell whether `[` at a place begins what has the form `[:name:]`."""
        mark = self._text[place + 1 : place + 2]
        if mark not in (":", ".", "="):
            return False
        here = place + 2
        while here < len(self._text) - 1:
            pair = self._text[here : here + 2]
            if pair in ("\\]", "\\\\"):
                here += 1
            elif pair == f"[{mark}" or pair.startswith("]"):
                return False
            elif pair == f"{mark}]":
                return True
            here += 1
        return False

    def _posix(self) -> frozenset[int]:
        found = _POSIX.match(self._text, self._place - 1)
        if found is None or found[2] not in NAMED:
            raise ForeignSyntax("a class such as [:alpha:] has a name that is not known")
        self._place = found.end()
        chosen = NAMED[found[2]]
        if self._levels[-1].ignores_case and found[2] in ("upper", "lower"):
            chosen = NAMED["alpha"]
        return ALL - chosen if found[1] else chosen


def _counts(found: re.Match[str]) -> str:
    """Write how often something is repeated."""
    lowest = int(found[1] or "0")
    highest = found[3] or found[4]
    if found[2] and highest is None:
        text = f"{{{lowest},}}"
    else:
        text = f"{{{lowest},{int(highest or lowest)}}}"
        if int(highest or lowest) < lowest:
            raise ForeignSyntax(f"{found[0][:20]} ends before it begins")
    if max(lowest, int(highest or "0")) > _REPETITIONS_MAX:
        raise ForeignSyntax(f"{found[0][:20]} is above {_REPETITIONS_MAX} repetitions")
    return text
