"""The table of users, permissions and limits.

u + user                        a user
p + size of user, user, host    what a user may do in a virtual host
l + host                        the limits of a virtual host
b                               that there has been a first start
"""

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from gateway.broker.access.model import PermissionKey, Permissions, User, UserPermission
from gateway.broker.errors import UnusableValue
from gateway.broker.kept_table import KeptTable
from gateway.log.names import server_table
from store.api import SegmentStore

log = logging.getLogger(__name__)

TABLE: Final = server_table("access")
BEGUN: Final = b"b"
"""The key that says that there has been a first start: no first user is made any more."""

_USER: Final = b"u"
_PERMISSION: Final = b"p"
_LIMITS: Final = b"l"


@dataclass(slots=True)
class Rows:
    """Content of the table.

    Attributes:
        is_fresh: Nothing was ever written.
        users: By name.
        permissions: Those of users in virtual hosts.
        limits: Those of virtual hosts, by name.
    """

    is_fresh: bool
    users: dict[str, User] = field(default_factory=dict)
    permissions: Permissions = field(default_factory=Permissions)
    limits: dict[str, Mapping[str, int]] = field(default_factory=dict)


class AccessTable:
    """Reads and writes the rows."""

    def __init__(self, store: SegmentStore) -> None:
        self._kept = KeptTable(store, TABLE)

    async def load(self) -> Rows:
        """Read everything, creating the table if it is missing. Raises StoreError."""
        stored = await self._kept.load()
        rows = Rows(is_fresh=not stored)
        for key, value in stored.items():
            row = self._row(key, value)
            if isinstance(row, User):
                rows.users[row.name] = row
            elif isinstance(row, UserPermission):
                rows.permissions.put([row])
            elif row is not None:
                rows.limits[key[1:].decode()] = row
        return rows

    def _row(self, key: bytes, value: bytes) -> User | UserPermission | Mapping[str, int] | None:
        try:
            return self._kept.unpacked(key, partial(unpack_row, key), value)
        except UnusableValue as error:  # another version found it good
            what = "permission cannot be used, and allows nothing row=%.200r error=%s"
            log.error(what, value, error)  # noqa: TRY400  # for the operator
            return None

    async def write(
        self, *, users: Iterable[User] = (), permissions: Collection[UserPermission] = ()
    ) -> None:
        """Write users and permissions, all or none. Raises StoreError."""
        rows = {_user_key(user.name): user.pack() for user in users}
        # Permissions alone come after users, which have left the mark.
        is_marked = bool(permissions) and not rows
        rows |= {_permission_key(one.user, one.virtual_host): one.pack() for one in permissions}
        await self._kept.write(rows if is_marked else {BEGUN: b"1"} | rows)

    async def write_limits(self, virtual_host: str, limits: Mapping[str, int]) -> None:
        """Write the limits of a virtual host; the row goes where there are none."""
        value = json.dumps(dict(limits)).encode() if limits else None
        await self._kept.write({_LIMITS + virtual_host.encode(): value})

    async def remove(
        self,
        *,
        user: str | None = None,
        permissions: Iterable[PermissionKey] = (),
        limits_of: str | None = None,
    ) -> None:
        """Remove a user, permissions and the limits of a virtual host, all or none."""
        changes: dict[bytes, bytes | None] = {_permission_key(*key): None for key in permissions}
        if user is not None:
            changes |= {_user_key(user): None, BEGUN: b"1"}
        if limits_of is not None:
            changes[_LIMITS + limits_of.encode()] = None
        await self._kept.write(changes)


def unpack_row(key: bytes, value: bytes) -> User | UserPermission | Mapping[str, int] | None:
    """Decode a row; None if it is only a mark.

    Raises:
        UnusableValue: This version cannot use it.
        ValueError: It was never written; or a like error.
    """
    match key[:1]:
        case b"u":
            return User.unpack(value)
        case b"p":
            return UserPermission.unpack(value)
        case b"l":
            return _limits_of(value)
    return None


def _user_key(name: str) -> bytes:
    return _USER + name.encode()


def _permission_key(user: str, virtual_host: str) -> bytes:
    raw = user.encode()
    return _PERMISSION + len(raw).to_bytes(2) + raw + virtual_host.encode()


def _limits_of(value: bytes) -> dict[str, int]:
    """Decode the limits of a virtual host. Raises ValueError."""
    limits: dict[str, int] = json.loads(value)
    if any(type(each) is not int for each in limits.values()):
        raise ValueError("these are no limits")
    return limits
