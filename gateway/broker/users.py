"""Who may log in: the users of a file, or the one user guest.

The file is TOML or (by its ending .json) JSON with a list `users`; RabbitMQ's exported definitions
have one, and can be given as they are:

    [[users]]
    name = "app"
    password_hash = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
    hashing_algorithm = "rabbit_password_hashing_sha256"
    tags = ["administrator"]
"""

import enum
import json
import logging
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.broker.passwords import Algorithm, PasswordHash, UnusableHash
from gateway.config import ConfigError, Problem, UsersSettings

log = logging.getLogger(__name__)

GUEST: Final = "guest"

VIRTUAL_HOST: Final = "/"
"""The one virtual host there is."""

_FIELDS: Final = frozenset({"name", "password_hash", "hashing_algorithm", "tags", "limits"})


class Login(enum.Enum):
    """How an attempt to log in ends."""

    OK = "ok"
    REFUSED = "refused"
    """No such user, or not the password: which of the two is not told."""
    LOOPBACK_ONLY = "loopback only"
    """The password is right, but this user must come from the server's own machine."""


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who may log in."""

    name: str
    password_hash: PasswordHash | None
    """None: this user has no password, and cannot log in with one."""
    tags: tuple[str, ...] = ()


class Users:
    """Everybody who may log in, and what for."""

    def __init__(self, users: Iterable[User], *, guest_loopback_only: bool = True) -> None:
        self._users = {user.name: user for user in users}
        self._guest_loopback_only = guest_loopback_only

    @classmethod
    def load(cls, settings: UsersSettings) -> "Users":
        """Read the users' file; without one there is guest with the password guest.

        Raises:
            ConfigError: The file cannot be read, or entries are wrong: one line for each fault.
        """
        if settings.file is None:
            users = [User(GUEST, PasswordHash.of(GUEST), ("administrator",))]
        else:
            users = _read(settings.file)
        return cls(users, guest_loopback_only=settings.guest_loopback_only)

    def authenticate(self, name: str, password: bytes, *, peer_is_loopback: bool) -> Login:
        """Judge an attempt to log in.

        Args:
            name: The user's name.
            password: As it came over the wire. An empty one is always refused.
            peer_is_loopback: Whether the other side is on this machine.
        """
        user = self._users.get(name)
        if user is None or user.password_hash is None or not password:
            return Login.REFUSED
        if not user.password_hash.matches(password):
            return Login.REFUSED
        if name == GUEST and self._guest_loopback_only and not peer_is_loopback:
            return Login.LOOPBACK_ONLY
        return Login.OK

    def may_open(self, name: str, virtual_host: str) -> bool:
        """Tell whether a user may open a virtual host."""
        return name in self._users and virtual_host == VIRTUAL_HOST


def _read(path: Path) -> list[User]:
    content = _content(path)
    entries = content.get("users")
    if not isinstance(entries, list) or not entries:
        raise ConfigError(Problem(f"{path}: users", "missing: a list of at least one user"))
    if content.keys() & {"permissions", "topic_permissions"}:
        log.warning("permissions of the users file are not used yet file=%s", path)
    problems: list[Problem] = []
    users: dict[str, User] = {}
    for index, entry in enumerate(entries):
        where = f"{path}: users[{index}]"
        try:
            user = _user(entry)
        except _Fault as fault:
            problems.append(Problem(f"{where}.{fault.field}" if fault.field else where, str(fault)))
            continue
        if user.name in users:
            problems.append(Problem(f"{where}.name", f"{user.name!r} is there twice"))
        users[user.name] = user
    if problems:
        raise ConfigError(*problems)
    return list(users.values())


def _content(path: Path) -> Mapping[str, object]:
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise ConfigError(Problem(str(path), f"cannot read it: {error.strerror}")) from None
    except ValueError as error:  # of JSON, TOML or UTF-8
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise ConfigError(Problem(str(path), f"not {kind}: {error}")) from None
    if not isinstance(content, dict):
        raise ConfigError(Problem(str(path), "holds no list called users"))
    return content


class _Fault(Exception):
    """What is wrong with an entry, and in which field."""

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
    return User(name, _password_hash(entry), _tags(entry))


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
        raise _Fault("password_hash", str(error)) from None


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
