"""Users of a store that is served alone: a file that is read at the start.

Each line has a name, a password's hash and rights, as in Pravega's own file of users; empty lines
and those that begin with # count for nothing:

    app:$argon2id$v=19$m=19456,t=2,p=1$…:prn::/scope:orders,READ_UPDATE;prn::/scope:audit/*,READ

A right covers what lies beneath its resource.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Final, NamedTuple

from gateway.broker.access.model import Right, User
from gateway.broker.access.passwords import PasswordHash, UnusableHash
from gateway.broker.access.standings import Standings
from gateway.broker.errors import UnusableValue
from gateway.pravega.access.tokens import PRAVEGA, Claims, Path, path_of_resource
from gateway.settings.errors import ConfigError

SETTING: Final = "wire.users_file"


@dataclass(frozen=True, slots=True)
class StoreUser:
    """A user of the store, as a caller."""

    name: str
    claims: Claims

    def may(self, right: Right, scope: str, stream: str) -> bool:
        """Return whether it has a right on a stream; on its scope if the stream is ''."""
        return right in self.claims.rights_to((scope, stream) if stream else (scope,))


class _Entry(NamedTuple):
    """A line of the file: the text is all of it."""

    user: User
    caller: StoreUser
    text: str


class StoreUsers:
    """The users of a file.

    Attributes:
        standings: What their tokens rest on: a user is another one when its line is.
    """

    def __init__(self, entries: Mapping[str, _Entry]) -> None:
        self._entries = entries
        self.standings = Standings(self._line_of)

    def _line_of(self, name: str) -> bytes | None:
        entry = self._entries.get(name)
        return None if entry is None else entry.text.encode()

    def user(self, name: str) -> User | None:
        """Return a user, None if there is none of that name."""
        entry = self._entries.get(name)
        return None if entry is None else entry.user

    def caller(self, name: str) -> StoreUser:
        """Return the rights of a user that there is."""
        return self._entries[name].caller


def read_users(path: FilePath) -> StoreUsers:
    """Read the file.

    Raises:
        ConfigError: It cannot be read, has no users, or lines are wrong: each is named.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigError.in_file(SETTING, path, f"cannot read it: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError.in_file(SETTING, path, f"not UTF-8: {error}") from None
    entries: dict[str, _Entry] = {}
    problems = []
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        try:
            _add(entries, line)
        except _Fault as fault:
            problems.append(f"line {number}: {fault}")
    if not entries and not problems:
        problems.append("holds no users; a line is NAME:HASH:RESOURCE,RIGHT")
    if problems:
        raise ConfigError.in_file(SETTING, path, *problems)
    return StoreUsers(entries)


class _Fault(Exception):
    """A fault of a line."""


def _add(entries: dict[str, _Entry], line: str) -> None:
    parts = line.split(":", 2)
    if len(parts) < 3 or not all(parts):  # noqa: PLR2004  # the three of a line
        raise _Fault("is not NAME:HASH:RESOURCE,RIGHT")
    name, hashed, rights = parts
    if name in entries:
        raise _Fault(f"{name!r} is there twice")
    try:
        user = User(name, PasswordHash.parse(hashed))
    except UnusableHash as error:
        raise _Fault(f"the hash {error}; `hutch hash-password` prints one") from None
    except UnusableValue as error:
        raise _Fault(str(error)) from None
    entries[name] = _Entry(user, StoreUser(name, Claims(_rights(rights), None)), line)


def _without_star(resource: str) -> str:
    """Return the resource above a last name of `*`: only in a file does one stand for all names."""
    for named, above in (("/stream:*", "/*"), ("/scope:*", "/*")):
        if resource.endswith(named):
            return resource.removesuffix(named) + above
    return resource


def _rights(text: str) -> dict[Path, frozenset[Right]]:
    rights: dict[Path, frozenset[Right]] = {}
    for item in filter(None, (each.strip() for each in text.split(";"))):
        resource, _, word = (each.strip() for each in item.partition(","))
        path = path_of_resource(_without_star(resource))
        if path is None:
            known = "*, prn::/scope:S, prn::/scope:S/* or prn::/scope:S/stream:T"
            raise _Fault(f"{resource!r} is no resource; it is one of {known}")
        if word not in PRAVEGA:
            raise _Fault(f"{word!r} is no right; it is {' or '.join(PRAVEGA)}")
        rights[path] = rights.get(path, frozenset()) | PRAVEGA[word]
    return rights
