"""Regular expressions on names, with a limit to the work of looking for one in a name.

RabbitMQ's semantics: a name matches if the pattern is found anywhere in it, byte by byte. Of
Perl's syntax there is no looking ahead or behind and no reference back to a group: these are what
can take for ever, and a pattern with one is refused when it is given. What is left means what it
means there, which `pattern_syntax` sees to.

What is left takes, at worst, a time that grows with the name times the compiled pattern. So the
pattern has a limit when it is compiled, and in a name that is too long for its pattern it is not
found: permission is refused, a policy does not apply. Patterns that only say how names begin take
no such work, and have neither limit.

Source: RabbitMQ, "Access Control", How Authorisation Works; RE2's syntax.
"""

import logging
from typing import Final

import re2

from gateway.broker.beginnings import beginnings
from gateway.broker.pattern_syntax import ForeignSyntax, to_re2

log = logging.getLogger(__name__)

PATTERN_BYTES_MAX: Final = 4 * 1024
PROGRAM_SIZE_MAX: Final = 1_024
"""Instructions of a compiled pattern; one for each byte of text, three for each `.`."""
WORK_MAX: Final = 40_000
"""Longest name times instructions: 1 ms at worst, on names and patterns made for that. With 128
instructions, which is much, it is a name of 312 bytes."""
_MEMORY_BYTES: Final = 2 * 1024 * 1024
"""What a compiled pattern may take, most of it for what it has learnt of names. With a fourth of
this some patterns of nested repetitions take longer, since they forget it again."""

_EVERYTHING: Final = frozenset(("", "^", ".*", "^.*", ".*$"))
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

    __slots__ = ("_beginnings", "_compiled", "_name_bytes_max", "_takes_all", "_was_said", "text")

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
            raise UnusablePattern(f"must not exceed {PATTERN_BYTES_MAX} bytes")
        self._takes_all = text in _EVERYTHING
        self._beginnings = beginnings(text)
        self._was_said = False
        if self._beginnings is not None:
            return
        try:
            self._compiled = re2.compile(to_re2(raw), _OPTIONS)
        except ForeignSyntax as error:
            raise UnusablePattern(f"{text[:80]!r} cannot be used: {error}") from None
        except re2.error as error:
            reason = error.args[0].decode("utf-8", "replace")
            raise UnusablePattern(f"{text[:80]!r} cannot be used: {reason}") from None
        size = self._compiled.programsize
        if size > PROGRAM_SIZE_MAX:
            raise UnusablePattern(
                f"{text[:80]!r} cannot be used: it is {size} instructions when compiled, where"
                f" {PROGRAM_SIZE_MAX} are allowed; large repetitions as .{{0,100}} make many"
            )
        self._name_bytes_max = WORK_MAX // size

    def matches(self, name: str) -> bool:
        """Tell whether the pattern is found in a name, which is not too long for it."""
        if self._takes_all:
            return True
        raw = name.encode("utf-8", "surrogateescape")
        if self._beginnings is not None:
            return self._beginnings.match(raw)
        if len(raw) > self._name_bytes_max:
            self._say(len(raw))
            return False
        return self._compiled.search(raw) is not None

    def _say(self, name_bytes: int) -> None:
        """Log, once, that a name was too long."""
        if self._was_said:
            return
        self._was_said = True
        log.info(
            "pattern not looked for in a long name pattern=%.80r name_bytes=%d at_most=%d",
            self.text,
            name_bytes,
            self._name_bytes_max,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"
