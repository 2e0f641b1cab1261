"""Sets of bytes that Perl's patterns have names for, and how a set is written for RE2.

Source: PCRE2, "pcre2pattern", for bytes and the C locale; Unicode's general categories.
"""

import unicodedata
from typing import Final

ALL: Final = frozenset(range(256))
_DIGITS: Final = frozenset(b"0123456789")
_UPPER: Final = frozenset(range(ord("A"), ord("Z") + 1))
_LOWER: Final = frozenset(range(ord("a"), ord("z") + 1))
_ALNUM: Final = _DIGITS | _UPPER | _LOWER
_WORD: Final = _ALNUM | {ord("_")}
_SPACE: Final = frozenset(b"\t\n\x0b\f\r ")
LETTERS: Final = _UPPER | _LOWER
_GRAPH: Final = frozenset(range(0x21, 0x7F))
LINE_END: Final = ord("\n")

_SHORT: Final = {
    "d": _DIGITS,
    "w": _WORD,
    "s": _SPACE,
    "h": frozenset(b"\t \xa0"),
    "v": frozenset(b"\n\x0b\f\r\x85"),
}
CLASSES: Final = _SHORT | {name.upper(): ALL - chosen for name, chosen in _SHORT.items()}
NAMED: Final = {
    "alpha": LETTERS,
    "lower": _LOWER,
    "upper": _UPPER,
    "alnum": _ALNUM,
    "ascii": frozenset(range(128)),
    "blank": frozenset(b"\t "),
    "cntrl": frozenset(range(32)) | {0x7F},
    "digit": _DIGITS,
    "graph": _GRAPH,
    "print": _GRAPH | {0x20},
    "punct": _GRAPH - _ALNUM,
    "space": _SPACE,
    "word": _WORD,
    "xdigit": frozenset(b"0123456789abcdefABCDEF"),
}
_CATEGORIES: Final = [unicodedata.category(chr(byte)) for byte in range(256)]
_CASED: Final = ("Lu", "Ll", "Lt")
_OTHER_CATEGORIES: Final = frozenset(
    ("Lt", "Lm", "Mn", "Mc", "Me", "Nl", "Zl", "Zp", "Cs", "Co", "Cn")
)
"""General categories that none of the first 256 characters has."""


def of_category(name: str) -> frozenset[int] | None:
    """Return the bytes of a general category such as `Lu`, None if there is none such."""
    if name == "Any":
        return ALL
    if name == "L&":
        return frozenset(byte for byte in ALL if _CATEGORIES[byte] in _CASED)
    chosen = frozenset(byte for byte in ALL if _CATEGORIES[byte].startswith(name))
    return chosen if chosen or name in _OTHER_CATEGORIES else None


def written(byte: int) -> str:
    """Write one byte."""
    return chr(byte) if byte in _ALNUM else f"\\x{byte:02x}"


def class_of(chosen: frozenset[int]) -> str:
    """Write a set of bytes: its ranges, each bound as RE2 reads it in one way."""
    if not chosen:
        return r"(?:\z\x00)"  # never found
    ranges: list[tuple[int, int]] = []
    for byte in sorted(chosen):
        if ranges and ranges[-1][1] == byte - 1:
            ranges[-1] = ranges[-1][0], byte
        else:
            ranges.append((byte, byte))
    return "[" + "".join(_range(low, high) for low, high in ranges) + "]"


def _range(low: int, high: int) -> str:
    return written(low) if low == high else f"{written(low)}-{written(high)}"
