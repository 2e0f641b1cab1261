"""Streams of marks: each stream has one, in which the server says how far in time it is.

A reader opens it with its stream. It is no row of its own: it is there as long as its stream is,
and its segment is made when it is asked for. Clients read it as they may read the stream, and only
the server writes it.

Source: Pravega, whose clients ask for `_MARK<stream>`.
"""

from collections.abc import Callable
from typing import Final

from gateway.broker.access.model import Right
from gateway.pravega.controller.directory import Directory
from gateway.pravega.controller.epochs import History
from gateway.pravega.controller.history import evenly
from gateway.pravega.controller.model import Policy, State, Stream
from gateway.pravega.controller.names import MARK, marked
from gateway.pravega.controller.rights import Caller


def marks_of(stream: Stream) -> Stream:
    """Return the stream of a stream's marks."""
    return Stream(
        scope=stream.scope,
        name=MARK + stream.name,
        policy=Policy(),
        state=State.ACTIVE,
        history=History((evenly(1, stream.first_number, stream.history.epochs[0].at_ms),)),
    )


class Shown:
    """The names of a scope's streams and of their marks, in order."""

    def __init__(self, streams: Directory[Stream]) -> None:
        """Show the streams of a scope."""
        self._streams = streams

    def after(self, name: str) -> str | None:
        """Return the name that follows another, which need not be there; None at the end."""
        found = [self._streams.after(name), self._mark_after(name)]
        return min(filter(None, found), default=None)

    def _mark_after(self, name: str) -> str | None:
        if name >= MARK and not name.startswith(MARK):
            return None
        stream = self._streams.after(name.removeprefix(MARK) if name >= MARK else "")
        return None if stream is None else MARK + stream


class Reading:
    """A caller with its rights on marks: it reads them where it may read the stream."""

    def __init__(self, caller: Caller) -> None:
        """Take the rights of a caller."""
        self._may: Final[Callable[[Right, str, str], bool]] = caller.may
        self.name: Final = caller.name

    def may(self, right: Right, scope: str, stream: str) -> bool:
        """Return whether it has a right on a stream; on its scope if the stream is ''."""
        base = marked(stream)
        if base is None:
            return self._may(right, scope, stream)
        return right is Right.READ and self._may(right, scope, base)
