"""Patterns that only say how names begin, found without an engine: however long, and at once.

Most permissions are of this kind: `^orders-`, `^(orders|returns)-.*`, `^(one|two|three)$`, with
hundreds of names where somebody generates them. As programs those would be large.

Source: PCRE2, "pcre2pattern".
"""

import re
from typing import Final, NamedTuple

# Text that stands for itself, then perhaps `.*`, then perhaps the end.
_ALTERNATIVE: Final = re.compile(
    r"((?:[^\x00-\x1f\\.^$|()\[\]{}*+?]|\\[!-/:-@\[-^`{-~])*)(\.\*)?(\$)?"
)
_GROUP: Final = re.compile(r"\^\((?:\?:)?([^()]*)\)([^()]*)")
_ESCAPE: Final = re.compile(r"\\(.)")


class Beginnings(NamedTuple):
    """How names begin that a pattern is found in; any of these will do."""

    whole: frozenset[bytes]
    """Names."""
    first: tuple[bytes, ...]
    """What may be followed by anything."""
    of_one_line: tuple[bytes, ...]
    """What may be followed by anything but a line's end."""

    def match(self, name: bytes) -> bool:
        """Tell whether a name begins so."""
        line = name.removesuffix(b"\n")  # `$` is found in front of a last line's end too
        return (
            line in self.whole
            or name.startswith(self.first)
            or (name.startswith(self.of_one_line) and b"\n" not in line)
        )


def beginnings(pattern: str) -> Beginnings | None:
    """Return what a pattern says of how names begin, None if it says anything else."""
    alternatives = _alternatives(pattern)
    if alternatives is None:
        return None
    whole: set[bytes] = set()
    first: list[bytes] = []
    of_one_line: list[bytes] = []
    for alternative in alternatives:
        found = _ALTERNATIVE.fullmatch(alternative)
        if found is None:
            return None
        text = _ESCAPE.sub(r"\1", found[1]).encode("utf-8", "surrogateescape")
        if not found[3]:
            first.append(text)
        elif found[2]:
            of_one_line.append(text)
        else:
            whole.add(text)
    return Beginnings(frozenset(whole), tuple(first), tuple(of_one_line))


def _alternatives(pattern: str) -> list[str] | None:
    """Split `^(a|b)c` and `^ac|^bc` into what follows the beginning, None if it is neither."""
    group = _GROUP.fullmatch(pattern)
    if group is None:
        alternatives = pattern.split("|")
        is_one = all(each.startswith("^") for each in alternatives)
        return [each[1:] for each in alternatives] if is_one else None
    heads, tail = group[1].split("|"), group[2]
    if "|" in tail:  # it belongs to the last alternative alone
        return None
    # What already ends, in `.*`, `$` or a backslash, takes no more text.
    if tail and not all(_ALTERNATIVE.fullmatch(head + "x") for head in heads):
        return None
    return [head + tail for head in heads]
