"""Perl's patterns mean what they mean in Perl, or are refused.

What is expected here was observed on RabbitMQ 4.3.
"""

import pytest
import re2

from gateway.broker.pattern_syntax import ForeignSyntax, to_re2
from gateway.broker.patterns import Pattern, UnusablePattern

NAMES = (
    "", "a", "ab", "aab", "b", "aaaa", "A B", "K", "a\n", "a\nb", "\n", "\x0b", "\x01", "a-b",
    "a{,3}b", "\udce9", "\udce3", "a\udc85", "b\udca0", "é",
)  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (r"^a{,2}$", ["", "a", "a\n", "\n"]),
        (r"a{,3}b", ["ab", "aab", "b", "a\nb", "a-b", "a{,3}b", "b\udca0"]),
        (r"^a{ 1,2 }b", ["ab", "aab"]),
        (r"^a{2, }b?$", ["aab", "aaaa"]),
        (r"^a{, 1}$", ["", "a", "a\n", "\n"]),
        (r"a{,}", []),
        (r"\v", ["a\n", "a\nb", "\n", "\x0b", "a\udc85"]),
        (r"\h", ["A B", "b\udca0"]),
        (r"\s", ["A B", "a\n", "a\nb", "\n", "\x0b"]),
        (r"^[^\s]+$", ["a", "ab", "aab", "b", "aaaa", "K", "a\n", "\x01", "a-b", "a{,3}b",
                       "\udce9", "\udce3", "a\udc85", "b\udca0", "é"]),
        (r"^\N$", ["a", "b", "a\n", "K", "\x0b", "\x01", "\udce9", "\udce3"]),
        (r"^a$", ["a", "a\n"]),
        (r"^a\Z", ["a", "a\n"]),
        (r"^a\z", ["a"]),
        (r"^(a|b)?$", ["", "a", "b", "a\n", "\n"]),
        (r"^(?:a$|b)", ["a", "a\n", "b", "b\udca0"]),
        (r"(?s)^.$", ["a", "b", "a\n", "K", "\n", "\x0b", "\x01", "\udce9", "\udce3"]),
        (r"^a.b", ["aab", "a-b"]),
        (r"(?s)^a.b", ["aab", "a-b", "a\nb"]),
        (r"\cA|\cK", ["\x0b", "\x01"]),
        (r"^\o{141}\x62|^\101\x{20}", ["ab", "A B"]),
        (r"(?#of letters)^a(?#once)b", ["ab"]),
        (r"^a\Kb", ["ab"]),
        (r"\G\Qa{,\E", ["a{,3}b"]),
        (r"(?<one>K)", ["K"]),
        (r"(?|K|A)", ["K", "A B"]),
        (r"^(?i:k|a)$", ["a", "a\n", "K"]),
        (r"^a(?-i)B|(?i)^a b", ["A B"]),
        # Without regard to case means the letters of ASCII.
        (r"(?i)\xc3\xa9|(?i)\xc3$", ["é"]),
        (r"^[a\-]b|[]x]", ["ab"]),
        (r"^[[:upper:][:cntrl:]]", ["A B", "K", "\n", "\x0b", "\x01"]),
        (r"^[[:^ascii:]]$", ["\udce9", "\udce3"]),
        (r"^\p{Ll}$", ["a", "b", "a\n", "\udce9", "\udce3"]),
        (r"^[^\x00-\xff]", []),
        (r"\é", ["é"]),
    ],
)  # fmt: skip
def test_a_pattern_is_found_where_rabbitmq_finds_it(pattern: str, names: list[str]) -> None:
    compiled = Pattern(pattern)

    assert [name for name in NAMES if compiled.matches(name)] == sorted(names, key=NAMES.index)


@pytest.mark.parametrize(
    "text",
    [
        # RabbitMQ refuses these too.
        r"[:alpha:]", r"[\d-z]", r"[a-\d]", r"[[:alpha:]-z]", r"[[.a.]]", r"[[=a=]]", r"[[:foo:]]",
        r"a**", r"a{2}{3}", r"{2}", r"^*a", r"a{2,1}", r"(a", r"a)", r"[a", r"[]", r"\x{100}",
        r"\400", r"\q", "\\", r"(?<n>a)(?<n>b)", r"\N{a}", r"\c", r"[z-a]", r"(?#", r"\o{8}",
        # These it takes.
        r"(?=a)", r"(?!a)", r"(?<=a)", r"(?<!a)", r"(?>a)", r"a++", r"a*+", r"a?+", r"a{2}+",
        r"(a)\1", r"\g1", r"(?P=n)", r"(?R)", r"(?1)", r"(?(1)a|b)", r"(?C)a", r"\R", r"\X",
        r"(?m)^a$", r"(?x)a b", r"(?a)\w", r"(*UTF)a", r"\p{Greek}", r"(?i)\p{Lu}",
        r"a{1001}", r"a{100000000000}", r"[[:<:]]a",
        # A `$` with more behind it.
        r"a$\n", r"a$b", r"(a$|b)c", r"(a$)+", r"$^", r"a$\z",
    ],
)  # fmt: skip
def test_what_cannot_be_said_exactly_is_refused(text: str) -> None:
    with pytest.raises(UnusablePattern, match="cannot be used: "):
        Pattern(text)


def test_each_refusal_says_what_it_is_about() -> None:
    for text, reason in (
        ("a++", "possessive"),
        ("(?m)^a", "many lines"),
        (r"(a)\1", "refers back"),
        ("a$b", "follows what says that the name ends"),
        ("[:alpha:]", "within brackets"),
    ):
        with pytest.raises(ForeignSyntax, match=reason):
            to_re2(text.encode())


def test_every_byte_stands_for_itself_when_it_is_written_as_a_number() -> None:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    every = [bytes((byte,)) for byte in range(256)]
    for byte in range(256):
        for pattern in (f"^\\x{byte:02x}\\z", f"^[\\x{byte:02x}]\\z", f"^\\o{{{byte:o}}}\\z"):
            compiled = re2.compile(to_re2(pattern.encode()), options)
            assert [name for name in every if compiled.search(name)] == [every[byte]], pattern
