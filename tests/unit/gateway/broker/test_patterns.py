import pytest

from gateway.broker.patterns import PATTERN_BYTES_MAX, Pattern, UnusablePattern


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
        ("^.*$", "two\nlines", True),
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
    Pattern("a" * PATTERN_BYTES_MAX)
    with pytest.raises(UnusablePattern, match="above 4096 bytes"):
        Pattern("a" * (PATTERN_BYTES_MAX + 1))
