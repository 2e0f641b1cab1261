"""Regular expressions on names, in a time that grows with the name and with nothing else.

RabbitMQ's semantics: a name matches if the pattern is found anywhere in it, byte by byte. Of
Perl's syntax there is no looking ahead or behind and no reference back to a group: these are what
can take for ever, and a pattern with one is refused when it is given.

Source: RabbitMQ, "Access Control", How Authorisation Works; RE2's syntax.
"""

from typing import Final

import re2

PATTERN_BYTES_MAX: Final = 4 * 1024
_MEMORY_BYTES: Final = 8 * 1024 * 1024
"""What a compiled pattern may take, most of it for what it has learnt of names: with a fourth of
this some patterns of nested repetitions took milliseconds a name, since they forgot it again."""

_EVERYTHING: Final = frozenset((".*", "^.*", ".*$", "^.*$"))
"""The patterns that almost everybody has; every name matches, and nobody need look."""

_OPTIONS: Final = re2.Options()
_OPTIONS.encoding = re2.Options.Encoding.LATIN1  # bytes
_OPTIONS.log_errors = False
_OPTIONS.max_mem = _MEMORY_BYTES
_OPTIONS.never_capture = True


class UnusablePattern(ValueError):
    """A pattern that cannot be used; the message says why."""


class Pattern:
    """A compiled pattern. Two are equal if their texts are."""

    __slots__ = ("_compiled", "_takes_all", "text")

    def __init__(self, text: str) -> None:
        """Compile a pattern.

        Args:
            text: At most 4 KiB in UTF-8.

        Raises:
            UnusablePattern: It is too long, too large when compiled, or not RE2's syntax.
        """
        self.text = text
        raw = text.encode("utf-8", "surrogateescape")
        if len(raw) > PATTERN_BYTES_MAX:
            raise UnusablePattern(f"is above {PATTERN_BYTES_MAX} bytes")
        try:
            self._compiled = re2.compile(raw, _OPTIONS)
        except re2.error as error:
            reason = error.args[0].decode("utf-8", "replace")
            raise UnusablePattern(f"{text[:80]!r} cannot be used: {reason}") from None
        self._takes_all = text in _EVERYTHING

    def matches(self, name: str) -> bool:
        """Tell whether the pattern is found in a name."""
        if self._takes_all:
            return True
        return self._compiled.search(name.encode("utf-8", "surrogateescape")) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"
