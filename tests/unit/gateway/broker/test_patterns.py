import logging

import pytest

from gateway.broker.patterns import (
    PATTERN_BYTES_MAX,
    PROGRAM_SIZE_MAX,
    Pattern,
    UnusablePattern,
)


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
        (r"^\d$", "3", True),
        (r"\d", "٣", False),
        (".*", "\udcff", True),
        ("^.*$", "two\nlines", False),
        (".*$", "two\nlines", True),
        ("[^a]", "\udcff", True),
    ],
)
def test_a_pattern_is_found_anywhere_in_the_bytes_of_a_name(
    pattern: str, name: str, *, matches: bool
) -> None:
    assert Pattern(pattern).matches(name) is matches


@pytest.mark.parametrize("text", ["(", "a**", "[b", r"(a)\1", "(?=a)", "(?<!a)", "a{2000}", "(?P<"])
def test_what_is_no_pattern_here_is_refused_with_the_reason(text: str) -> None:
    with pytest.raises(UnusablePattern, match="cannot be used: "):
        Pattern(text)


def test_a_pattern_that_would_grow_without_end_is_refused() -> None:
    with pytest.raises(UnusablePattern):
        Pattern("((((a{100}){100}){100}){100})")


def test_a_pattern_has_at_most_four_kibibytes() -> None:
    Pattern("^" + "a" * (PATTERN_BYTES_MAX - 1))
    with pytest.raises(UnusablePattern, match="must not exceed 4096 bytes"):
        Pattern("^" + "a" * PATTERN_BYTES_MAX)


def test_a_pattern_that_is_large_when_compiled_is_refused_with_the_limit() -> None:
    Pattern(".{0,100}z")
    with pytest.raises(UnusablePattern, match=f"where {PROGRAM_SIZE_MAX} are allowed"):
        Pattern(".{0,1000}z")


def test_a_name_too_long_for_its_pattern_is_not_matched_and_that_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pattern = Pattern("(.{0,20}a){10}")
    assert pattern.matches("a" * 60)
    with caplog.at_level(logging.INFO):
        assert not pattern.matches("a" * 300)
        assert not pattern.matches("a" * 301)
    assert [record.getMessage() for record in caplog.records] == [
        "pattern not looked for in a long name pattern='(.{0,20}a){10}' name_bytes=300 at_most=65"
    ]


@pytest.mark.parametrize("pattern", ["", ".*", "^a", "^(b|a).*", "^(?:a|b)"])
def test_everyday_patterns_are_found_in_names_of_any_length(pattern: str) -> None:
    assert Pattern(pattern).matches("a" * 65_535)


@pytest.mark.parametrize(
    "text",
    [
        "^(orders|returns-.*|amq\\.gen.*)$",
        "^[A-Za-z0-9_.-]{1,64}$",
        "^([a-z]+\\.)*[a-z]+$",
        "(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
        "^(" + "|".join(f"orders-of-customer-{number}" for number in range(150)) + ")$",
        "^[^a].*-(in|out)$",
    ],
)
def test_what_people_write_is_taken(text: str) -> None:
    Pattern(text)
