"""Every request of administrators by its name."""

from collections.abc import Mapping
from typing import Any, Final

from gateway.management.administration import Actor, Administration
from gateway.management.errors import WrongRequest
from gateway.management.requests import (
    clients,
    definitions,
    publishing,
    scopes,
    service,
    streams,
    topology,
    users,
    virtual_hosts,
)
from gateway.management.requests.request import REQUESTS, AdminRequest

ROWS: Final[Mapping[str, AdminRequest]] = {
    row.name: row
    for module in (
        *(users, virtual_hosts, service, streams, clients),
        *(topology, definitions, publishing, scopes),
    )
    for row in vars(module).values()
    if isinstance(row, AdminRequest)
} | {row.name: row for requests in REQUESTS.values() for row in requests}


async def answer(
    administration: Administration,
    actor: Actor,
    name: str,
    given: Mapping[str, Any],
    body: bytes = b"",
) -> object:
    """Carry out the request of a name. As `AdminRequest.answer`."""
    row = ROWS.get(name)
    if row is None:
        raise WrongRequest(f"there is no request {name[:100]!r}")
    return await row.answer(administration, actor, given, body)
