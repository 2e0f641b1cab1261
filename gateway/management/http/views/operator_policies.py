"""The policies that operators set beside all others."""

from http import HTTPStatus

from starlette.responses import Response

from gateway.management.administration import Role
from gateway.management.errors import NotFound
from gateway.management.http.answers import empty_answer, made_answer
from gateway.management.http.call import Call
from gateway.management.http.listing import listed_whole, object_answer
from gateway.management.http.views.people import policy_said, policy_view


async def list_all(call: Call) -> Response:
    """All operators' policies, or those of a virtual host."""
    found = [(host.name, one) for host in call.hosts() for one in host.policies.operators.all()]
    return await listed_whole(call, found, lambda one: policy_view(*one))


async def get(call: Call) -> Response:
    """One of them."""
    call.require(Role.ADMINISTRATOR)
    host = call.host()
    policy = host.policies.operators.find(call.path["policy"])
    if policy is None:
        raise NotFound("there is no such operator policy")
    return object_answer(call, policy_view(host.name, policy))


async def put(call: Call) -> Response:
    """Create one, or replace the one of that name."""
    call.require(Role.ADMINISTRATOR)
    host, name = call.host(), call.path["policy"]
    is_new = host.policies.operators.find(name) is None
    await call.ask("set_operator_policy", policy_said(call, host.name, name))
    return made_answer(is_new=is_new)


async def delete(call: Call) -> Response:
    """Delete one."""
    call.require(Role.ADMINISTRATOR)
    where = {"virtual_host": call.host().name, "name": call.path["policy"]}
    await call.ask("clear_operator_policy", where)
    return empty_answer(HTTPStatus.NO_CONTENT)
