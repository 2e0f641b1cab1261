"""Users, what they may do, limits and policies."""

from functools import partial
from http import HTTPStatus
from typing import Any, Final

from starlette.responses import Response

from gateway.broker.access.model import User
from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.broker.policies import Policy
from gateway.management.administration import Role
from gateway.management.definitions.objects import NO_PASSWORD
from gateway.management.definitions.sections import OPERATOR_POLICIES
from gateway.management.errors import NotFound, WrongRequest
from gateway.management.http.answers import empty_answer, made_answer
from gateway.management.http.call import Call
from gateway.management.http.listing import listed, listed_whole, object_answer
from gateway.management.kinds import PERMISSIONS, POLICIES

_LIMITS: Final = "vhost-limits"
_PARAMETER: Final = (_LIMITS, "limits")
_DONE = HTTPStatus.NO_CONTENT


# Users


def _user_view(user: User) -> dict[str, object]:
    hashed = user.password_hash
    return {
        "name": user.name,
        "password_hash": NO_PASSWORD if hashed is None else hashed.text,
        "hashing_algorithm": (Algorithm.SHA256 if hashed is None else hashed.algorithm).value,
        "tags": list(user.tags),
        "limits": dict(user.limits),
    }


def _user(call: Call) -> User:
    call.require(Role.ADMINISTRATOR)
    user = call.administration.access.user(call.path["user"])
    if user is None:
        raise NotFound(f"there is no user {call.path['user']!r}")
    return user


async def list_users(call: Call) -> Response:
    """All users, with their hashes."""
    call.require(Role.ADMINISTRATOR)
    return await listed(call, call.administration.access.users(), _user_view)


async def list_users_without_permissions(call: Call) -> Response:
    """Those who may enter no virtual host."""
    call.require(Role.ADMINISTRATOR)
    access = call.administration.access
    able = {one.user for one in access.permissions()}
    return await listed(
        call, [user for user in access.users() if user.name not in able], _user_view
    )


async def get_user(call: Call) -> Response:
    """One user."""
    return object_answer(call, _user_view(_user(call)))


def _tags(call: Call) -> list[str]:
    tags = call.body.get("tags")
    if isinstance(tags, str):
        return [part.strip() for part in tags.split(",") if part.strip()]
    if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags):
        return [tag.strip() for tag in tags]
    raise WrongRequest("tags_not_present" if tags is None else "tags are neither text nor texts")


async def _hash(call: Call) -> dict[str, Any]:
    """Return the password of the body as the requests take it: none, or hashed."""
    if "password_hash" in call.body:
        if "password" in call.body:
            raise WrongRequest("both_password_and_password_hash_are_provided")
        given = {"password_hash": call.text("password_hash")}
        named = call.body.get("hashing_algorithm")
        return given if named is None else {**given, "hashing_algorithm": named}
    if call.text("password", "") == "":  # which is no password
        return {"password_hash": ""}
    make = partial(PasswordHash.of, call.text("password"), Algorithm.ARGON2ID)
    try:
        hashed = await call.in_thread(make)
    except UnicodeEncodeError:
        raise WrongRequest("the password is not Unicode text") from None
    return {"password_hash": hashed.text, "hashing_algorithm": hashed.algorithm.value}


async def put_user(call: Call) -> Response:
    """Create a user, or replace its password and tags."""
    call.require(Role.ADMINISTRATOR)
    given = {"name": call.path["user"], "tags": _tags(call), "limits": call.mapping("limits")}
    put = await call.ask("put_user", {**given, **await _hash(call)})
    return made_answer(is_new=put["is_new"])


async def delete_user(call: Call) -> Response:
    """Delete a user; its connections end."""
    await call.ask("delete_user", {"name": call.path["user"]})
    return empty_answer(_DONE)


async def delete_users(call: Call) -> Response:
    """Delete several users; who is not there is passed over."""
    call.require(Role.ADMINISTRATOR)
    if "users" not in call.body:
        raise WrongRequest("[{key_missing,users}]")
    await call.ask("delete_users", {"names": call.body["users"]})
    return empty_answer(_DONE)


# Permissions


