"""Limits of virtual hosts and users, and parameters."""

from typing import Any, Final

from gateway.management.administration import Role
from gateway.management.errors import NotFound, WrongRequest
from gateway.management.http.call import Answer, ApiCall
from gateway.management.http.listing import listed_whole
from gateway.management.http.views.users import find_user
from gateway.management.kinds import table
from gateway.management.kinds.kind import PARAMETERS
from gateway.management.kinds.virtual_hosts import HOSTS, HostedKind
from gateway.management.requests import users, virtual_hosts

_PARAMETER: Final = (HOSTS.component, "limits")


def _host_limits(call: ApiCall, host: str) -> dict[str, int]:
    return dict(call.administration.access.virtual_host_limits(host))


async def list_host_limits(call: ApiCall) -> Answer:
    """List the limits of virtual hosts that have some."""
    found = [(host.name, _host_limits(call, host.name)) for host in call.watched_hosts()]
    return await listed_whole(
        call, [one for one in found if one[1]], lambda one: {"vhost": one[0], "value": one[1]}
    )


async def list_user_limits(call: ApiCall) -> Answer:
    """List the limits of users that have some; a user may always see its own."""
    access = call.administration.access
    own = access.user(call.actor.name)
    if own is not None and call.path.get("user") == own.name:
        users = [own]
    else:
        call.actor.require(Role.ADMINISTRATOR)
        users = [find_user(call)] if "user" in call.path else list(access.users())
    return await listed_whole(
        call,
        [user for user in users if user.limits],
        lambda user: {"user": user.name, "value": dict(user.limits)},
    )


def _limit(call: ApiCall) -> int:
    value = call.body.get("value")
    if type(value) is not int:
        raise WrongRequest("value is not a whole number")
    return value


async def put_host_limit(call: ApiCall) -> None:
    """Set a limit of a virtual host."""
    name, limit = call.host().name, call.path["limit"]
    await call.ask(virtual_hosts.set_vhost_limits, name=name, limit=limit, value=_limit(call))


async def delete_host_limit(call: ApiCall) -> None:
    """Remove a limit of a virtual host."""
    await call.ask(virtual_hosts.set_vhost_limits, name=call.host().name, limit=call.path["limit"])


async def put_user_limit(call: ApiCall) -> None:
    """Set a limit of a user."""
    name, limit = find_user(call).name, call.path["limit"]
    await call.ask(users.set_user_limits, name=name, limit=limit, value=_limit(call))


async def delete_user_limit(call: ApiCall) -> None:
    """Remove a limit of a user."""
    await call.ask(users.set_user_limits, name=find_user(call).name, limit=call.path["limit"])


# Parameters


def _parameters(call: ApiCall) -> list[dict[str, Any]]:
    """Return the parameters there are: limits of virtual hosts, and objects that are parameters."""
    found: list[dict[str, Any]] = []
    kinds = [kind for kind in table.KINDS if kind.section == PARAMETERS]
    for host in call.hosts():
        entries = HOSTS.parameters(_host_limits(call, host.name))
        for kind in kinds:
            assert isinstance(kind, HostedKind)
            entries += map(kind.written, kind.all_in(host))
        found += ({"vhost": host.name, **entry} for entry in entries)
    wanted = call.path.get("component")
    return [one for one in found if wanted in (None, one["component"])]


async def list_parameters(call: ApiCall) -> Answer:
    """List all parameters, those of a component, or those of it in a virtual host."""
    return await listed_whole(call, _parameters(call), dict)


async def get_parameter(call: ApiCall) -> Answer:
    """Show one parameter."""
    for one in _parameters(call):
        if one["name"] == call.path["name"]:
            return one
    raise NotFound("there is no such parameter")


async def put_parameter(call: ApiCall) -> Answer:
    """Replace all limits of a virtual host."""
    host, component = call.host().name, call.path["component"]
    if (component, call.path["name"]) != _PARAMETER:
        raise WrongRequest(f"component {component} not found"[:200])
    limits = call.mapping("value")
    return await call.put(virtual_hosts.set_vhost_limits, name=host, limits=limits)


async def delete_parameter(call: ApiCall) -> None:
    """Remove all limits of a virtual host."""
    host = call.host().name
    is_one = (call.path["component"], call.path["name"]) == _PARAMETER
    if not (is_one and _host_limits(call, host)):
        raise NotFound("there is no such parameter")
    await call.ask(virtual_hosts.set_vhost_limits, name=host, limits={})
