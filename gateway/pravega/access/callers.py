"""Callers of the controller, and their rights on streams."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from gateway.broker.access.model import Right
from gateway.pending import Pending


class StreamRights(Protocol):
    """Rights on streams."""

    def may(self, right: Right, scope: str, stream: str) -> bool:
        """Return whether there is a right on a stream; on its scope if the stream is ''."""
        ...


class Caller(StreamRights, Protocol):
    """A client that has made a call."""

    @property
    def name(self) -> str:
        """Name of its user; empty where there are no users."""
        ...


LogIn = Callable[[str, str], Coroutine[Pending[Any], None, Caller | None]]
"""From an `authorization`, '' if none was sent, and the peer's host to the caller.

None: it is not let in. Raises Busy.
"""


class Anyone:
    """Every client where there are no users: it may do everything."""

    name = ""

    def may(self, right: Right, scope: str, stream: str) -> bool:  # noqa: ARG002
        """Allow everything."""
        return True
