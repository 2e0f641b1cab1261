"""Users of the very first start: those of a file, or the one user guest.

Afterwards users are kept in the store and the file is not looked at. It is TOML or (by its ending
.json) JSON with a list `users`, and perhaps `permissions`; RabbitMQ's exported definitions
have one, and can be given as they are:

    [[users]]
    name = "app"
    password_hash = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
    hashing_algorithm = "rabbit_password_hashing_sha256"
    tags = ["administrator"]
"""

import json
import logging
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from gateway.broker.access.authentication import GUEST
from gateway.broker.access.model import Right, User, UserPermission
from gateway.broker.access.passwords import Algorithm, PasswordHash, UnusableHash
from gateway.broker.errors import UnusableValue
from gateway.broker.patterns import length_fault
from gateway.settings.errors import ConfigError
from gateway.settings.model import UsersSettings

log = logging.getLogger(__name__)

DEFAULT_VIRTUAL_HOST: Final = "/"
_SETTING: Final = "users.file"

_PERMISSION_FIELDS: Final = ("user", "vhost", "configure", "write", "read")
_FIELDS: Final = frozenset({"name", "password_hash", "hashing_algorithm", "tags", "limits"})


def first_users(
    settings: UsersSettings, read: Callable[[], bytes] | None = None
) -> tuple[list[User], list[UserPermission]]:
    """Return the users of the first start, and their permissions in the virtual host `/`.

    Without a file there is guest with the password guest. A file's users may do everything, unless
    it has permissions of its own.

    Args:
        settings: They name the file.
        read: Reads it, in another way than usual.

    Raises:
        ConfigError: The file cannot be read, or entries are wrong: one line for each fault.
    """
    if settings.file is None:
        users = [User(GUEST, PasswordHash.of(GUEST, Algorithm.ARGON2ID), ("administrator",))]
        return users, [_everything(GUEST)]
    content = _content(settings.file, read or settings.file.read_bytes)
    users = _read(settings.file, content)
    if "permissions" not in content:
        return users, [_everything(user.name) for user in users]
    names = frozenset(user.name for user in users)
    return users, _read_permissions(settings.file, content["permissions"], names)


def _everything(user: str) -> UserPermission:
    return UserPermission(
        user=user, virtual_host=DEFAULT_VIRTUAL_HOST, configure=".*", write=".*", read=".*"
    )


def _read_permissions(path: Path, entries: object, users: frozenset[str]) -> list[UserPermission]:
    if not isinstance(entries, list):
        raise ConfigError.in_file(_SETTING, path, "permissions: is not a list")
    problems: list[str] = []
    permissions: list[UserPermission] = []
    for index, entry in enumerate(entries):
        try:
            permission = _permission(entry)
        except _Fault as fault:
            field = f".{fault.field}" if fault.field else ""
            problems.append(f"permissions[{index}]{field}: {fault}")
            continue
        if permission.virtual_host != DEFAULT_VIRTUAL_HOST or permission.user not in users:
            log.warning(
                "permission of the users file is not used, its user or virtual host does not exist"
                " user=%r virtual_host=%r",
                permission.user,
                permission.virtual_host,
            )
            continue
        permissions.append(permission)
    if problems:
        raise ConfigError.in_file(_SETTING, path, *problems)
    return permissions


def _permission(entry: object) -> UserPermission:
    if not isinstance(entry, dict):
        raise _Fault("", "is not a permission with its fields")
    unknown = sorted(entry.keys() - set(_PERMISSION_FIELDS))
    if unknown:
        known = ", ".join(sorted(_PERMISSION_FIELDS))
        raise _Fault(unknown[0], f"no such field; a permission has {known}")
    try:
        user, virtual_host, *patterns = (_text(entry, name) for name in _PERMISSION_FIELDS)
        rights = {right.value: pattern for right, pattern in zip(Right, patterns, strict=True)}
        permission = UserPermission(user=user, virtual_host=virtual_host, **rights)
    except UnusableValue as error:
        raise _Fault("", str(error)) from None
    for right in Right:
        if fault := length_fault(getattr(permission, right.value)):
            raise _Fault(right.value, fault)
    return permission


def _read(path: Path, content: Mapping[str, object]) -> list[User]:
    entries = content.get("users")
    if not isinstance(entries, list) or not entries:
        raise ConfigError.in_file(_SETTING, path, "users: missing: a list of at least one user")
    problems: list[str] = []
    users: dict[str, User] = {}
    for index, entry in enumerate(entries):
        try:
            user = _user(entry)
        except _Fault as fault:
            field = f".{fault.field}" if fault.field else ""
            problems.append(f"users[{index}]{field}: {fault}")
            continue
        if user.name in users:
            problems.append(f"users[{index}].name: {user.name!r} is there twice")
        users[user.name] = user
    if problems:
        raise ConfigError.in_file(_SETTING, path, *problems)
    return list(users.values())


def _content(path: Path, read: Callable[[], bytes]) -> Mapping[str, object]:
    try:
        text = read().decode()
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise ConfigError.in_file(_SETTING, path, f"cannot read it: {error.strerror}") from None
    except ValueError as error:  # of JSON, TOML or UTF-8
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise ConfigError.in_file(_SETTING, path, f"not {kind}: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError.in_file(_SETTING, path, "holds no list called users")
    return content


class _Fault(Exception):
    """A fault of an entry, with the field that it is in."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


def _user(entry: object) -> User:
    if not isinstance(entry, dict):
        raise _Fault("", "is not a user with its fields")
    if "password" in entry:
        raise _Fault(
            "password", "never in clear: password_hash takes what `hutch hash-password` prints"
        )
    unknown = sorted(entry.keys() - _FIELDS)
    if unknown:
        raise _Fault(unknown[0], f"no such field; a user has {', '.join(sorted(_FIELDS))}")
    name = _text(entry, "name")
    if not name:
        raise _Fault("name", "missing, or empty")
    try:
        return User(name, _password_hash(entry), _tags(entry), _limits(entry))
    except UnusableValue as error:
        raise _Fault("", str(error)) from None


def _password_hash(entry: Mapping[str, object]) -> PasswordHash | None:
    if "password_hash" not in entry:
        raise _Fault("password_hash", "missing; `hutch hash-password` prints one")
    text = _text(entry, "password_hash")
    named = _text(entry, "hashing_algorithm")
    try:
        algorithm = Algorithm(named) if named else None
    except ValueError:
        known = ", ".join(algorithm.value for algorithm in Algorithm)
        raise _Fault("hashing_algorithm", f"{named!r} is not one of {known}") from None
    try:
        return PasswordHash.parse(text, algorithm) if text else None
    except UnusableHash as error:
        raise _Fault("password_hash", f"{error}; `hutch hash-password` prints one") from None


def _text(entry: Mapping[str, object], field: str) -> str:
    value = entry.get(field, "")
    if not isinstance(value, str):
        raise _Fault(field, "is not text")
    return value


def _tags(entry: Mapping[str, object]) -> tuple[str, ...]:
    tags = entry.get("tags", ())
    if isinstance(tags, str):  # as older exports have them
        tags = [tag.strip() for tag in tags.split(",") if tag.strip()]
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
        raise _Fault("tags", "is not a list of texts")
    return tuple(tags)


def _limits(entry: Mapping[str, object]) -> Mapping[str, int]:
    limits = entry.get("limits", {})
    # Older exports have an empty list where there are none.
    if not isinstance(limits, dict):
        if limits != []:
            raise _Fault("limits", "is not an object")
        return {}
    return limits
