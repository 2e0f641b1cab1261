"""Refusals of a client's requests: each is answered with a number and words."""

from typing import Final

from gateway.broker import errors as broker
from gateway.log.damage.errors import LogError
from gateway.mewbase.wire.errors import Code
from store.errors import StoreError


class RequestRefusal(Exception):
    """Makes the answer carry this error."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


class LoginFailed(RequestRefusal):
    """Makes the answer carry this error, and ends the connection with it."""


_CODES: Final[dict[type[Exception], Code]] = {
    broker.StreamNotAvailable: Code.SERVER,
    broker.PreconditionFailed: Code.NOT_STORED,
    broker.AccessRefused: Code.NOT_AUTHORISED,
    broker.InternalError: Code.SERVER,
    StoreError: Code.SERVER,
    LogError: Code.SERVER,
}


def refusal_of(error: BaseException, *, is_storing: bool = False) -> RequestRefusal | None:
    """Return the refusal that an error is to a client; None if it is a fault of ours.

    Args:
        error: What went wrong.
        is_storing: Whether the request was to store events: a failure of the store means to its
            client that nothing is stored.
    """
    if isinstance(error, RequestRefusal):
        return error
    if isinstance(error, broker.StreamDoesNotExist):
        return no_channel(str(error))
    for kind, code in _CODES.items():
        if isinstance(error, kind):
            is_lost = is_storing and code is Code.SERVER
            reason = str(error) or "the server's log says why"
            return RequestRefusal(Code.NOT_STORED if is_lost else code, reason)
    return None


def no_channel(name: str) -> RequestRefusal:
    """Return the refusal of a channel that does not exist."""
    return RequestRefusal(Code.NO_CHANNEL, f"no such channel {name}")
