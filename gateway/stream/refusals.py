"""Refusals of a peer's requests: each becomes the reply's response code."""

from typing import Final

from gateway.broker import errors as broker
from hutch.stream.codes import ResponseCode


class Refusal(Exception):
    """Makes the reply carry this code, with its other fields empty."""

    def __init__(self, code: ResponseCode, reason: str = "") -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


_CODES: Final[dict[type[broker.BrokerError], ResponseCode]] = {
    broker.StreamDoesNotExist: ResponseCode.STREAM_DOES_NOT_EXIST,
    broker.StreamExists: ResponseCode.STREAM_ALREADY_EXISTS,
    broker.ExchangeDoesNotExist: ResponseCode.STREAM_DOES_NOT_EXIST,
    broker.ExchangeExists: ResponseCode.STREAM_ALREADY_EXISTS,
    broker.StreamNotAvailable: ResponseCode.STREAM_NOT_AVAILABLE,
    broker.PreconditionFailed: ResponseCode.PRECONDITION_FAILED,
    broker.AccessRefused: ResponseCode.ACCESS_REFUSED,
    broker.InternalError: ResponseCode.INTERNAL_ERROR,
    broker.Overdue: ResponseCode.STREAM_NOT_AVAILABLE,
}


_ABOUT_A_STREAM: Final[dict[type[broker.BrokerError], str]] = {
    broker.StreamDoesNotExist: "does not exist",
    broker.StreamNotAvailable: "is not available now; the server's log says why",
}
"""Words for errors whose text is the stream's name."""


def code_of(error: BaseException) -> ResponseCode | None:
    """Return the code that answers an error, None if it is no refusal."""
    if isinstance(error, Refusal):
        return error.code
    if isinstance(error, broker.BrokerError):
        return _CODES[type(error)]
    return None


def reason_of(refusal: BaseException) -> str:
    """Return the reason of an error that has a code: one line that names the refused thing."""
    if isinstance(refusal, Refusal):
        return refusal.reason
    for kind, words in _ABOUT_A_STREAM.items():
        if isinstance(refusal, kind):
            return f"stream {str(refusal)!r} {words}"
    return str(refusal)
