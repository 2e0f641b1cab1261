"""Scopes of Pravega's controller, which RabbitMQ's API has not."""

from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

from gateway.management.administration import OWNER
from gateway.management.errors import NotFound
from gateway.management.http.answers import ApiRefusal
from gateway.management.http.call import Answer, ApiCall
from gateway.management.http.listing import listed
from gateway.management.scopes import Listing, Scopes
from gateway.pending import Pending


async def list_scopes(call: ApiCall) -> Answer:
    """List the scopes of which the user may see something."""
    return await _listed(call, call.administration.scopes.scopes(_user(call)))


async def list_within(
    asked: Callable[[Scopes, str | None, str], Coroutine[Pending[Any], None, Listing]],
    call: ApiCall,
) -> Answer:
    """List what a method of `Scopes` finds in a scope."""
    return await _listed(call, asked(call.administration.scopes, _user(call), call.path["scope"]))


def _user(call: ApiCall) -> str | None:
    return None if call.actor is OWNER else call.actor.name


async def _listed(call: ApiCall, asked: Coroutine[Pending[Any], None, Listing]) -> Answer:
    """Answer with a list. Raises ApiRefusal with the reason: no other answer of 404 has it."""
    try:
        things, view = await call.awaits(asked)
    except NotFound as error:
        raise ApiRefusal(HTTPStatus.NOT_FOUND, "Object Not Found", str(error)) from None
    return await listed(call, things, view)
