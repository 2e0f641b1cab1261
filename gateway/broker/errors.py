"""Refusals of a broker: of requests about streams, and of administrators' changes.

Each protocol front has its own codes for the first; the second are sentences for administrators.
"""

from store.errors import StoreError


class BrokerError(Exception):
    """Base of the broker's refusals; the peer may go on."""


class StreamDoesNotExist(BrokerError):
    """No stream of that name."""


class StreamExists(BrokerError):
    """A stream of that name with equal arguments exists."""


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


class Overdue(BrokerError):
    """It takes too long: it may still be done; the message says why."""


class StreamRestarted(StoreError):
    """A log was given up because an administrator wanted it opened anew; nothing is wrong."""


class AccessError(Exception):
    """Base: nothing was changed, and the message says why."""


class NoSuchUser(AccessError):
    """There is no user of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no user {name!r}")


class NoSuchVirtualHost(AccessError):
    """There is no virtual host of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no virtual host {name!r}")


class NoSuchPermission(AccessError):
    """The user has no permissions in that virtual host."""

    def __init__(self, user: str, virtual_host: str) -> None:
        super().__init__(f"user {user!r} has no permissions in virtual host {virtual_host!r}")


class VirtualHostExists(AccessError):
    """There is a virtual host of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"virtual host {name!r} exists")


class VirtualHostBusy(AccessError):
    """It is being deleted, or its deletion has failed; it can be deleted again."""

    def __init__(self, name: str) -> None:
        super().__init__(f"virtual host {name!r} is being deleted")


class UnusableValue(AccessError):
    """A name, pattern or limit that cannot be used."""
