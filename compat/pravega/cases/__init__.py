"""The cases, by theme."""

from __future__ import annotations

from typing import Final

from compat.pravega.case import Case, Closed, Step
from compat.pravega.cases import appends, attributes, connection, merges, reads, segments, tables
from gateway.pravega.handlers.table import HANDLERS
from store.wire.codec import HEAD, HEAD_BYTES
from store.wire.commands import BY_CODE
from store.wire.layout import Message
from store.wire.messages import (
    AppendBlock,
    AppendBlockEnd,
    ConditionalAppend,
    ConditionalBlockEnd,
)

KNOWN: Final = frozenset(HANDLERS) | {
    AppendBlock,
    AppendBlockEnd,
    ConditionalAppend,
    ConditionalBlockEnd,
}

CASES: Final[tuple[Case, ...]] = (
    *connection.CASES,
    *appends.CASES,
    *segments.CASES,
    *reads.CASES,
    *attributes.CASES,
    *merges.CASES,
    *tables.CASES,
)


def ready(case: Case) -> bool:
    """Tell whether Hutch has a handler for all that a case sends; until then it is left out."""
    return all(
        type(sent) in KNOWN if isinstance(sent, Message) else knows(sent, step)
        for step in case.steps
        for sent in step.sends
    )


def knows(sent: bytes, step: Step) -> bool:
    """Tell whether Hutch has a handler for bytes that are answered."""
    if Closed in step.gives or len(sent) < HEAD_BYTES:
        return True
    command = BY_CODE.get(HEAD.unpack_from(sent)[0])
    return command is None or command.message in KNOWN
