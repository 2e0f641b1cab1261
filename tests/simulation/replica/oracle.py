"""The judge of the simulation: what the members have said, and what is there in the end.

Each term has a history of its own. All that was confirmed in it, and all that a reader was given,
has to be in what the next term begins with, at its place; so it is in what the last one begins
with. That is so for records, and for attributes and tables, which hold publishers' ids and stored
offsets.
"""

from dataclasses import dataclass, field
from itertools import pairwise

from store.replica.local_copy import LocalCopy, is_own
from store.replica.log import Entry
from store.replica.message import BEGINNING, Message, UnreadableMessage
from tests.conformance.harness import Rig
from tests.simulation.crash import Crash
from tests.simulation.disk import Disk, Image
from tests.simulation.history import SegmentState
from tests.simulation.trace import Trace

LATER = 10**12
"""A place behind all of a record."""


class Wrong(AssertionError):
    """A member has broken its word."""


@dataclass(frozen=True)
class Term:
    """The history of one term.

    Attributes:
        number: Of its fence.
        member: The active one.
        seen: What there was when it began.
        trace: What its clients did.
        rig: Its store.
    """

    number: int
    member: str
    seen: dict[str, SegmentState | None]
    trace: Trace
    rig: Rig

    @property
    def confirmed(self) -> int:
        """How many operations were acknowledged."""
        return sum(each.is_acknowledged for each in self.trace.operations)


@dataclass
class Oracle:
    """All terms."""

    terms: list[Term] = field(default_factory=list)

    def check(self) -> None:
        """Demand that each term has begun with what was confirmed in the one before."""
        terms = sorted(self.terms, key=lambda term: term.number)
        numbers = [term.number for term in terms]
        if len({*numbers}) < len(numbers):
            raise Wrong(f"two members have served in the same term: {numbers}")
        for before, after in pairwise(terms):
            if before.rig.violations:
                raise Wrong(f"term {before.number}: {before.rig.violations[:3]}")
            try:
                expectation = before.trace.expectation()
                expectation.check(after.seen, LATER, Crash.KILL)
            except AssertionError as error:
                raise Wrong(
                    f"term {after.number} of {after.member} does not begin with what was confirmed"
                    f" in term {before.number} of {before.member}: {error}"
                ) from error


def need_chain(record: list[bytes]) -> None:
    """Demand that each message of a log follows the one before, and comes no earlier."""
    link, at_ms = BEGINNING, 0
    for data in record:
        try:
            link, message = link.after(data, Message.unpack(data).cluster)
        except UnreadableMessage as error:
            raise Wrong(f"the log is no chain: {error}") from error
        if message.at_ms < at_ms:
            raise Wrong(f"message {message.number} is of a time before that of the one before")
        at_ms = message.at_ms


def shared(image: Image) -> dict[str, bytes]:
    """Return the files that are the same on all members."""
    return {path: image.contents[inode] for path, inode in image.names.items() if not is_own(path)}


def need_equal(copies: list[tuple[LocalCopy, Disk]], last: Entry | None) -> bool:
    """Demand that copies are equal that have the last message; return whether they have it."""
    number = 0 if last is None else Message.unpack(last.data).number
    if any(copy.place.link.number != number for copy, _ in copies):
        return False
    first, second = (shared(disk.image()) for _, disk in copies)
    if first != second:
        other = sorted(path for path in {*first, *second} if first.get(path) != second.get(path))
        raise Wrong(f"the members differ at message {number}, the last one: {other}")
    if len({copy.place.link.hash for copy, _ in copies}) > 1:
        raise Wrong(f"the members have different messages {number}")
    return True