async def list_permissions(call: Call) -> Response:
    """All permissions, those of a user, or those in a virtual host."""
    call.require(Role.ADMINISTRATOR)
    user, host = call.path.get("user"), call.path.get("virtual_host")
    if user is not None:
        _user(call)
    if host is not None:
        call.host()
    found = [
        one
        for one in call.administration.access.permissions()
        if user in (None, one.user) and host in (None, one.virtual_host)
    ]
    return await listed_whole(call, found, PERMISSIONS.outer)


def _place(call: Call) -> dict[str, str]:
    return {"user": call.path["user"], "virtual_host": call.path["virtual_host"]}


async def get_permission(call: Call) -> Response:
    """What a user may do in a virtual host."""
    call.require(Role.ADMINISTRATOR)
    where = _place(call)
    found = call.administration.access.permission(where["user"], where["virtual_host"])
    if found is None:
        raise NotFound("there is no such permission")
    return object_answer(call, PERMISSIONS.outer(found))


async def put_permission(call: Call) -> Response:
    """Say what a user may do in a virtual host."""
    call.require(Role.ADMINISTRATOR)
    where = _place(call)
    is_new = call.administration.access.permission(where["user"], where["virtual_host"]) is None
    patterns = {name: call.text(name) for name in ("configure", "write", "read")}
    try:
        await call.ask("set_permissions", where | patterns)
    except NotFound:
        raise WrongRequest("vhost_or_user_not_found") from None
    return made_answer(is_new=is_new)


async def delete_permission(call: Call) -> Response:
    """Take a user everything in a virtual host."""
    await call.ask("clear_permissions", _place(call))
    return empty_answer(_DONE)


async def list_topic_permissions(call: Call) -> Response:
    """There are none, of nobody and nowhere."""
    call.require(Role.ADMINISTRATOR)
    call.hosts()
    if "user" in call.path:
        _user(call)
    return await listed_whole(call, [], dict)


# Limits


async def list_host_limits(call: Call) -> Response:
    """The limits of virtual hosts that have some."""
    access = call.administration.access
    hosts = call.watched_hosts()
    found = [(host.name, dict(access.virtual_host_limits(host.name))) for host in hosts]
    return await listed_whole(
        call, [one for one in found if one[1]], lambda one: {"vhost": one[0], "value": one[1]}
    )


async def list_user_limits(call: Call) -> Response:
    """The limits of users who have some; everybody may look at their own."""
    access = call.administration.access
    own = access.user(call.actor.name)
    if own is not None and call.path.get("user") == own.name:
        users = [own]
    elif "user" in call.path:
        users = [_user(call)]
    else:
        call.require(Role.ADMINISTRATOR)
        users = list(access.users())
    return await listed_whole(
        call,
        [user for user in users if user.limits],
        lambda user: {"user": user.name, "value": dict(user.limits)},
    )


def _limit(call: Call) -> int:
    value = call.body.get("value")
    if type(value) is not int:
        raise WrongRequest("value is not a whole number")
    return value


async def put_host_limit(call: Call) -> Response:
    """Set a limit of a virtual host."""
    call.require(Role.ADMINISTRATOR)
    where = {"name": call.host().name, "limit": call.path["limit"]}
    await call.ask("set_vhost_limit", {**where, "value": _limit(call)})
    return empty_answer(_DONE)


async def delete_host_limit(call: Call) -> Response:
    """Take a limit from a virtual host."""
    call.require(Role.ADMINISTRATOR)
    where = {"name": call.host().name, "limit": call.path["limit"]}
    await call.ask("set_vhost_limit", where)
    return empty_answer(_DONE)


async def put_user_limit(call: Call) -> Response:
    """Set a limit of a user."""
    where = {"name": _user(call).name, "limit": call.path["limit"]}
    await call.ask("set_user_limit", {**where, "value": _limit(call)})
    return empty_answer(_DONE)


async def delete_user_limit(call: Call) -> Response:
    """Take a limit from a user."""
    await call.ask("set_user_limit", {"name": _user(call).name, "limit": call.path["limit"]})
    return empty_answer(_DONE)


# Parameters


