"""Requests on users and what they may do."""

import dataclasses
from typing import Final

from gateway.broker.access.access import Access
from gateway.broker.access.attempts import Attempts
from gateway.broker.access.errors import NoSuchUser, NoSuchVirtualHost
from gateway.broker.access.model import USER_LIMITS, Permission, User, check_limits
from gateway.broker.access.passwords import Algorithm, PasswordHash, UnusableHash
from gateway.broker.administration.administration import Administration, Role, Row
from gateway.broker.administration.arguments import Arguments
from gateway.broker.administration.errors import Conflict, WrongRequest


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
    user = User(arguments.text("name"), _password_hash(arguments), arguments.texts("tags"))
    arguments.end()
    if administration.access.user(user.name) is not None:
        raise Conflict(f"there is a user {user.name!r}")
    await administration.access.put_user(user)
    return None


async def change_password(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Give a user another password, or none."""
    user = _user(administration.access, arguments)
    changed = dataclasses.replace(user, password_hash=_password_hash(arguments))
    arguments.end()
    await administration.access.put_user(changed)
    return None


async def set_user_tags(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Replace the tags of a user."""
    user = _user(administration.access, arguments)
    changed = dataclasses.replace(user, tags=arguments.texts("tags"))
    arguments.end()
    await administration.access.put_user(changed)
    return None


async def delete_user(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Delete a user; its connections end."""
    name = arguments.text("name")
    arguments.end()
    await administration.access.delete_user(name)
    return None


async def set_user_limits(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Replace the limits of a user."""
    name, limits = arguments.text("name"), arguments.mapping("limits")
    arguments.end()
    check_limits(limits, USER_LIMITS)
    await administration.access.set_user_limits(name, limits)
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
    """Say what a user may do in a virtual host."""
    permission = Permission(
        arguments.text("user"),
        arguments.text("virtual_host"),
        arguments.text("configure"),
        arguments.text("write"),
        arguments.text("read"),
    )
    arguments.end()
    await administration.access.put_permission(permission)
    return None


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


def _user(access: Access, arguments: Arguments) -> User:
    name = arguments.text("name")
    user = access.user(name)
    if user is None:
        raise NoSuchUser(name)
    return user


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
    Row("change_password", change_password),
    Row("set_user_tags", set_user_tags),
    Row("delete_user", delete_user),
    Row("set_user_limits", set_user_limits),
    Row("list_permissions", list_permissions, Role.MONITORING),
    Row("set_permissions", set_permissions),
    Row("clear_permissions", clear_permissions),
    Row("list_auth_attempts", list_auth_attempts, Role.MONITORING),
    Row("reset_auth_attempts", reset_auth_attempts),
)
