"""Codes of each command that scripts have shown, and the codes that could be shown.

`GIVEN` says what a single node can be made to answer, `ELSEWHERE` what it cannot, with the reason
and the tests that show it on Hutch alone. Every other pair is one that RabbitMQ's handler of that
command has no branch for. What scripts show is read off RabbitMQ's answers, never stated by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from compat.comparison import Played
from compat.differential.normal import NAMES
from compat.differential.script import Script

Pair = tuple[str, int]
UNKNOWN_FRAME = 13
FRAME_TOO_LARGE = 14
CLOSE = "close"

# Codes of the answer, or of the frame itself where the server speaks unasked. A publish is answered
# by confirms (1) and PublishErrors. 13 is the server's Close after a frame of that command which is
# malformed or in an unknown version.
GIVEN: Mapping[str, tuple[int, ...]] = {
    "declare_publisher": (1, 2, 13, 16, 17),
    "publish": (1, 13, 17, 18),
    "query_publisher_sequence": (1, 2, 13, 16),
    "delete_publisher": (1, 13, 18),
    "subscribe": (1, 2, 3, 13, 16, 17),
    "credit": (4, 13, 17),
    "store_offset": (13,),
    "query_offset": (1, 2, 13, 16, 19),
    "unsubscribe": (1, 4, 13),
    "create_stream": (1, 5, 13, 16, 17),
    "delete_stream": (1, 2, 13, 16),
    "metadata": (1, 2, 13, 16),
    "metadata_update": (6, 13),
    "peer_properties": (1, 13),
    "sasl_handshake": (1, 13),
    "sasl_authenticate": (1, 7, 8, 9, 12, 20, 21),
    "open": (1, 12, 13),
    "close": (1, 13, 14),
    "heartbeat": (13,),
    "route": (1, 2, 13, 16),
    "partitions": (1, 2, 13, 16),
    "consumer_update": (13,),
    "exchange_command_versions": (1, 13),
    "stream_stats": (1, 2, 13, 16),
    "create_super_stream": (1, 5, 13, 15, 16, 17),
    "delete_super_stream": (1, 2, 13, 16),
    "resolve_offset_spec": (1, 2, 13, 16),
    # What only a server says, said by a client.
    "publish_confirm": (13,),
    "publish_error": (13,),
    "deliver": (13,),
    "tune": (13,),
}


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A pair that one node cannot be made to give.

    Attributes:
        command: Its name.
        code: The code.
        reason: Why.
        test: What shows it on Hutch alone, as path::name.
    """

    command: str
    code: int
    reason: str
    test: str


FAILURES = "tests/unit/gateway/stream/test_codes_of_failures.py"
CANNOT_OPEN = f"{FAILURES}::test_a_stream_that_cannot_be_opened_is_not_available"
NO_MEMBER = (
    "the one member of a stream on one node is there as long as the node is, but for the moment of "
    "its deletion"
)

ELSEWHERE: tuple[Elsewhere, ...] = (
    *(
        Elsewhere(command, 6, NO_MEMBER, CANNOT_OPEN)
        for command in ("declare_publisher", "subscribe", "stream_stats", "resolve_offset_spec")
    ),
    Elsewhere(
        "query_offset",
        6,
        NO_MEMBER,
        f"{FAILURES}::test_an_offset_that_the_store_cannot_read_is_not_available",
    ),
    Elsewhere(
        "query_publisher_sequence",
        6,
        "RabbitMQ has no such answer here, and cuts the connection off",
        CANNOT_OPEN,
    ),
    Elsewhere(
        "metadata",
        6,
        "it is for streams whose nodes do not answer; Hutch is the one node, and describes the "
        "stream, so that clients come and are told by the other commands",
        f"{FAILURES}::test_a_stream_that_cannot_be_opened_is_still_described",
    ),
    Elsewhere(
        "create_stream",
        15,
        "no stream can be started without free disk, files or memory",
        "tests/unit/gateway/broker/streams/test_streams.py"
        "::test_a_creation_that_the_store_refuses_leaves_nothing",
    ),
    Elsewhere(
        "delete_stream",
        15,
        "RabbitMQ has no such answer; Hutch says when its store refused to remove the data",
        "tests/unit/gateway/broker/streams/test_streams.py::test_a_deletion_that_the_store_refuses_is_told_"
        "and_finished_by_the_next_creation",
    ),
    Elsewhere(
        "resolve_offset_spec",
        19,
        "the segment files would have to be damaged under a running broker",
        f"{FAILURES}::test_a_place_that_cannot_be_found_has_no_offset",
    ),
    Elsewhere(
        "sasl_authenticate",
        10,
        "it needs a mechanism of several steps, which neither server offers",
        f"{FAILURES}::test_no_mechanism_on_offer_asks_back",
    ),
    Elsewhere(
        "sasl_authenticate",
        11,
        "only the configuration file says who is bound to the node's own machine, and the "
        "reference broker lets all users in from everywhere",
        "tests/unit/gateway/stream/handlers/test_handshake.py"
        "::test_guest_comes_from_this_machine_only",
    ),
)

