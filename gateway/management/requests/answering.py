"""Every request of administrators, and the one place that judges their rights."""

import dataclasses
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from gateway.broker.access.authorisation import refused
from gateway.broker.access.errors import (
    AccessError,
    NoSuchPermission,
    NoSuchUser,
    NoSuchVirtualHost,
    VirtualHostBusy,
    VirtualHostExists,
)
from gateway.broker.errors import (
    BrokerError,
    ExchangeDoesNotExist,
    ExchangeExists,
    InternalError,
    StreamDoesNotExist,
    StreamExists,
    StreamNotAvailable,
)
from gateway.broker.rules.arguments import InvalidArgument
from gateway.broker.rules.policies import NoSuchPolicy
from gateway.broker.service import ListenerBlocked
from gateway.management.administration import OWNER, Actor, Administration, Role
from gateway.management.errors import (
    AdministrationError,
    Conflict,
    Failed,
    NotAllowed,
    NotFound,
    WrongRequest,
)
from gateway.management.requests import (
    clients,
    definitions,
    exchanges,
    kinds,
    publishing,
    scopes,
    service,
    stages,
    streams,
    super_streams,
    users,
    virtual_hosts,
)
from gateway.management.requests.arguments import Arguments
from gateway.management.requests.row import Row
from store.errors import DiskFull, StoreError

log = logging.getLogger(__name__)

ROWS: Final[Mapping[str, Row]] = {
    row.name: row
    for module in (
        *(users, virtual_hosts, service, streams, clients, stages),
        *(super_streams, exchanges, definitions, publishing, scopes),
    )
    for row in vars(module).values()
    if isinstance(row, Row)
} | {row.name: row for requests in kinds.REQUESTS.values() for row in requests}

_LOGGED: Final = (
    *("name", "user", "virtual_host", "source", "destination"),
    *("peer", "number", "resource", "timeout_ms", "dry_run"),
)
"""Arguments that are logged: they name the object, and none can hold a secret."""

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
    (BrokerError, WrongRequest, "{}"),
    (ListenerBlocked, Failed, "{}"),
    (DiskFull, Failed, "the disk is full, and this takes space: {}"),
    (StoreError, Failed, "{}"),
)


async def answer(
    administration: Administration,
    actor: Actor,
    asked: str | Row,
    given: Mapping[str, Any],
    body: bytes = b"",
) -> object:
    """Carry out a request, which may be named, with its arguments and a body.

    The arguments of one that is not named may be objects of the broker's types.

    Returns:
        What JSON can hold.

    Raises:
        AdministrationError: It was refused, or failed; the message is for the administrator.
    """
    row = asked if isinstance(asked, Row) else ROWS.get(asked)
    if row is None:
        raise WrongRequest(f"there is no request {str(asked)[:100]!r}")
    actor.require(row.role, row.name)
    if body and not row.takes_body:
        raise WrongRequest(f"{row.name} takes no body")
    judge = partial(_demand, administration, actor, row, given)
    try:
        judge()
        result = await row.do(administration, Arguments(given, judge, body))
    except (AccessError, BrokerError, StoreError, ListenerBlocked) as error:
        raise translated(error) from error
    if row.role is Role.ADMINISTRATOR or row.needs is not None:
        line = "administration request=%s by=%r about=%r"
        told: list[object] = [row.name, actor.name or "owner", _about(given)]
        if row.tells:
            line += " answer=%r"
            told.append(result)
        log.info(line, *told)
    return result


def _about(given: Mapping[str, Any]) -> dict[str, object]:
    """Return what is logged of the arguments."""
    things = [each for each in given.values() if dataclasses.is_dataclass(each)]
    said = {name: getattr(each, name) for each in things for name in _LOGGED if hasattr(each, name)}
    said |= given
    return {name: said[name] for name in _LOGGED if name in said}


def _demand(
    administration: Administration, actor: Actor, row: Row, given: Mapping[str, Any]
) -> None:
    """Demand the rights that a request takes, of all but the owner. Raises NotAllowed."""
    if actor is OWNER:
        return
    if row.needs is None:  # the tag alone
        actor.now(administration.access).require(row.role, row.name)
        return
    virtual_host = Arguments(given).text("virtual_host", "/")
    administration.host(virtual_host)
    access = administration.access
    if not actor.may_see(virtual_host):  # as if there were none
        raise NotFound(f"there is no virtual host {virtual_host!r} for user {actor.name!r}")
    needs = row.demands(administration, Arguments(given))
    missing = refused(access, actor.name, virtual_host, needs)
    if missing is not None:
        raise NotAllowed(f"user {actor.name!r} has {missing} in virtual host {virtual_host!r}")


def translated(
    error: AccessError | BrokerError | StoreError | ListenerBlocked,
) -> AdministrationError:
    """Say an error of the broker in an administrator's words."""
    if isinstance(error.__cause__, InvalidArgument):  # whatever code the wire has for it
        return WrongRequest(str(error))
    kind, words = next((kind, words) for base, kind, words in _IN_WORDS if isinstance(error, base))
    return kind(words.format(error))
