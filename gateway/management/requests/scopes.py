"""Requests on the scopes of Pravega's controller."""

from gateway.management.administration import Administration, RequestTurns, Role
from gateway.management.requests.request import request
from gateway.management.scopes import Listing


@request(Role.MONITORING)
async def list_scopes(administration: Administration) -> object:
    """Return the scopes. Raises NotFound: there is no controller."""
    return await _rows(administration, await administration.scopes.scopes(None))


@request(Role.MONITORING)
async def list_scope_streams(administration: Administration, scope: str) -> object:
    """Return the streams of a scope. Raises NotFound."""
    return await _rows(administration, await administration.scopes.streams(None, scope))


@request(Role.MONITORING)
async def list_reader_groups(administration: Administration, scope: str) -> object:
    """Return the groups of readers of a scope. Raises NotFound."""
    return await _rows(administration, await administration.scopes.reader_groups(None, scope))


async def _rows(administration: Administration, listing: Listing) -> list[object]:
    things, shown = listing
    turns = RequestTurns(administration)
    rows: list[object] = []
    for thing in things:
        rows.append(shown(thing))
        await turns.give()
    return rows