_ANSWER = re.compile(r"^(\w+)(?: answer)?(?: v\d+)? (?:corr \d+ )?code (\d+)")
_REFUSED = re.compile(r"'\d+: (\d+)'")
_DESCRIBED = re.compile(r" code (\d+) leader ")
COMMANDS = frozenset(NAMES.values())


def pairs_of(line: str, sent: str) -> Iterator[Pair]:
    """Yield the pairs that a line of an answer shows.

    Args:
        line: As `normal.words` writes it.
        sent: The command that the step sent, empty if it sent none.
    """
    if line.startswith("confirmed by publisher"):
        yield "publish", 1
    elif line.startswith("publish_error "):
        yield from (("publish", int(code)) for code in _REFUSED.findall(line))
    elif line.startswith("metadata answer "):
        yield from (("metadata", int(code)) for code in _DESCRIBED.findall(line))
    elif (found := _ANSWER.match(line)) is not None:
        name, code = found[1], int(found[2])
        if name in COMMANDS:
            yield name, code
        if line.startswith(CLOSE + " corr") and code == UNKNOWN_FRAME and sent in COMMANDS:
            yield sent, code


def shown(played: Mapping[str, Sequence[Played]]) -> dict[Pair, list[str]]:
    """Return the pairs that answers show, each with the scripts that show it, in order."""
    found: dict[Pair, dict[str, None]] = {}
    for script, steps in played.items():
        for step in steps:
            words = step.title.split(" ", 2)
            sent = words[1] if len(words) > 1 else ""
            for line in step.lines:
                for pair in pairs_of(line, sent):
                    found.setdefault(pair, {})[script] = None
    return {pair: list(scripts) for pair, scripts in found.items()}


def given() -> set[Pair]:
    """Return every pair that a node can be made to give."""
    return {(command, code) for command, codes in GIVEN.items() for code in codes}


def missing(found: Iterable[Pair]) -> list[Pair]:
    """Return what a node could give but no script showed."""
    return sorted(given() - set(found))


def unlisted(found: Iterable[Pair]) -> list[Pair]:
    """Return the codes that scripts showed but that are not listed."""
    return sorted(set(found) - given())


def document(found: Mapping[Pair, Sequence[str]], scripts: Sequence[Script]) -> str:
    """Return the page that lists what is shown, and by what.

    Args:
        found: What RabbitMQ's answers showed.
        scripts: All that were played.
    """
    exchanges = sum(one.exchange_count for one in scripts)
    lines = [
        "# What the comparison with RabbitMQ shows",
        "",
        "Written by `python -m compat.differential --coverage`, from what RabbitMQ 4.3 answered. A",
        "test fails when a script is gone, when RabbitMQ no longer gives a code, or gives one that",
        "is not listed.",
        "",
        f"{len(scripts)} scripts, {exchanges} exchanges, {len(given())} pairs of a command and a",
        f"code; {len(ELSEWHERE)} more pairs that one node cannot be made to give. To every other",
        "pair of the 31 commands and 21 codes no branch of RabbitMQ's leads.",
        "",
        "A publish is answered by confirms (1) and PublishErrors; 13 is the server's Close after a",
        "malformed frame of that command, or of an unknown version; 14 its Close after a",
        "frame above the limit, of whatever command.",
        "",
        "| command | code | scripts | one of them |",
        "|---|---|---|---|",
    ]
    for command, codes in GIVEN.items():
        for code in codes:
            by = found[command, code]
            lines.append(f"| {command} | {code} | {len(by)} | {quoted(best(by))} |")
    lines += [
        "",
        "## What one node cannot be made to give",
        "",
        "Each is shown on Hutch alone.",
        "",
        "| command | code | why | test |",
        "|---|---|---|---|",
    ]
    for one in ELSEWHERE:
        name = one.test.rpartition("::")[2]
        path = one.test.partition("::")[0]
        lines.append(f"| {one.command} | {one.code} | {one.reason} | [{name}](../{path}) |")
    return "\n".join([*lines, ""])


def best(scripts: Sequence[str]) -> str:
    """Return the script with the shortest name, which mostly is the simplest."""
    return min(scripts, key=lambda name: (len(name), name))


def quoted(name: str) -> str:
    """Return a name as it may stand in a table."""
    return name.replace("|", "\\|").replace("<", "&lt;")


def rows_of(page: str) -> list[list[str]]:
    """Return the cells of the page's table rows whose second is a code."""
    lines = (line for line in page.splitlines() if line.startswith("|"))
    rows = [re.split(r"(?<!\\) *\| *", line)[1:-1] for line in lines]
    return [row for row in rows if row[1].isdigit()]
