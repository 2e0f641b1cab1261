"""Patterns that take PCRE2 for ever without a limit, and patterns by chance, on any names."""

import random
import re
from typing import Final

import pcre2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pcre2 import _cy

from compat.differential.patterns import drawn
from gateway.broker import patterns
from gateway.broker.patterns import STEPS_MAX, Pattern, UnusablePattern

AUTO_CALLOUT: Final = 0x4
ALT_BSUX: Final = 0x2
COUNT: Final = 100
PIECES_MAX: Final = 100_000

# Each is a catastrophe for an engine that goes back: exponential, or a high power of the size.
CATASTROPHES: Final = (
    "(a+)+$",
    "(a*)*b",
    "(a|a)*$",
    "(a|aa)+$",
    "(.*a){12}$",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(x+x+)+y",
    "^(a?){30}a{30}$",
    "(.*)(.*)(.*)(.*)(.*)[^a]$",
    "([a-zA-Z]+)*$",
    "^(\\w+\\s?)*$",
    "(a{1,10}){1,30}b",
    "^((ab)*)+$",
    "(.+)+\\d{9}z",
)

# What has many ways to go on at each place of a name.
NESTS: Final = (
    "(?i)(.{0,9}\\w{0,9}){4}z",
    "(?i)(.{0,9}\\w{0,9}){15}z",
    "(.{0,5}a){5}z",
    "(.{0,18}a){18}",
    ".{0,150}.{0,150}z",
    "((a|b){0,20}){20}",
    "(a?){330}a{330}$",
    "(\\w?\\W?.?){60}",
    "([^a]?[^b]?[^c]?){40}z",
    "[ab]*a.{330}z",
    "(.|..|...|....|.....|......){20}z",
    "(?:a|a){12}[zy]",  # few thousand steps, again at each place
)
NAMES: Final = (
    "a" * 30 + "!",
    "a" * 255,
    "ab" * 127,
    "x" * 254 + "z",
    "\u00e9" * 127,
    "".join(random.Random(1).choices("abcxyz019-_.", k=255)),
)


def generated(count: int) -> list[str]:
    """Patterns by chance, from a seed: nested, repeated, some as long as may be."""
    chance = random.Random(60)
    atoms = ("a", "b", ".", r"\w", r"\d", "[a-z]", "[^x]", "orders", "-", r"\.", "(?i:Q)")
    endings = ("", "", "", "*", "+", "?", "{2}", "{1,5}", "{0,20}", "+?", "*?")
    texts = [*CATASTROPHES, *NESTS, ".*" * 500, "(a|b)" * 200, "a?" * 500, "[ab]+" * 200]
    while len(texts) < count:
        pattern = "".join(chance.choice(atoms) for _ in range(chance.randint(1, 8)))
        for _ in range(chance.randint(0, 4)):
            other = chance.choice(atoms) + chance.choice(endings)
            pattern = f"({pattern}{chance.choice(('', '|'))}{other}){chance.choice(endings)}"
        anchored = chance.choice(("{}", "^{}", "{}$", "^{}$"))
        texts.append(anchored.format(pattern))
    return texts


def visited(text: str, name: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many pieces of a pattern PCRE2 tries in one search: it calls before each."""
    count = 0

    def tried(_: object) -> int:
        nonlocal count
        count += 1
        return 0

    monkeypatch.setattr(patterns, "_CONTEXT", _cy.create_match_context(tried))
    Pattern(text).matches(name)
    return count


def test_no_search_tries_more_pieces_than_the_limit_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Were the steps counted anew at each of 255 places, some would try a million pieces."""
    monkeypatch.setattr(patterns, "_compiled", lambda raw: _cy.compile(raw, AUTO_CALLOUT, ALT_BSUX))
    tried = [
        visited(text, name, monkeypatch)
        for text in generated(COUNT)
        for name in ("a" * 255, "ab" * 100 + "-", NAMES[-1])
    ]
    assert max(tried) < PIECES_MAX
    assert sum(count > STEPS_MAX for count in tried) > len(CATASTROPHES)


def test_a_pattern_means_in_brackets_what_it_means_alone() -> None:
    """What is given up is no match; everything else is what one search of PCRE2 alone says."""
    found = given_up = 0
    for case in drawn(3_000, seed=64):
        text = case.pattern.decode("utf-8", "surrogateescape")
        try:
            pattern = Pattern(text)
        except UnusablePattern:
            continue
        alone = _cy.compile(case.pattern, 0, ALT_BSUX)
        for name in case.names:
            try:
                is_found = _cy.match(alone, name, len(name), 0, patterns._CONTEXT)[0] is not None
            except pcre2.LibraryError:
                is_found = False
            if pattern.matches(name.decode("utf-8", "surrogateescape")):
                assert is_found, (text, name)
                found += 1
            else:
                given_up += is_found
    assert found > 2_000
    assert given_up < found / 500


@given(
    pattern=st.from_regex(r"\^?([ab.]|\[ab\]|a\*|b\+|\(a\|b\)){1,6}\$?", fullmatch=True),
    name=st.text("abc", max_size=12),
)
def test_simple_patterns_match_what_they_match_elsewhere(pattern: str, name: str) -> None:
    assert Pattern(pattern).matches(name) is (re.search(pattern, name) is not None)


@given(st.text(max_size=50), st.text(max_size=50))
def test_any_text_is_either_a_pattern_or_refused(pattern: str, name: str) -> None:
    try:
        compiled = Pattern(pattern)
    except UnusablePattern:
        return
    assert compiled.matches(name) in (True, False)
