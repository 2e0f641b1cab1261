"""Requests that are to be done only if something is there, or only if it is not.

Nothing has an entity tag here, as in RabbitMQ: one that a client names is never that of what is
there. So `If-Match` holds only as `*`, for what is there, and `If-None-Match` only for what is not.

Source: RFC 9110, section 13; RabbitMQ 4.3 as observed.
"""

from typing import Final

from starlette.datastructures import Headers

from gateway.broker.access.errors import AccessError
from gateway.broker.errors import BrokerError
from gateway.management.errors import NotFound
from gateway.management.http.call import Call
from gateway.management.http.routes import Endpoint
from gateway.management.requests.answering import translated

_CHANGES: Final = frozenset(("PUT", "POST", "DELETE"))


async def holds(method: str, headers: Headers, look: Endpoint | None, call: Call) -> bool:
    """Return whether a request's conditions hold; those that only read have none.

    Args:
        method: Of the request.
        headers: The same.
        look: GET on the same path; where there is none, and for POST, the path itself is what is
            there.
        call: The request.

    Raises:
        AdministrationError: The user may not see the object of the conditions.
    """
    matches, others = headers.get("if-match"), headers.get("if-none-match")
    if method not in _CHANGES or (matches is None and others is None):
        return True
    is_there = look is None or method == "POST" or await _finds(look, call)
    if matches is not None and not (is_there and matches.strip() == "*"):
        return False
    return others is None or not is_there


async def _finds(look: Endpoint, call: Call) -> bool:
    try:
        await look(call)
    except NotFound:
        return False
    except (AccessError, BrokerError) as error:
        if isinstance(reason := translated(error), NotFound):
            return False
        raise reason from error
    return True
