"""Patterns drawn by chance with names to find them in, and RabbitMQ's answers.

RabbitMQ is asked by `rabbitmqctl eval` for what its permissions and policies ask themselves:
`rabbit_re:compile`, then `rabbit_re:run`. A thousand patterns go in one call, so that ten thousand
take some seconds. Questions travel in Erlang's external term format, packed.

Source: RabbitMQ, `rabbit_re` and `rabbit_auth_backend_internal`; Erlang, "External Term Format".
"""

from __future__ import annotations

import base64
import random
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_ATOMS: Final = (
    *("a", "b", "ab", "x", "orders", "-", "amq", "1", "9", "_", "\u00e9", "\0", "\n"),
    *(".", ".", r"\.", r"\w", r"\W", r"\d", r"\s", r"\S", r"\h", r"\N", r"\R", r"\X", r"\n"),
    *("[a-z]", "[^x]", "[[:alpha:]]", "[[:^digit:]_]", r"[\w.-]", r"[^\W\d]", "[]a]"),
    *(r"\x61", r"\x{62}", r"\141", r"\o{60}", r"\xe9", r"[\xe0-\xff]", r"\p{Ll}", r"\P{L}"),
    *(r"\Qa.b\E", r"\Q-", "(?i)", "(?-i)", "(?i:Q)", "(?s:.)", "(?x) a b #c\n", "(?#note)"),
)
_ASSERTIONS: Final = ("^", "$", r"\b", r"\B", r"\A", r"\z", r"\Z", r"\G", r"\K")
_REPETITIONS: Final = (
    *("", "", "", "", "", "*", "+", "?", "*?", "+?", "??", "*+", "++", "?+"),
    *("{2}", "{1,3}", "{,2}", "{0,9}", "{1,5}?", "{2,}+"),
)
_GROUPS: Final = (
    *("(", "(", "(", "(?:", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?|", "(?i:", "(?s:"),
    *("(?<n>", "(?'m'", "(?P<k>", "(*pla:", "(*nlb:"),
)
_REFERENCES: Final = (
    *(r"\1", r"\1", r"\2", r"\g{1}", r"\g{-1}", r"\k<n>", "(?P=k)", "(?1)", "(?R)", "(?&n)"),
    *(r"\g<1>", "(?(1)a|b)", "(?(<n>)a)", "(?(?=a)ab|b)"),
)
_VERBS: Final = (
    *("(*FAIL)", "(*ACCEPT)", "(*COMMIT)", "(*PRUNE)", "(*SKIP)", "(*THEN)"),
    *("(*UTF)", "(*UCP)", "(*ANYCRLF)", "(*NOTEMPTY)"),
)
_WRONG: Final = ("(", ")", "[", "]", "{", "*", "?", "\\", "(?", "\\q", "(*")
_ALONE: Final = (_ASSERTIONS, _VERBS, _WRONG)
_OTHERS: Final = (_ASSERTIONS, _REFERENCES, _VERBS, _WRONG)
_ONE_IN_TEN: Final = (*(False,) * 9, True)
_NAME_PARTS: Final = (
    *("a", "b", "ab", "orders", "-", ".", "amq.", "x", "1", "9", "_", "A", "Q", "K"),
    *("\u00e9", "\u00c9", "\n", "\r\n", " ", "\t", "\0"),
)
_DEPTH_MAX: Final = 4
_NAMES: Final = 300
_QUESTION_BYTES_MAX: Final = 100_000
"""Bytes of one call: Linux takes 128 KiB for a word of a command."""
_ASK: Final = """
    Run = fun(P, N) ->
        case rabbit_re:run(N, P) of match -> $1; _ -> $0 end
    end,
    Judge = fun([P | Ns]) ->
        case rabbit_re:compile(binary_to_list(P)) of
            {ok, _} -> [Run(P, N) || N <- Ns];
            _ -> "x"
        end
    end,
    list_to_binary([[Judge(Row), $,] || Row <- binary_to_term(base64:decode(<<"%s">>))]).
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A pattern, and names to find it in, in bytes."""

    pattern: bytes
    names: tuple[bytes, ...]


def drawn(count: int, seed: int) -> Iterator[Case]:
    """Draw patterns of all that PCRE2 has, about half of which it takes, each with 3 to 8 names.

    The names come from a few hundred, which makes a question small when it is packed.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    names = [_name(chance) for _ in range(_NAMES)]
    for _ in range(count):
        text = "|".join(_pattern(chance) for _ in range(chance.choice((1, 1, 2))))
        start, end = chance.choice(("", "^")), chance.choice(("", "", "$"))
        raw = f"{start}{text}{end}".encode()
        if chance.choice(_ONE_IN_TEN):
            raw = raw.replace(b"\xc3", b"")  # no UTF-8 any more
        yield Case(raw, tuple(chance.sample(names, chance.randint(3, 8))))


def _pattern(chance: random.Random, depth: int = 0) -> str:
    return "".join(_piece(chance, depth) for _ in range(chance.randint(1, 4)))


def _piece(chance: random.Random, depth: int) -> str:
    drawn_from = chance.choices((_ATOMS, _GROUPS, *_OTHERS), weights=(70, 16, 8, 4, 1, 1))[0]
    piece = chance.choice(drawn_from)
    if drawn_from is _GROUPS:
        if depth == _DEPTH_MAX:
            return _piece(chance, depth)
        inner = (_pattern(chance, depth + 1) for _ in range(chance.choice((1, 1, 2, 3))))
        piece = f"{piece}{'|'.join(inner)})"
    return piece if drawn_from in _ALONE else piece + chance.choice(_REPETITIONS)


def _name(chance: random.Random) -> bytes:
    name = "".join(chance.choices(_NAME_PARTS, k=chance.randint(0, 8))).encode()
    if chance.choice(_ONE_IN_TEN):
        name += bytes((chance.randrange(256),))
    return name


def answers(control: Callable[..., str], cases: Sequence[Case]) -> list[str]:
    """Return RabbitMQ's answers: for each case a 1 or 0 for each name, or `x`: no pattern.

    Args:
        control: Runs `rabbitmqctl` with those words, as that of a `RunningBroker`.
        cases: What is asked.

    Raises:
        OSError: RabbitMQ could not be asked, or did not answer each.
    """
    found: list[str] = []
    rest = list(cases)
    while rest:
        count = len(rest)
        while len(question := _question(rest[:count])) > _QUESTION_BYTES_MAX:
            count = count * 2 // 3
        printed = control("eval", _ASK % question)
        said = "".join(re.findall(r'"([^"]*)"', printed)).split(",")[:-1]
        if len(said) != count:
            raise OSError(f"RabbitMQ gave {len(said)} answers to {count} questions: {printed:.500}")
        found += said
        rest = rest[count:]
    return found


def _question(cases: Sequence[Case]) -> str:
    rows = [_list([_binary(one.pattern), *map(_binary, one.names)]) for one in cases]
    term = _list(rows)
    packed = b"\x83P" + struct.pack(">I", len(term)) + zlib.compress(term, 9)
    return base64.b64encode(packed).decode()


def _binary(value: bytes) -> bytes:
    return b"m" + struct.pack(">I", len(value)) + value


def _list(terms: Sequence[bytes]) -> bytes:
    return b"l" + struct.pack(">I", len(terms)) + b"".join(terms) + b"j"
