"""Playing cases on one server."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from compat.comparison import Outcomes, Played
from compat.pravega.answers import Memory, merged, shown
from compat.pravega.case import TAG, Acked, Action, Answer, Case, Closed, Step
from compat.pravega.connection import Connection, Ended, Garbled
from hutch.pravega.codec import encode
from hutch.pravega.layout import WireMessage
from hutch.pravega.messages import DataAppended, ReadSegment, SegmentRead
from hutch.pravega.table_messages import (
    ReadTableEntries,
    ReadTableKeys,
    TableEntriesRead,
    TableKeysRead,
)

ANSWER_TIMEOUT_S: Final = 10.0
LINGER_S: Final = 0.03
"""Listened on for an answer too many."""
CLOSE_S: Final = 1.0
"""A close comes this soon behind an answer."""
PARALLEL: Final = 4
MISSING: Final = "(not all that was waited for came)"
UNREADABLE: Final = "(unreadable)"
CANNOT_SEND: Final = "(cannot be sent: the connection has ended)"
ReadRequest = ReadTableKeys | ReadTableEntries


def play_all(cases: Sequence[Case], address: tuple[str, int]) -> dict[str, list[Played]]:
    """Play cases, several at once; return what came, by name."""
    with ThreadPoolExecutor(PARALLEL) as pool:
        return {
            case.name: played
            for case, played in zip(
                cases, pool.map(lambda case: play(case, address), cases), strict=True
            )
        }


def play(case: Case, address: tuple[str, int]) -> list[Played]:
    """Play one case in names of its own; return what came at each step.

    Raises:
        OSError: There is no server.
    """
    stage = Stage(address, Memory(secrets.token_hex(len(TAG) // 2)))
    try:
        return [
            Played(number, title(step), step.label, tuple(stage.take(step)))
            for number, step in enumerate(case.steps, start=1)
        ]
    finally:
        stage.clear()


def surprises(cases: Sequence[Case], outcomes: Outcomes) -> list[str]:
    """Return the steps at which the real server answered other kinds than the case says."""
    found = []
    for case in cases:
        for step, played in zip(case.steps, outcomes[case.name], strict=True):
            kinds = [line.split()[0] for line in played.lines]
            wanted = sorted(step.kinds) if step.is_unordered else step.kinds
            is_short = MISSING in played.lines or CANNOT_SEND in played.lines
            is_other = step.action is Action.SEND and not step.is_loose and kinds != wanted
            if is_short or is_other:
                found.append(
                    f"{case.name}, step {played.number} ({played.title}): "
                    f"{', '.join(wanted) or 'nothing'} expected, {list(played.lines)} came"
                )
    return found


class Stage:
    """Connections and memory of one case while it is played."""

    def __init__(self, address: tuple[str, int], memory: Memory) -> None:
        self.address = address
        self.memory = memory
        self.connections: dict[str, Connection] = {}

    def clear(self) -> None:
        """Close the connections."""
        for connection in self.connections.values():
            connection.close()

    def take(self, step: Step) -> list[str]:
        """Do one step; return the answers in words."""
        if step.connection not in self.connections:
            self.connections[step.connection] = Connection(self.address)
        connection = self.connections[step.connection]
        if step.action is Action.DROP:
            del self.connections[step.connection]
            connection.close()
            return []
        if connection.has_ended:
            return [CANNOT_SEND]
        if step.action is Action.WALK:
            return self._walk(connection, step.sends[0])
        if step.action is Action.READ:
            return self._read(connection, step.sends[0], step.until)
        connection.send(b"".join(map(self.frame, step.sends)))
        found, end = collect(connection, step.gives)
        if any(isinstance(answer, Acked) for answer in step.gives):
            found = merged(found)
        if step.is_loose:
            found = [message for message in found if isinstance(message, DataAppended)]
            end = end if Closed in step.gives else []
        lines = [*map(self.memory.words, found), *end]
        return sorted(lines) if step.is_unordered else lines

    def frame(self, sent: WireMessage | bytes) -> bytes:
        """Return the bytes of a message to send."""
        if isinstance(sent, bytes):
            return sent.replace(TAG.encode(), self.memory.tag.encode())
        filled = self.memory.filled(sent)
        assert isinstance(filled, WireMessage)
        return encode(filled)

    def _walk(self, connection: Connection, request: object) -> list[str]:
        """Iterate to the end; return all items, sorted."""
        assert isinstance(request, ReadRequest)
        items: list[str] = []
        while True:
            connection.send(self.frame(request))
            found, end = collect(connection, (TableKeysRead,))
            match found:
                case [TableKeysRead() | TableEntriesRead() as page] if not end:
                    pass
                case _:
                    return [*sorted(items), *map(self.memory.words, found), *end]
            # One page that says that it is the end has no items.
            parts = page.keys if isinstance(page, TableKeysRead) else page.entries
            if not parts:
                return [f"{len(items)} items", *sorted(items)]
            items.extend(self.memory.words_of(part) for part in parts)
            request = dataclasses.replace(request, continuation=page.continuation)

    def _read(self, connection: Connection, request: object, until: int) -> list[str]:
        """Read to an offset; return what was read."""
        assert isinstance(request, ReadSegment)
        offset, digest, longest = request.offset, hashlib.sha256(), 0
        while offset < until:
            connection.send(self.frame(dataclasses.replace(request, offset=offset)))
            found, end = collect(connection, (SegmentRead,))
            match found:
                case [SegmentRead(data=data)] if data and not end:
                    digest.update(data)
                    offset += len(data)
                    longest = max(longest, len(data))
                case _:
                    return [*map(self.memory.words, found), *end]
        too_long = longest > request.suggested_length
        return [f"to {offset}: {digest.hexdigest()[:12]}{', too long at once' * too_long}"]


def collect(
    connection: Connection, wanted: Sequence[Answer]
) -> tuple[list[WireMessage], list[str]]:
    """Take in answers until what is wanted is there, and a little longer.

    Returns:
        The messages, and how it ended otherwise than by the last message, in words.
    """
    found: list[WireMessage] = []
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    is_complete = False
    while True:
        if not is_complete and suffices(found, wanted):
            is_complete, deadline = True, time.monotonic() + LINGER_S
        try:
            message = connection.message(deadline)
        except Ended:
            return found, [Closed.__name__]
        except Garbled as error:
            connection.close()
            return found, [f"{UNREADABLE} {error}"]
        if message is None:
            return found, [] if is_complete else [MISSING]
        found.append(message)
        if Closed in wanted and len(found) >= len(wanted) - 1:
            deadline = time.monotonic() + CLOSE_S


def suffices(found: Sequence[WireMessage], wanted: Sequence[Answer]) -> bool:
    """Return whether everything that a step waits for has come; a close comes by itself."""
    if Closed in wanted:
        return False
    acked = [answer for answer in wanted if isinstance(answer, Acked)]
    highest = {
        message.writer_id: message.event_number
        for message in found
        if isinstance(message, DataAppended)
    }
    others = sum(not (acked and isinstance(message, DataAppended)) for message in found)
    return others >= len(wanted) - len(acked) and all(
        highest.get(answer.writer, answer.number - 1) >= answer.number for answer in acked
    )


def title(step: Step) -> str:
    """Return a step in a few words, for reports."""
    names = [shown(sent) if isinstance(sent, bytes) else type(sent).__name__ for sent in step.sends]
    return " ".join([step.connection, step.action.value, *names])
