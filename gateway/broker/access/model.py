"""Users, permissions and limits as they are kept: their fields, and the names they may have."""

import enum
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.broker.errors import UnusableValue
from gateway.broker.patterns import Pattern, UnusablePattern

NAME_BYTES_MAX: Final = 255
"""Longest name of a user or a virtual host: as long as other protocols of RabbitMQ can say."""

USER_LIMITS: Final = frozenset(("max-connections", "max-channels"))
"""Channels are of other protocols; the limit is kept for an export to RabbitMQ."""
VIRTUAL_HOST_LIMITS: Final = frozenset(("max-connections", "max-queues"))
"""Queues are streams here."""


class Right(enum.Enum):
    """A right that a pattern gives on the names that it matches."""

    CONFIGURE = "configure"
    WRITE = "write"
    READ = "read"


@dataclass(frozen=True, slots=True)
class User:
    """A user, which may log in."""

    name: str
    password_hash: PasswordHash | None
    """None: this user has no password, and cannot log in with one."""
    tags: tuple[str, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    """Some of USER_LIMITS; below 0 is no limit."""
    loopback_only: bool = False
    """True if this user must come from the server's own machine."""
    mark: str = field(default="", compare=False)
    """Differs from that of deleted users of its name; '' until it is stored."""

    def __post_init__(self) -> None:
        check_name(self.name, "user")
        check_limits(self.limits, USER_LIMITS)

    def pack(self) -> bytes:
        """Encode for the table."""
        hashed = self.password_hash
        fields = {
            "name": self.name,
            "password_hash": "" if hashed is None else hashed.text,
            "hashing_algorithm": None if hashed is None else hashed.algorithm.value,
            "tags": self.tags,
            "limits": dict(self.limits),
            "loopback_only": self.loopback_only,
            "mark": self.mark,
        }
        return json.dumps(fields).encode()

    @classmethod
    def unpack(cls, value: bytes) -> "User":
        """Undo `pack`."""
        fields: dict[str, Any] = json.loads(value)
        text, algorithm = fields["password_hash"], fields["hashing_algorithm"]
        hashed = PasswordHash(Algorithm(algorithm), text) if text else None
        return cls(
            fields["name"],
            hashed,
            tuple(fields["tags"]),
            fields["limits"],
            fields["loopback_only"],
            fields["mark"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UserPermission:
    """The rights of a user in one virtual host; each is a pattern on names."""

    user: str
    virtual_host: str
    configure: str
    write: str
    read: str
    _patterns: Mapping[Right, Pattern] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        patterns: dict[Right, Pattern] = {}
        for right in Right:
            try:
                text: str = getattr(self, right.value)
                # An empty pattern is found everywhere; here it stands for "nothing".
                patterns[right] = Pattern(text if text != "" else "^$")
            except UnusablePattern as error:
                raise UnusableValue(f"pattern to {right.value} {error}") from None
        object.__setattr__(self, "_patterns", patterns)

    def allows(self, right: Right, name: str) -> bool:
        """Return whether the user has a right on a name."""
        return self._patterns[right].matches(name)

    def pack(self) -> bytes:
        """Encode for the table."""
        names = ("user", "virtual_host", *(right.value for right in Right))
        return json.dumps({name: getattr(self, name) for name in names}).encode()

    @classmethod
    def unpack(cls, value: bytes) -> "UserPermission":
        """Undo `pack`."""
        return cls(**json.loads(value))


PermissionKey: TypeAlias = tuple[str, str]
"""A user and a virtual host."""

_NONE: Final[Mapping[str, UserPermission]] = MappingProxyType({})


class Permissions:
    """The permissions of all users, in no order: one's are found without a look at others'."""

    def __init__(self) -> None:
        self._by_user: dict[str, dict[str, UserPermission]] = {}

    def __iter__(self) -> Iterator[UserPermission]:
        return chain.from_iterable(each.values() for each in self._by_user.values())

    def of(self, user: str) -> Mapping[str, UserPermission]:
        """Return the permissions of a user, by virtual host."""
        return self._by_user.get(user, _NONE)

    def find(self, user: str, virtual_host: str) -> UserPermission | None:
        """Return a user's permission in a virtual host, None if it has none."""
        return self.of(user).get(virtual_host)

    def put(self, some: Iterable[UserPermission]) -> None:
        """Add permissions, or replace those that a user has in a virtual host."""
        for one in some:
            self._by_user.setdefault(one.user, {})[one.virtual_host] = one

    def remove(self, keys: Iterable[PermissionKey]) -> None:
        """Take permissions out, which are there."""
        for user, virtual_host in keys:
            theirs = self._by_user[user]
            del theirs[virtual_host]
            if not theirs:
                del self._by_user[user]


def check_name(name: str, what: str) -> None:
    """Refuse the name of a user or a virtual host that cannot be one. Raises Unusable."""
    try:
        raw = name.encode()
    except UnicodeEncodeError:
        raise UnusableValue(f"the name of a {what} is not valid text: {name!r}") from None
    if not 1 <= len(raw) <= NAME_BYTES_MAX:
        size = len(raw)
        raise UnusableValue(
            f"the name of a {what} must have 1 to {NAME_BYTES_MAX} bytes, this one has {size}"
        )
    if "\x00" in name:
        raise UnusableValue(f"the name of a {what} must not contain NUL")


def check_limits(limits: Mapping[str, int], known: frozenset[str]) -> None:
    """Refuse limits that are not known, or that are no numbers. Raises Unusable."""
    for name, value in limits.items():
        if name not in known:
            raise UnusableValue(
                f"{name!r} is not a limit; the limits are {', '.join(sorted(known))}"
            )
        if type(value) is not int:  # a bool is one to isinstance
            raise UnusableValue(f"{name} is not a whole number")
