"""Scopes of Pravega's controller, which RabbitMQ's API has not."""

from collections.abc import Coroutine
from http import HTTPStatus
from typing import Any

from gateway.management.administration import OWNER
from gateway.management.errors import NotFound
from gateway.management.http.answers import Refused
from gateway.management.http.call import Answer, Call
from gateway.management.http.listing import listed
from gateway.management.scopes import Listing
from gateway.pending import Pending


async def list_scopes(call: Call) -> Answer:
    """List the scopes of which the user may see something."""
    return await _listed(call, call.administration.scopes.scopes(_user(call)))


async def list_streams(call: Call) -> Answer:
    """List the streams of a scope."""
    return await _listed(call, call.administration.scopes.streams(_user(call), call.path["scope"]))


async def list_reader_groups(call: Call) -> Answer:
    """List the groups of readers of a scope."""
    scopes, scope = call.administration.scopes, call.path["scope"]
    return await _listed(call, scopes.reader_groups(_user(call), scope))


async def list_tables(call: Call) -> Answer:
    """List the tables of keys and values of a scope."""
    return await _listed(call, call.administration.scopes.tables(_user(call), call.path["scope"]))


def _user(call: Call) -> str | None:
    return None if call.actor is OWNER else call.actor.name


async def _listed(call: Call, asked: Coroutine[Pending[Any], None, Listing]) -> Answer:
    """Answer with a list. Raises Refused with the reason: no other answer of 404 has it."""
    try:
        things, view = await call.awaits(asked)
    except NotFound as error:
        raise Refused(HTTPStatus.NOT_FOUND, "Object Not Found", str(error)) from None
    return await listed(call, things, view)
