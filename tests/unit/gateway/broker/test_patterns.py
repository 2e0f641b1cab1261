import logging

import pytest

from gateway.broker import patterns
from gateway.broker.patterns import (
    PATTERN_BYTES_MAX,
    STEPS_MAX,
    Pattern,
    UnusablePattern,
    length_fault,
)
from gateway.logs import RateLimitedLog


@pytest.fixture
def said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> pytest.LogCaptureFixture:
    """Give what is logged, with a rate limit that nothing has used yet."""
    fresh = RateLimitedLog(patterns.log, patterns._given_up._message)
    monkeypatch.setattr(patterns, "_given_up", fresh)
    caplog.set_level(logging.WARNING)
    return caplog


def steps_taken(text: str, name: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the least limit with which a search is not given up. Matching counts, no clock."""

    class Ended(Exception):
        pass

    class GivenUp:
        def warning(self, *_: object) -> None:
            raise Ended

    monkeypatch.setattr(patterns, "_given_up", GivenUp())
    low, high = 0, STEPS_MAX * 100
    while low < high:
        middle = (low + high) // 2
        monkeypatch.setattr(patterns, "STEPS_MAX", middle)
        try:
            Pattern(text).matches(name)
            high = middle
        except Ended:
            low = middle + 1
    return low


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("", "anything", True),
        ("^$", "", True),
        ("^$", "a", False),
        ("b", "abc", True),
        ("^b", "abc", False),
        ("^(a|b)-[0-9]+$", "a-17", True),
        ("(?i)ABC", "abc", True),
        # Bytes, as RabbitMQ: one character of two bytes is two of them.
        ("^.$", "é", False),
        ("^..$", "é", True),
        ("é", "café", True),
        ("(?i)É", "é", False),
        (r"^\d$", "3", True),
        (r"\d", "٣", False),
        (".*", "\udcff", True),
        (r"^\xff$", "\udcff", True),
        ("^\udcff$", "\udcff", True),
        ("[^a]", "\udcff", True),
        ("^a\0b$", "a\0b", True),
        ("^a\0b$", "a\0c", False),
        (r"^a\0b$", "a\0b", True),
        ("^.*$", "two\nlines", False),
        (".*$", "two\nlines", True),
        ("a$", "a\n", True),
        (r"a\z", "a\n", False),
        ("(?m)^b$", "a\nb\nc", True),
    ],
)
def test_a_pattern_is_found_anywhere_in_the_bytes_of_a_name(
    pattern: str, name: str, *, matches: bool
) -> None:
    assert Pattern(pattern).matches(name) is matches


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        (r"^(?!amq\.).*", "orders", True),
        (r"^(?!amq\.).*", "amq.direct", False),
        (r"^(?!amq\.)(?!.*-dead$).*", "orders-dead", False),
        ("(?=.*eu)(?=.*orders)", "orders-eu", True),
        ("(?<!a)b", "ab", False),
        ("(?<=a)b", "ab", True),
        (r"(a|b)-\1", "x-b-b", True),
        (r"^(a|b)-\1$", "a-b", False),
        (r"(?<who>\w)(?P=who)", "abba", True),
        ("a++b", "aab", True),
        ("a++ab", "aab", False),
        ("(?>a|ab)c", "abc", False),
        (r"^\Qa.b\E$", "a.b", True),
        (r"^\Qa.b\E$", "axb", False),
        (r"\Q(", "a(b", True),  # a quotation without an end
        (r"\Q\ ".strip(), "a\\b", True),
        ("[[:upper:]]", "aB", True),
        ("^[]a]$", "]", True),
        (r"^\p{Lu}$", "A", True),
        (r"^a\R", "a\r\n", True),
        (r"^\X$", "a", True),
        ("(?x) a b  # a comment without an end", "ab", True),
        ("(?x)a#)", "a", True),
        (r"^a{,2}$", "aaa", False),
        (r"\x{62}", "ab", True),
        (r"^(\((?:a|(?1))*\))$", "(a(a))", True),
        (r"\((?:a|(?R))*\)", "-(a(a))", True),
        (r"\((?:a|\g<0>)*\)z", "-(a(a)", False),
        ("(?|(a)|(b))c\\1", "xbcb", True),
        ("a(*COMMIT)b|c", "ac", False),
        ("a(*SKIP)x|a", "a", False),
        ("(*UTF)^.$", "é", True),
        ("a|b", "xb", True),
        (r"\Gb", "ab", False),
        (r"a\Kb", "ab", True),
    ],
)
def test_a_pattern_means_what_it_means_in_rabbitmq(
    pattern: str, name: str, *, matches: bool
) -> None:
    assert Pattern(pattern).matches(name) is matches


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(", "missing closing parenthesis"),
        ("a)", "unmatched closing parenthesis"),
        ("a**", "does not follow a repeatable item"),
        ("[b", "missing terminating ]"),
        (r"\2(a)", "non-existent"),
        (r"(?<=a+)", "lookbehind"),
        (r"\C", "disabled"),
        ("a)|(b", "unmatched closing parenthesis"),
        ("((((a{100}){100}){100}){100})", "too large"),
        ("(*LIMIT_MATCH=99999999)a", "sets a limit"),
        ("(*UTF)(*LIMIT_MATCH=99999999)a", "sets a limit"),
        ("(*LIMIT_HEAP=99999999)a", "sets a limit"),
    ],
)
def test_what_pcre_refuses_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(UnusablePattern, match=f"cannot be used: .*({reason})"):
        Pattern(text)


@pytest.mark.parametrize("letter", ["a", "é"])
def test_a_pattern_has_at_most_1024_bytes(letter: str) -> None:
    size = len(letter.encode())
    for length in (1_022, 1_024):
        assert not length_fault(letter * (length // size))
    assert not length_fault("a" * 1_023)
    assert length_fault("a" + letter * (PATTERN_BYTES_MAX // size)) == "must not exceed 1024 bytes"


@pytest.mark.parametrize("text", ["(a+)+$", "(a|aa)+$", "(.*)*[^a]{3}$", "(?=(a+)+$)a"])
def test_a_pattern_that_takes_for_ever_is_given_up_and_that_is_logged(
    text: str, said: pytest.LogCaptureFixture
) -> None:
    pattern = Pattern(text)

    assert not pattern.matches("a" * 40 + "!a")

    assert len(said.messages) == 1
    assert "pattern given up" in said.messages[0]
    assert repr(text) in said.messages[0]
    assert "name_bytes=4" in said.messages[0]
    assert "match limit exceeded" in said.messages[0]


def test_the_log_says_no_more_than_a_line_in_ten_seconds(said: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        assert not Pattern("(a+)+$").matches("a" * 40 + "!")
    assert len(said.messages) == 1


def test_an_everyday_search_is_not_given_up(said: pytest.LogCaptureFixture) -> None:
    for text, name, matches in (
        (r"^(?!amq\.).*", "a" * 255, True),
        (r".*\.(eu|us)\..*-[0-9]+$", "orders.eu.customers-17", True),
        ("|".join(f"^team-{number}-" for number in range(80)), "team-79-" + "x" * 40, True),
        ("|".join(f"team-{number}-" for number in range(80)), "x" * 60, False),
        (r"^[A-Za-z0-9_.-]{1,255}$", "a" * 255, True),
        (r"(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "0" * 36, False),
    ):
        assert Pattern(text).matches(name) is matches
    assert said.messages == []


@pytest.mark.parametrize("pattern", ["", ".*", "^a", "^(b|a).*", "^(?:a|b)"])
def test_everyday_patterns_are_found_in_names_of_any_length(pattern: str) -> None:
    assert Pattern(pattern).matches("a" * 65_535)


def test_the_steps_of_a_search_are_counted_over_all_places_where_it_may_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each place takes as many steps as the group has letters: 30, were they counted anew."""
    pattern = "(?:a|b){30}c"

    at_few, at_many = (steps_taken(pattern, "b" * n + "xc", monkeypatch) for n in (60, 120))

    assert at_few > 30 * 30
    assert at_many > at_few + 60 * 30


def test_a_search_with_a_verb_shares_the_steps_among_the_places(
    said: pytest.LogCaptureFixture,
) -> None:
    """Of 10,000 steps and 128 places each has 78; without the verb the whole search has them."""
    name = "c" + "b" * 110 + "xc"

    assert not Pattern("(?:a|b){90}xc(*PRUNE)").matches(name)
    assert "match limit exceeded" in said.messages[0]
    assert Pattern("(?:a|b){90}xc").matches(name)
    assert Pattern("(?:a|b){90}xc(*ACCEPT)").matches(name)


def test_a_name_that_is_twice_as_long_has_half_the_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needed = {
        size: steps_taken("(?=[ab]{9})(?:a|b){40}x", "b" * 60 + "x" + "c" * size, monkeypatch)
        for size in (100, 300, 600)
    }
    assert needed[300] >= 2 * needed[100] - 2
    assert needed[600] >= 4 * needed[100] - 4


def test_references_to_groups_and_properties_of_bytes_take_more_of_the_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "b" * 50 + "x"
    plain = steps_taken("([ab])(?:a|b){40}x", name, monkeypatch)
    for costly in (r"(?:[ab]|\p{Nd}){0}([ab])(?:a|b){40}x", r"([ab])(?:a|b){40}x(?:\1)?"):
        assert steps_taken(costly, name, monkeypatch) >= 2 * plain - 2


def test_a_pattern_with_hundreds_of_groups_takes_little_memory(
    said: pytest.LogCaptureFixture,
) -> None:
    """Each step that may be taken back keeps all groups, here 6 KiB."""
    assert not Pattern("()" * 400 + "(?:a|aa)*[zy]").matches("a" * 200 + "z")
    assert "heap limit exceeded" in said.messages[0]


def test_a_recursion_without_end_is_no_match(said: pytest.LogCaptureFixture) -> None:
    assert not Pattern("(?R)").matches("a")
    assert "recursion" in said.messages[0]


def test_patterns_are_equal_if_their_texts_are() -> None:
    assert Pattern("^a") == Pattern("^a")
    assert len({Pattern("^a"), Pattern("^a"), Pattern("^b")}) == 2
    assert repr(Pattern("^a")) == "Pattern('^a')"