def _parameters(call: Call) -> list[dict[str, object]]:
    """Return the limits of virtual hosts and operators' policies; nothing else is kept so."""
    call.require(Role.POLICYMAKER)
    access = call.administration.access
    found: list[dict[str, object]] = []
    for host in call.hosts():
        if limits := dict(access.virtual_host_limits(host.name)):
            where = {"vhost": host.name, "component": _LIMITS}
            found.append({**where, "name": "limits", "value": limits})
        for policy in host.policies.operators.all():
            value = policy_view(host.name, policy)
            where = {"vhost": host.name, "component": OPERATOR_POLICIES}
            del value["vhost"]
            found.append({**where, "name": value.pop("name"), "value": value})
    wanted = call.path.get("component")
    return [one for one in found if wanted in (None, one["component"])]


async def list_parameters(call: Call) -> Response:
    """All parameters, those of a component, or those of it in a virtual host."""
    return await listed_whole(call, _parameters(call), dict)


async def get_parameter(call: Call) -> Response:
    """One parameter."""
    for one in _parameters(call):
        if one["name"] == call.path["name"]:
            return object_answer(call, one)
    raise NotFound("there is no such parameter")


async def put_parameter(call: Call) -> Response:
    """Replace all limits of a virtual host."""
    call.require(Role.ADMINISTRATOR)
    host = call.host().name
    if (call.path["component"], call.path["name"]) != _PARAMETER:
        raise WrongRequest(f"component {call.path['component']} not found"[:200])
    is_new = not call.administration.access.virtual_host_limits(host)
    await call.ask("set_vhost_limits", {"name": host, "limits": call.mapping("value")})
    return made_answer(is_new=is_new)


async def delete_parameter(call: Call) -> Response:
    """Take all limits from a virtual host."""
    call.require(Role.ADMINISTRATOR)
    host = call.host().name
    is_one = (call.path["component"], call.path["name"]) == _PARAMETER
    if not (is_one and call.administration.access.virtual_host_limits(host)):
        raise NotFound("there is no such parameter")
    await call.ask("set_vhost_limits", {"name": host, "limits": {}})
    return empty_answer(_DONE)


async def list_global_parameters(call: Call) -> Response:
    """There are none."""
    call.require(Role.POLICYMAKER)
    return await listed_whole(call, [], dict)


# Policies


def policy_view(host: str, policy: Policy) -> dict[str, object]:
    """Show a policy, of users or of operators."""
    return {"vhost": host, **POLICIES.outer(policy)}


async def list_policies(call: Call) -> Response:
    """All policies, or those of a virtual host."""
    found = [(host.name, policy) for host in call.hosts() for policy in host.policies.all()]
    return await listed_whole(call, found, lambda one: policy_view(*one))


async def get_policy(call: Call) -> Response:
    """One policy."""
    host = call.host()
    policy = host.policies.find(call.path["policy"])
    if policy is None:
        raise NotFound("there is no such policy")
    return object_answer(call, policy_view(host.name, policy))


async def put_policy(call: Call) -> Response:
    """Create a policy, or replace the one of that name."""
    call.require(Role.POLICYMAKER)
    host, name = call.host(), call.path["policy"]
    is_new = host.policies.find(name) is None
    await call.ask("set_policy", policy_said(call, host.name, name))
    return made_answer(is_new=is_new)


def policy_said(call: Call, host: str, name: str) -> dict[str, object]:
    """Return the arguments of a request for the policy that a body describes."""
    for needed in ("pattern", "definition"):
        if needed not in call.body:
            raise WrongRequest(f"[{{key_missing,{needed}}}]")
    return {
        "virtual_host": host,
        "name": name,
        "pattern": call.text("pattern"),
        "apply_to": call.text("apply-to", "all"),
        "definition": call.mapping("definition"),
        "priority": call.body.get("priority", 0),
    }


async def delete_policy(call: Call) -> Response:
    """Delete a policy."""
    call.require(Role.POLICYMAKER)
    where = {"virtual_host": call.host().name, "name": call.path["policy"]}
    await call.ask("clear_policy", where)
    return empty_answer(_DONE)
