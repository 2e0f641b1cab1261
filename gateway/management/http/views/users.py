"""Users and their permissions."""

from functools import partial
from typing import Any

from gateway.broker.access.model import User
from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.management.definitions.exporting import outer_user
from gateway.management.errors import NotFound, WrongRequest
from gateway.management.http.answers import made_answer
from gateway.management.http.call import Answer, Call, split
from gateway.management.http.listing import listed, listed_whole
from gateway.management.kinds import PERMISSIONS


def _user_view(user: User) -> dict[str, object]:
    return outer_user(user, user.password_hash)


def find_user(call: Call) -> User:
    """Return the user of the path. Raises NotFound."""
    user = call.administration.access.user(call.path["user"])
    if user is None:
        raise NotFound(f"there is no user {call.path['user']!r}")
    return user


async def list_users(call: Call) -> Answer:
    """List all users, with their hashes."""
    return await listed(call, call.administration.access.users(), _user_view)


async def list_users_without_permissions(call: Call) -> Answer:
    """List users without permissions in any virtual host."""
    access = call.administration.access
    able = {one.user for one in access.permissions()}
    return await listed(
        call, [user for user in access.users() if user.name not in able], _user_view
    )


async def get_user(call: Call) -> Answer:
    """Show one user, and the bytes that it has staged, which RabbitMQ does not know."""
    user = find_user(call)
    return {**_user_view(user), "staged_bytes": call.administration.staged_bytes(user.name)}


async def hash_password(call: Call) -> Answer:
    """Hash the password of the path, in the way that RabbitMQ reads as well."""
    return {"ok": str(PasswordHash.of(call.path["password"], Algorithm.SHA256))}


def _tags(call: Call) -> list[str]:
    tags = call.body.get("tags")
    if isinstance(tags, str):
        return split(tags)
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


async def put_user(call: Call) -> Answer:
    """Create a user, or replace its password and tags."""
    given = {"name": call.path["user"], "tags": _tags(call), "limits": call.mapping("limits")}
    put = await call.ask("put_user", **given, **await _hash(call))
    return made_answer(is_new=put["is_new"])


async def delete_user(call: Call) -> None:
    """Delete a user; its connections end."""
    await call.ask("delete_user", name=call.path["user"])


async def delete_users(call: Call) -> None:
    """Delete several users; those that do not exist are skipped."""
    call.demand("users")
    await call.ask("delete_users", names=call.body["users"])


# Permissions


async def list_permissions(call: Call) -> Answer:
    """List all permissions, those of a user, or those in a virtual host."""
    user, host = call.path.get("user"), call.path.get("virtual_host")
    if user is not None:
        find_user(call)
    if host is not None:
        call.host()
    found = [
        one
        for one in call.administration.access.permissions()
        if user in (None, one.user) and host in (None, one.virtual_host)
    ]
    return await listed_whole(call, found, PERMISSIONS.outer)


async def get_permission(call: Call) -> Answer:
    """Show a user's permissions in a virtual host."""
    found = call.administration.access.permission(**call.path)
    if found is None:
        raise NotFound("there is no such permission")
    return PERMISSIONS.outer(found)


async def put_permission(call: Call) -> Answer:
    """Set a user's permissions in a virtual host."""
    is_new = call.administration.access.permission(**call.path) is None
    patterns = {name: call.text(name) for name in PERMISSIONS.names(without=call.path)}
    try:
        await call.ask("set_permissions", **call.path, **patterns)
    except NotFound:
        raise WrongRequest("vhost_or_user_not_found") from None
    return made_answer(is_new=is_new)


async def delete_permission(call: Call) -> None:
    """Remove a user's permissions in a virtual host."""
    await call.ask("clear_permissions", **call.path)


async def list_topic_permissions(call: Call) -> Answer:
    """List permissions on topics: there are none."""
    call.hosts()
    if "user" in call.path:
        find_user(call)
    return await listed_whole(call, [], dict)
