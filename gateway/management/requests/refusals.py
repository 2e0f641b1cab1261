"""Errors of the broker and the store, in an administrator's words."""

from typing import Final

from gateway.broker.errors import (
    AccessError,
    BrokerError,
    ExchangeDoesNotExist,
    ExchangeExists,
    InternalError,
    NoSuchPermission,
    NoSuchUser,
    NoSuchVirtualHost,
    StreamDoesNotExist,
    StreamExists,
    StreamNotAvailable,
    VirtualHostBusy,
    VirtualHostExists,
)
from gateway.broker.errors import Overdue as BrokerOverdue
from gateway.broker.rules.arguments import InvalidStreamArgument
from gateway.broker.rules.policies import NoSuchPolicy
from gateway.broker.service import ListenerBlocked
from gateway.management.errors import (
    AdministrationError,
    Conflict,
    Failed,
    NotFound,
    Overdue,
    WrongRequest,
)
from store.errors import DiskFull, StoreError

_IN_WORDS: Final[tuple[tuple[type[Exception], type[AdministrationError], str], ...]] = (
    # the first that fits
    (StreamDoesNotExist, NotFound, "there is no stream '{}'"),
    (StreamExists, Conflict, "there is a stream '{}'"),
    (ExchangeDoesNotExist, NotFound, "there is no exchange '{}'"),
    (ExchangeExists, Conflict, "there is an exchange '{}'"),
    (StreamNotAvailable, Failed, "stream '{}' cannot be used now; the server's log says why"),
    (NoSuchUser, NotFound, "{}"),
    (NoSuchVirtualHost, NotFound, "{}"),
    (NoSuchPermission, NotFound, "{}"),
    (NoSuchPolicy, NotFound, "{}"),
    (VirtualHostExists, Conflict, "{}"),
    (VirtualHostBusy, Conflict, "{}"),
    (AccessError, WrongRequest, "{}"),
    (InternalError, Failed, "the store refused: {}"),
    (BrokerOverdue, Overdue, "{}"),
    (BrokerError, WrongRequest, "{}"),
    (ListenerBlocked, Failed, "{}"),
    (DiskFull, Failed, "the disk is full, and this takes space: {}"),
    (StoreError, Failed, "{}"),
)


def translated(
    error: AccessError | BrokerError | StoreError | ListenerBlocked,
) -> AdministrationError:
    """Say an error of the broker in an administrator's words."""
    if isinstance(error.__cause__, InvalidStreamArgument):  # whatever code the wire has for it
        return WrongRequest(str(error))
    kind, words = next((kind, words) for base, kind, words in _IN_WORDS if isinstance(error, base))
    return kind(words.format(error))
