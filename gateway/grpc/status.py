"""Statuses with which calls end, and the service that answers them, as the front sees it.

Source: the gRPC project, "Status codes and their use in gRPC".
"""

import enum
from collections.abc import Coroutine
from typing import Any, Protocol

from gateway.pending import Pending


class CallStatus(enum.IntEnum):
    """The code of a call's end."""

    OK = 0
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


class CallRefused(Exception):
    """A call ends without an answer: its status, and one line for the caller."""

    def __init__(self, status: CallStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class CallService(Protocol):
    """The meaning of calls. Each of these raises CallRefused."""

    def request_bytes_max(self, path: str) -> int:
        """Return the size of the largest request of a call."""
        ...

    def let_in(self, authorization: str, host: str) -> Coroutine[Pending[Any], None, Any]:
        """Return the caller.

        Args:
            authorization: As the call brought it; empty if it did not.
            host: Where the call comes from.
        """
        ...

    def answer(
        self,
        path: str,
        caller: Any,  # noqa: ANN401  # what `let_in` gave
        request: bytes,
    ) -> Coroutine[Pending[Any], None, bytes]:
        """Return the answer to a request."""
        ...
