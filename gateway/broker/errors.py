"""Refusals of a broker, in words of streams; each protocol front has its own codes for them."""

from store.errors import StoreError


class BrokerError(Exception):
    """Base of what the broker refuses; the peer may go on."""


class StreamDoesNotExist(BrokerError):
    """No stream of that name."""


class StreamExists(BrokerError):
    """A stream of that name with the same arguments exists."""


class ExchangeDoesNotExist(BrokerError):
    """No exchange, and so no super stream, of that name."""


class ExchangeExists(BrokerError):
    """An exchange, and so perhaps a super stream, of that name exists."""


class StreamNotAvailable(BrokerError):
    """The stream exists but cannot be used now; the log says why."""


class PreconditionFailed(BrokerError):
    """The request breaks a rule; the message says which."""


class AccessRefused(BrokerError):
    """The user may not do it, or may not any more."""


class InternalError(BrokerError):
    """The server could not do it, and it is not the peer's fault."""


class StreamRestarted(StoreError):
    """A log was given up because an administrator wanted it opened anew; nothing is wrong."""
