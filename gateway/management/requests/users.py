"""Requests on users and what they may do."""

import dataclasses
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from typing import Annotated, Final, TypeAlias

from gateway.broker.access.access import Access
from gateway.broker.access.attempts import Attempts
from gateway.broker.access.model import Right, User, UserPermission
from gateway.broker.access.passwords import Algorithm, PasswordHash, UnusableHash
from gateway.broker.connections import ConsumerDetails, OpenConnection, PublisherDetails
from gateway.broker.errors import NoSuchUser, NoSuchVirtualHost, UnusableValue
from gateway.broker.patterns import length_fault
from gateway.management.administration import Administration, RequestTurns, Role
from gateway.management.errors import Conflict, WrongRequest
from gateway.management.fields import Arguments
from gateway.management.kinds.people import PERMISSIONS, USERS
from gateway.management.requests.request import Limits, request, thing_of

_Outdated: TypeAlias = tuple[OpenConnection, list[PublisherDetails | ConsumerDetails]]

TAGS_MAX: Final = 32
"""Most tags of a user: RabbitMQ 4.3 takes no more, and so could not read them back."""
_TAG_BYTES_MAX: Final = 255


def _tags(_: Administration, arguments: Arguments, name: str) -> tuple[str, ...]:
    return usable_tags(arguments.texts(name))


def usable_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tags that a user can have. Raises WrongRequest."""
    if len(tags) > TAGS_MAX:
        raise WrongRequest(f"A user can have at most {TAGS_MAX} tags (received {len(tags)})")
    for tag in tags:
        if len(tag.encode()) > _TAG_BYTES_MAX:
            raise WrongRequest(f"a tag has {_TAG_BYTES_MAX} bytes at most")
    return tags


def _hash(_: Administration | None, arguments: Arguments, name: str) -> PasswordHash | None:
    return usable_hash(name, arguments.text(name), arguments.optional_text("hashing_algorithm"))


def usable_hash(name: str, text: str, named: str | None) -> PasswordHash | None:
    """Return the hash of a password, None for no password. Raises WrongRequest."""
    if not text:
        return None
    try:
        return PasswordHash.parse(text, None if named is None else Algorithm(named))
    except UnusableHash as error:
        raise WrongRequest(f"{name} {error}") from None
    except ValueError:
        raise WrongRequest(f"hashing_algorithm {named!r} is not known") from None


Tags: TypeAlias = Annotated[tuple[str, ...], _tags]
Hash: TypeAlias = Annotated[PasswordHash | None, _hash]


def _user(arguments: Arguments) -> User:
    tags = usable_tags(arguments.texts("tags"))
    hashed = _hash(None, arguments, "password_hash")
    return User(arguments.text("name"), hashed, tags, arguments.mapping("limits"))


@request(Role.MONITORING)
async def list_users(access: Access) -> object:
    """Return all users, without their hashes."""
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
        for user in access.users()
    ]


@request()
async def add_user(access: Access, name: str, password_hash: Hash, tags: Tags) -> None:
    """Create a user with the hash of its password, or without one."""
    user = User(name, password_hash, tags)

    def made(known: User | None) -> User:
        if known is not None:
            raise Conflict(f"there is a user {name!r}")
        return user

    await access.change_user(name, made)


@request()
async def put_user(access: Access, user: Annotated[User, thing_of(USERS, _user)]) -> object:
    """Create a user, or give one that is there another password and other tags.

    Limits are added to those it has.
    """

    def put(known: User | None) -> User:
        if known is None:
            return user
        limits = {**known.limits, **user.limits}
        return dataclasses.replace(
            known, password_hash=user.password_hash, tags=user.tags, limits=limits
        )

    return {"is_new": await access.change_user(user.name, put)}


@request()
async def change_password(access: Access, name: str, password_hash: Hash) -> None:
    """Set another password of a user, or none."""
    await _change(access, name, lambda user: dataclasses.replace(user, password_hash=password_hash))


@request()
async def set_user_tags(access: Access, name: str, tags: Tags) -> None:
    """Replace the tags of a user."""
    await _change(access, name, lambda user: dataclasses.replace(user, tags=tags))


@request()
async def delete_user(access: Access, name: str) -> None:
    """Delete a user; its connections end."""
    await access.delete_user(name)


@request()
async def delete_users(administration: Administration, names: tuple[str, ...]) -> None:
    """Delete several users; those that do not exist are passed over."""
    access, turns = administration.access, RequestTurns(administration)
    for name in names:
        await turns.give()
        with suppress(NoSuchUser):
            await access.delete_user(name)


@request()
async def set_user_limits(access: Access, name: str, limits: Limits) -> None:
    """Replace the limits of a user, or set one of them."""
    await access.change_user_limits(name, limits)


@request(Role.MONITORING)
async def list_permissions(
    administration: Administration, user: str | None, virtual_host: str | None
) -> object:
    """Return the permissions, perhaps only of a user or in a virtual host."""
    if user is not None and administration.access.user(user) is None:
        raise NoSuchUser(user)
    if virtual_host is not None and administration.virtual_hosts.find(virtual_host) is None:
        raise NoSuchVirtualHost(virtual_host)
    return [
        PERMISSIONS.shown(one)
        for one in administration.access.permissions()
        if user in (None, one.user) and virtual_host in (None, one.virtual_host)
    ]


@request(tells=True)
async def set_permissions(
    administration: Administration,
    *,
    permission: Annotated[UserPermission, thing_of(PERMISSIONS)],
    close: bool = False,
) -> object:
    """Say what a user may do in a virtual host.

    Publishers and consumers that are open go on under the permissions under which they began, until
    their client renews its secret, as in RabbitMQ. Those that the new ones would not allow are
    counted, and closed if that is asked for.
    """
    for right in Right:
        if fault := length_fault(getattr(permission, right.value)):
            raise UnusableValue(f"pattern to {right.value} {fault}")
    is_new = await administration.access.put_permission(permission)
    outdated = _outdated(administration, permission.user, permission.virtual_host)
    if close:
        for connection, things in outdated:
            connection.lose_each({thing.stream for thing in things})
    kinds = Counter(type(thing) for _, things in outdated for thing in things)
    return {
        "outdated_publishers": kinds[PublisherDetails],
        "outdated_consumers": kinds[ConsumerDetails],
        "closed": close,
        "is_new": is_new,
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


@request()
async def clear_permissions(access: Access, user: str, virtual_host: str) -> None:
    """Revoke a user's permissions in a virtual host."""
    await access.delete_permission(user, virtual_host)


@request(Role.MONITORING)
async def list_auth_attempts(administration: Administration, by: str = "address") -> object:
    """Return the number of attempts to log in, by address or by protocol alone."""
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


@request()
async def reset_auth_attempts(administration: Administration) -> None:
    """Count attempts to log in from 0 again."""
    administration.attempts.reset()


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
