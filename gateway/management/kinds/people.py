"""Users, and what they may do in virtual hosts."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from gateway.broker.access.model import USER_LIMITS, Right, User, UserPermission
from gateway.broker.access.passwords import (
    RABBITMQ_ALGORITHMS,
    Algorithm,
    PasswordHash,
    UnusableHash,
)
from gateway.management.errors import shown
from gateway.management.kinds.entry import (
    Context,
    DefinitionEntry,
    Fault,
    required_pattern,
    usable_name,
)
from gateway.management.kinds.kind import Key, ObjectKind
from gateway.management.kinds.virtual_hosts import HOSTS

if TYPE_CHECKING:  # all of the broker, which a command line does without
    from gateway.management.administration import Administration

NO_PASSWORD: Final = ""
"""The hash of a user that cannot log in with a password."""


class _Users(ObjectKind[User]):
    name, word = "users", "user"
    thing = User
    section = "users"
    in_host, is_of_cluster, is_replaced = False, True, True
    removal = 6

    def read(self, entry: DefinitionEntry, _context: Context) -> tuple[Key, User]:
        """Read a user with the hash of its password."""
        name = usable_name(entry.name(), self.word)
        if "password" in entry:
            raise Fault(
                "password: never in clear; password_hash takes what `hutch hash-password` prints"
            )
        hashed = _password(entry)
        return ("", name), User(name, hashed, entry.tags(), entry.limits("limits", USER_LIMITS))

    def written(self, thing: User) -> dict[str, Any]:
        return self.with_hash(thing, None if _has_foreign_hash(thing) else thing.password_hash)

    def with_hash(self, user: User, hashed: PasswordHash | None) -> dict[str, Any]:
        """Write a user in RabbitMQ's form, with this hash of its password."""
        return {
            "name": user.name,
            "password_hash": NO_PASSWORD if hashed is None else hashed.text,
            "hashing_algorithm": (Algorithm.SHA256 if hashed is None else hashed.algorithm).value,
            "tags": list(user.tags),
            "limits": dict(user.limits),
        }

    def loss(self, thing: User) -> str:
        said = f"user {thing.name!r} is written without a password: RabbitMQ cannot use its hash"
        return said if _has_foreign_hash(thing) else ""

    def differs(self, thing: User, current: User, notes: list[str]) -> bool:
        if thing.password_hash is None and _has_foreign_hash(current):
            notes.append("the file has no password for it: the one it has here stays")
        return self.over(thing, current) != current

    def over(self, thing: User, current: User | None) -> User:
        if current is None:
            return thing
        is_kept = thing.password_hash is None and _has_foreign_hash(current)
        hashed = current.password_hash if is_kept else thing.password_hash
        return replace(thing, password_hash=hashed, loopback_only=current.loopback_only)

    def all(self, administration: "Administration") -> Iterable[tuple[Key, User]]:
        return ((("", each.name), each) for each in administration.access.users())

    def find(self, administration: "Administration", key: Key) -> User | None:
        return administration.access.user(key[1])

    def group(self, _key: Key) -> Hashable:
        return None

    async def put(
        self, administration: "Administration", things: Mapping[Key, User], made: set[Key]
    ) -> None:
        await administration.access.put_many(things.values(), [])
        made.update(things)

    async def remove(self, administration: "Administration", key: Key) -> None:
        await administration.access.delete_user(key[1])


def _has_foreign_hash(user: User) -> bool:
    """Return whether a password is kept in a form that RabbitMQ lacks, and is not given away."""
    hashed = user.password_hash
    return hashed is not None and hashed.algorithm not in RABBITMQ_ALGORITHMS


def _password(entry: DefinitionEntry) -> PasswordHash | None:
    text = entry.text("password_hash", NO_PASSWORD)
    named = entry.text("hashing_algorithm", "")
    if text == NO_PASSWORD:
        return None
    try:
        # Exports from before 3.6 name none, and have MD5's size.
        wanted = Algorithm(named) if named else None
    except ValueError:
        entry.notes.append(
            f"hashing_algorithm {shown(named)} is not known: no password until one is set"
        )
        return None
    try:
        parsed = PasswordHash.parse(text, wanted)
    except UnusableHash as error:
        raise Fault(f"password_hash {error}") from None
    if not named and parsed.algorithm is not Algorithm.MD5:
        entry.notes.append(f"no hashing_algorithm: taken for {parsed.algorithm.value} by its size")
    return parsed


class _Permissions(ObjectKind[UserPermission]):
    name, word = "permissions", "permission"
    thing = UserPermission
    outer_names: Mapping[str, str] = {"virtual_host": "vhost"}
    section, named_by = "permissions", "user"
    is_of_cluster = is_replaced = True
    removal = 5

    def called(self, key: Key) -> str:
        return f"permission of {shown(key[1])}"

    def read(self, entry: DefinitionEntry, context: Context) -> tuple[Key, UserPermission]:
        """Read what a user may do in a virtual host."""
        user, virtual_host = entry.name("user"), context.host_of(entry)
        patterns = {right.value: required_pattern(entry, right.value) for right in Right}
        return (virtual_host, user), UserPermission(
            user=user, virtual_host=virtual_host, **patterns
        )

    def needs(self, key: Key) -> Sequence[tuple[ObjectKind[Any], Key]]:
        return (HOSTS, ("", key[0])), (USERS, ("", key[1]))

    def key(self, _virtual_host: str, thing: UserPermission) -> Key:
        return thing.virtual_host, thing.user

    def all(self, administration: "Administration") -> Iterable[tuple[Key, UserPermission]]:
        permissions = administration.access.permissions()
        return (((each.virtual_host, each.user), each) for each in permissions)

    def find(self, administration: "Administration", key: Key) -> UserPermission | None:
        return administration.access.permission(key[1], key[0])

    def group(self, _key: Key) -> Hashable:
        return None

    async def put(
        self, administration: "Administration", things: Mapping[Key, UserPermission], made: set[Key]
    ) -> None:
        await administration.access.put_many([], things.values())
        made.update(things)

    async def remove(self, administration: "Administration", key: Key) -> None:
        await administration.access.delete_permission(key[1], key[0])


USERS: Final = _Users()
PERMISSIONS: Final = _Permissions()
