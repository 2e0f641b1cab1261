"""Requests on users and what they may do."""

import dataclasses
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from typing import Final, TypeAlias

from gateway.broker.access.access import Access
from gateway.broker.access.attempts import Attempts
from gateway.broker.access.errors import NoSuchUser, NoSuchVirtualHost, Unusable
from gateway.broker.access.model import (
    USER_LIMITS,
    Permission,
    Right,
    User,
    check_limits,
    with_limit,
)
from gateway.broker.access.passwords import Algorithm, PasswordHash, UnusableHash
from gateway.broker.connections import ConsumerDetails, OpenConnection, PublisherDetails
from gateway.broker.patterns import length_fault
from gateway.management.administration import Administration, Role, Row
from gateway.management.errors import Conflict, WrongRequest
from gateway.management.requests.arguments import Arguments

_Outdated: TypeAlias = tuple[OpenConnection, list[PublisherDetails | ConsumerDetails]]

TAGS_MAX: Final = 32
"""Of a user; RabbitMQ 4.3 takes no more, and so could not read them back."""
_TAG_BYTES_MAX: Final = 255


async def list_users(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Return all users, without their hashes."""
    arguments.end()
    return [
        {
            "name": user.name,
            "tags": list(user.tags),
            "password": "none"
            if user.password_hash is None
            else user.password_hash.algorithm.name.lower(),
            "limits": dict(user.limits),
            "loopback_only": user.loopback_only,
        }
        for user in administration.access.users()
    ]


async def add_user(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Create a user with the hash of its password, or without one."""
    user = User(arguments.text("name"), _password_hash(arguments), _tags(arguments))
    arguments.end()

    def made(known: User | None) -> User:
        if known is not None:
            raise Conflict(f"there is a user {user.name!r}")
        return user

    await administration.access.change_user(user.name, made)
    return None


async def put_user(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Create a user, or give one that is there another password and other tags.

    Limits are added to those it has.
    """
    name, tags = arguments.text("name"), _tags(arguments)
    hashed, limits = _password_hash(arguments), arguments.mapping("limits")
    arguments.end()
    check_limits(limits, USER_LIMITS)

    def put(known: User | None) -> User:
        if known is None:
            return User(name, hashed, tags, limits)
        merged = {**known.limits, **limits}
        return dataclasses.replace(known, password_hash=hashed, tags=tags, limits=merged)

    return {"is_new": await administration.access.change_user(name, put)}


async def change_password(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Give a user another password, or none."""
    name, hashed = arguments.text("name"), _password_hash(arguments)
    arguments.end()
    await _change(
        administration.access, name, lambda user: dataclasses.replace(user, password_hash=hashed)
    )
    return None


async def set_user_tags(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Replace the tags of a user."""
    name, tags = arguments.text("name"), _tags(arguments)
    arguments.end()
    await _change(administration.access, name, lambda user: dataclasses.replace(user, tags=tags))
    return None


async def delete_user(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Delete a user; its connections end."""
    name = arguments.text("name")
    arguments.end()
    await administration.access.delete_user(name)
    return None


async def delete_users(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Delete several users; who is not there is passed over."""
    names = arguments.texts("names")
    arguments.end()
    for name in names:
        with suppress(NoSuchUser):
            await administration.access.delete_user(name)
    return None


async def set_user_limits(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Replace the limits of a user."""
    name, limits = arguments.text("name"), arguments.mapping("limits")
    arguments.end()
    check_limits(limits, USER_LIMITS)
    await administration.access.set_user_limits(name, limits)
    return None


async def set_user_limit(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Set one limit of a user, or take it away; the others stay."""
    name, limit = arguments.text("name"), arguments.text("limit")
    value = arguments.optional_integer("value")
    arguments.end()
    changed = with_limit(limit, value, USER_LIMITS)
    await _change(
        administration.access,
        name,
        lambda user: dataclasses.replace(user, limits=changed(user.limits)),
    )
    return None


async def list_permissions(
    administration: Administration, arguments: Arguments, _: bytes
) -> object:
    """Return who may do what, perhaps only of a user or in a virtual host."""
    user, virtual_host = arguments.optional_text("user"), arguments.optional_text("virtual_host")
    arguments.end()
    if user is not None and administration.access.user(user) is None:
        raise NoSuchUser(user)
    if virtual_host is not None and administration.virtual_hosts.find(virtual_host) is None:
        raise NoSuchVirtualHost(virtual_host)
    return [
        {
            "user": one.user,
            "virtual_host": one.virtual_host,
            "configure": one.configure,
            "write": one.write,
            "read": one.read,
        }
        for one in administration.access.permissions()
        if user in (None, one.user) and virtual_host in (None, one.virtual_host)
    ]


async def set_permissions(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Say what a user may do in a virtual host.

    Publishers and consumers that are open go on under the permissions under which they began, until
    their client renews its secret, as in RabbitMQ. Those that the new ones would not allow are
    counted, and closed if that is asked for.
    """
    permission = Permission(
        arguments.text("user"),
        arguments.text("virtual_host"),
        arguments.text("configure"),
        arguments.text("write"),
        arguments.text("read"),
    )
    is_to_close = arguments.flag("close", default=False)
    arguments.end()
    for right in Right:
        if fault := length_fault(getattr(permission, right.value)):
            raise Unusable(f"pattern to {right.value} {fault}")
    await administration.access.put_permission(permission)
    outdated = _outdated(administration, permission.user, permission.virtual_host)
    if is_to_close:
        for connection, things in outdated:
            connection.lose_each({thing.stream for thing in things})
    kinds = Counter(type(thing) for _, things in outdated for thing in things)
    return {
        "outdated_publishers": kinds[PublisherDetails],
        "outdated_consumers": kinds[ConsumerDetails],
        "closed": is_to_close,
    }


def _outdated(administration: Administration, user: str, virtual_host: str) -> list[_Outdated]:
    """Return the publishers and consumers that a user could not begin any more, by connection."""
    may = lru_cache(None)(partial(administration.access.may, user, virtual_host))
    found: list[_Outdated] = []
    for connection in administration.connections.of(user=user, virtual_host=virtual_host):
        things: list[PublisherDetails | ConsumerDetails] = [
            *(
                one
                for one in connection.publisher_details()
                if not may(Right.WRITE, one.stream.name)
            ),
            *(one for one in connection.consumer_details() if not may(Right.READ, one.stream.name)),
        ]
        if things:
            found.append((connection, things))
    return found


async def clear_permissions(
    administration: Administration, arguments: Arguments, _: bytes
) -> object:
    """Take a user everything in a virtual host."""
    user, virtual_host = arguments.text("user"), arguments.text("virtual_host")
    arguments.end()
    await administration.access.delete_permission(user, virtual_host)
    return None


async def list_auth_attempts(
    administration: Administration, arguments: Arguments, _: bytes
) -> object:
    """Return how often somebody tried to log in, by address or by protocol alone."""
    by = arguments.text("by", "address")
    arguments.end()
    ledger = administration.attempts
    if by == "address":
        return [
            {"remote_address": address, "protocol": protocol, **_counts(attempts)}
            for address, protocol, attempts in ledger.by_source()
        ]
    if by == "protocol":
        return [
            {"protocol": protocol, **_counts(attempts)}
            for protocol, attempts in ledger.by_protocol()
        ]
    raise WrongRequest("by is neither address nor protocol")


async def reset_auth_attempts(
    administration: Administration, arguments: Arguments, _: bytes
) -> object:
    """Count attempts to log in from 0 again."""
    arguments.end()
    administration.attempts.reset()
    return None


def _counts(attempts: Attempts) -> dict[str, int]:
    """RabbitMQ's names, and one of our own."""
    return {
        "auth_attempts": attempts.succeeded + attempts.failed,
        "auth_attempts_succeeded": attempts.succeeded,
        "auth_attempts_failed": attempts.failed,
        "auth_attempts_unread": attempts.unread,
    }


async def _change(access: Access, name: str, change: Callable[[User], User]) -> None:
    """Change a user that is there. Raises NoSuchUser."""

    def changed(user: User | None) -> User:
        if user is None:
            raise NoSuchUser(name)
        return change(user)

    await access.change_user(name, changed)


def _tags(arguments: Arguments) -> tuple[str, ...]:
    tags = arguments.texts("tags")
    if len(tags) > TAGS_MAX:
        raise WrongRequest(f"A user can have at most {TAGS_MAX} tags (received {len(tags)})")
    for tag in tags:
        if len(tag.encode()) > _TAG_BYTES_MAX:
            raise WrongRequest(f"a tag has {_TAG_BYTES_MAX} bytes at most")
    return tags


def _password_hash(arguments: Arguments) -> PasswordHash | None:
    text = arguments.text("password_hash")
    named = arguments.optional_text("hashing_algorithm")
    if not text:
        return None
    try:
        return PasswordHash.parse(text, None if named is None else Algorithm(named))
    except UnusableHash as error:
        raise WrongRequest(f"password_hash {error}") from None
    except ValueError:
        raise WrongRequest(f"hashing_algorithm {named!r} is not known") from None


ROWS: Final = (
    Row("list_users", list_users, Role.MONITORING),
    Row("add_user", add_user),
    Row("put_user", put_user),
    Row("change_password", change_password),
    Row("set_user_tags", set_user_tags),
    Row("delete_user", delete_user),
    Row("delete_users", delete_users),
    Row("set_user_limits", set_user_limits),
    Row("set_user_limit", set_user_limit),
    Row("list_permissions", list_permissions, Role.MONITORING),
    Row("set_permissions", set_permissions, tells=True),
    Row("clear_permissions", clear_permissions),
    Row("list_auth_attempts", list_auth_attempts, Role.MONITORING),
    Row("reset_auth_attempts", reset_auth_attempts),
)
