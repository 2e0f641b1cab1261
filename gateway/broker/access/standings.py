"""Standings of users: the state that a token with the user's name rests on.

A user's standing is another one when its password or one of its permissions changes, and when it is
deleted and made again. A token notes the standing of its time. A connection with something that
rests on a token watches, and is told of users that are not what they were.
"""

import dataclasses
import hashlib
import json
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, TypeAlias

from gateway.broker.access.model import Permissions, User

Describe: TypeAlias = Callable[[str], bytes | None]
"""Returns everything of a user that a standing depends on, None if there is no such user."""
Told: TypeAlias = Callable[[Collection[str]], object]
"""Takes note of the users whose standing has changed, or that are gone."""

_BYTES: Final = 32
_MARK_BYTES: Final = 8


class Standings:
    """The standings of the users of a server."""

    def __init__(self, describe: Describe) -> None:
        self._describe = describe
        self._known: dict[str, bytes] = {}
        self._watchers: dict[int, Told] = {}
        self._watches = 0

    def of(self, user: str) -> bytes | None:
        """Return a user's standing, of 32 bytes; None if there is no such user."""
        standing = self._known.get(user)
        if standing is None:
            standing = self._found(user)
            if standing is not None:
                self._known[user] = standing
        return standing

    def _found(self, user: str) -> bytes | None:
        description = self._describe(user)
        if description is None:
            return None
        return hashlib.blake2b(description, digest_size=_BYTES).digest()

    def watch(self, told: Told) -> Callable[[], object]:
        """Call `told` at each change from now on; return a function that ends that."""
        self._watches += 1
        number = self._watches
        self._watchers[number] = told
        return lambda: self._watchers.pop(number, None)

    def look_again(self, users: Iterable[str]) -> None:
        """Call the watchers with those of some users whose standing has changed.

        Nothing rests on a standing that was never asked for.
        """
        before = {user: self._known.pop(user) for user in set(users) if user in self._known}
        changed = {user for user, standing in before.items() if self.of(user) != standing}
        if changed:
            for told in tuple(self._watchers.values()):
                told(changed)


NO_USERS = Standings(lambda _user: None)
"""Those of a server without users."""


def described(users: Mapping[str, User], permissions: Permissions, name: str) -> bytes | None:
    """Return everything on which the rights of a user depend, None if there is no such user."""
    user = users.get(name)
    if user is None:
        return None
    hashed = user.password_hash
    password = None if hashed is None else (hashed.algorithm.value, hashed.text)
    rights = [one.pack().decode() for _, one in sorted(permissions.of(name).items())]
    return json.dumps((user.mark, password, rights)).encode()


def marked(user: User, known: Mapping[str, User]) -> User:
    """Return a user with the mark of the one of its name; with a new mark if there is none."""
    before = known.get(user.name)
    mark = secrets.token_hex(_MARK_BYTES) if before is None else before.mark
    return dataclasses.replace(user, mark=mark)
