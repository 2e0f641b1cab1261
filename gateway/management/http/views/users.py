"""Users and their permissions."""

from functools import partial

from gateway.broker.access.model import User
from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.management.errors import NotFound, WrongRequest
from gateway.management.fields import key_list, usable_text
from gateway.management.http.call import Answer, ApiCall
from gateway.management.http.listing import listed, listed_whole
from gateway.management.kinds.people import PERMISSIONS, USERS
from gateway.management.requests import users as requests


def _user_view(user: User) -> dict[str, object]:
    return USERS.with_hash(user, user.password_hash)


def find_user(call: ApiCall) -> User:
    """Return the user of the path. Raises NotFound."""
    user = call.administration.access.user(call.path["user"])
    if user is None:
        raise NotFound(f"there is no user {call.path['user']!r}")
    return user


async def list_users(call: ApiCall) -> Answer:
    """List all users, with their hashes."""
    return await listed(call, call.administration.access.users(), _user_view)


async def list_users_without_permissions(call: ApiCall) -> Answer:
    """List users without permissions in any virtual host."""
    access = call.administration.access
    able = {one.user for one in access.permissions()}
    return await listed(
        call, [user for user in access.users() if user.name not in able], _user_view
    )


async def get_user(call: ApiCall) -> Answer:
    """Show one user, and the bytes that it has staged, which RabbitMQ does not know."""
    user = find_user(call)
    return {**_user_view(user), "staged_bytes": call.administration.staged_bytes(user.name)}


async def hash_password(call: ApiCall) -> Answer:
    """Hash the password of the path, in the way that RabbitMQ reads as well."""
    return {"ok": str(PasswordHash.of(call.path["password"], Algorithm.SHA256))}


def _tags(call: ApiCall) -> list[str]:
    tags = call.body.get("tags")
    if isinstance(tags, str):
        return key_list(tags)
    if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags):
        return [tag.strip() for tag in tags]
    raise WrongRequest("tags_not_present" if tags is None else "tags are neither text nor texts")


async def _hash(call: ApiCall) -> PasswordHash | None:
    """Return the password of the body, hashed; None for none."""
    if "password_hash" in call.body:
        if "password" in call.body:
            raise WrongRequest("both_password_and_password_hash_are_provided")
        text, named = call.text("password_hash"), call.body.get("hashing_algorithm")
        if not isinstance(named, str | None):
            raise call.wrong("hashing_algorithm", named, "not text")
        return requests.usable_hash("password_hash", text, named)
    if call.text("password", "") == "":  # which is no password
        return None
    make = partial(PasswordHash.of, call.text("password"), Algorithm.ARGON2ID)
    try:
        return await call.in_thread(make)
    except UnicodeEncodeError:
        raise WrongRequest("the password is not Unicode text") from None


async def put_user(call: ApiCall) -> Answer:
    """Create a user, or replace its password and tags."""
    tags, limits = _tags(call), call.mapping("limits")
    hashed = await _hash(call)
    name = usable_text("name", call.path["user"])
    user = User(name, hashed, requests.usable_tags(tuple(tags)), limits)
    return await call.put(requests.put_user, user=user)


async def delete_user(call: ApiCall) -> None:
    """Delete a user; its connections end."""
    await call.ask(requests.delete_user, name=call.path["user"])


async def delete_users(call: ApiCall) -> None:
    """Delete several users; those that do not exist are skipped."""
    call.demand("users")
    await call.ask(requests.delete_users, names=call.body["users"])


# Permissions


async def list_permissions(call: ApiCall) -> Answer:
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


async def get_permission(call: ApiCall) -> Answer:
    """Show a user's permissions in a virtual host."""
    found = call.administration.access.permission(**call.path)
    if found is None:
        raise NotFound("there is no such permission")
    return PERMISSIONS.outer(found)


async def put_permission(call: ApiCall) -> Answer:
    """Set a user's permissions in a virtual host."""
    permission = call.thing(PERMISSIONS, **call.path)
    try:
        return await call.put(requests.set_permissions, permission=permission)
    except NotFound:
        raise WrongRequest("vhost_or_user_not_found") from None


async def delete_permission(call: ApiCall) -> None:
    """Remove a user's permissions in a virtual host."""
    await call.ask(requests.clear_permissions, **call.path)


async def list_topic_permissions(call: ApiCall) -> Answer:
    """List permissions on topics: there are none."""
    call.hosts()
    if "user" in call.path:
        find_user(call)
    return await listed_whole(call, [], dict)
