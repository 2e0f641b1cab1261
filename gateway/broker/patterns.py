r"""Regular expressions on names, as RabbitMQ reads them, with a limit to the work of one search.

A name matches if the pattern is found anywhere in it, byte by byte. RabbitMQ searches with PCRE2
and no options, and so does this module. RabbitMQ's limit of 50,000 steps counts anew at each place
where a match may begin, which allows a tenth of a second. Here the whole search has a limit, and a
pattern that reaches it is not found: a right is refused, a policy does not apply.

PCRE2 counts the whole search if it may begin at one place only. So a pattern is compiled as
`\A(?s:.*?)(?:pattern)`, which is found at the start of a name if the pattern is found in it. A few
patterns would mean something else in brackets; their places share the limit.

Source: RabbitMQ, "Access Control", How Authorisation Works; PCRE2, "pcre2pattern" and "pcre2api".
"""

import logging
import re
from contextlib import suppress
from typing import Any, Final

import pcre2
from pcre2 import _cy  # the package's own functions always set the option below

from gateway.logs import RateLimitedLog

log = logging.getLogger(__name__)

PATTERN_BYTES_MAX: Final = 1_024
"""Longest pattern, as in RabbitMQ."""
STEPS_MAX: Final = 10_000
"""Steps of a search in a name of up to 256 bytes. One step may look at all bytes that are left, so
a name of twice the size gets half as many."""
_SIZE_WITH_ALL: Final = 256
_SIZE_MIN: Final = 64
_HEAP_KIB_MAX: Final = 512
"""Memory for the steps of a search that may be taken back; many groups make each of them large."""

_ALT_BSUX: Final = 0x2
r"""JavaScript's `\u` and `\x`, which RabbitMQ does not have."""
_OWN_LIMIT: Final = re.compile(rb"(?:\(\*[^)]*\))*\(\*LIMIT_")
_NOT_IN_BRACKETS: Final = re.compile(rb"\(\*(?![a-z]|ACCEPT\)|F(?:AIL)?\))|\(\?[R0]|\\g[<'][+-]?0")
"""Verbs, which say what happens at the next place, and references to the whole pattern."""
_COSTLY: Final = re.compile(rb"\\[pPXgk]|\\[1-9](?![0-9])|\(\?P=")
"""Properties of bytes and references to groups; both take many times as long as comparing bytes."""
_CONTEXT: Final = _cy.create_match_context()
_given_up = RateLimitedLog(
    log, "pattern given up, which is no match pattern=%.80r name_bytes=%d why=%s"
)


class UnusablePattern(ValueError):
    """A pattern that cannot be used; the message says why."""


def length_fault(text: str) -> str:
    """Return the fault of a pattern that is too long, else nothing."""
    is_long = len(_raw(text)) > PATTERN_BYTES_MAX
    return f"must not exceed {PATTERN_BYTES_MAX} bytes" if is_long else ""


class Pattern:
    """A pattern. Two are equal if their texts are."""

    __slots__ = ("_codes", "text")

    def __init__(self, text: str) -> None:
        """Check a pattern.

        Args:
            text: Of any length: `length_fault` is asked where patterns come in.

        Raises:
            UnusablePattern: PCRE2 refuses it, or it sets limits itself.
        """
        self.text = text
        self._codes: dict[int, Any] = {}
        if _OWN_LIMIT.match(_raw(text)):  # it would replace ours
            raise UnusablePattern(f"{text[:80]!r} cannot be used: it sets a limit of PCRE2")
        try:
            _compiled(_raw(text))
        except pcre2.PatternError as error:
            raise UnusablePattern(f"{text[:80]!r} cannot be used: {error}") from None

    def matches(self, name: str) -> bool:
        """Return whether the pattern is found in a name before the limit is reached."""
        raw = _raw(name)
        size = max(_SIZE_MIN, 1 << (len(raw) - 1).bit_length())
        code = self._codes.get(size)
        if code is None:
            code = self._codes[size] = _limited(_raw(self.text), size)
        try:
            return _cy.match(code, raw, len(raw), 0, _CONTEXT)[0] is not None
        except pcre2.LibraryError as error:
            _given_up.warning(self.text, len(raw), error)
            return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _compiled(pattern: bytes) -> Any:  # noqa: ANN401 - the package has no types
    return _cy.compile(pattern, 0, _ALT_BSUX)


def _limited(pattern: bytes, size: int) -> Any:  # noqa: ANN401 - the package has no types
    """Compile a pattern for names of at most `size` bytes."""
    steps = STEPS_MAX * _SIZE_WITH_ALL // max(size, _SIZE_WITH_ALL)
    steps //= 1 + len(_COSTLY.findall(pattern))
    limits = b"(*LIMIT_HEAP=%d)(*LIMIT_MATCH=%d)"
    if not _NOT_IN_BRACKETS.search(pattern):
        head = limits % (_HEAP_KIB_MAX, steps) + rb"\A(?s:.*?)(?:"
        # What may still be open is a quotation, or a comment of `(?x)`, which ends with the line.
        for end in (rb"\E)", b"\\E\n)"):
            with suppress(pcre2.PatternError):
                return _compiled(head + pattern + end)
    return _compiled(limits % (_HEAP_KIB_MAX, steps // size) + pattern)
