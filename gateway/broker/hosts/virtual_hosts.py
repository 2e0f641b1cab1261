"""The virtual hosts: which there are, kept in a table; created and deleted by administrators.

    h + name    JSON: name, description, tags, default_queue_type, metadata, state
    b           that there has been a first start

A virtual host is written down before it is made and taken out after all of it is gone.
"""

import dataclasses
import json
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from gateway.broker.access.access import Access
from gateway.broker.access.model import check_name
from gateway.broker.connections import Connections
from gateway.broker.errors import (
    InternalError,
    NoSuchVirtualHost,
    VirtualHostBusy,
    VirtualHostExists,
)
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.kept_table import KeptTable
from gateway.log.names import server_table
from gateway.pending import Pending
from store.api import SegmentStore
from store.errors import StoreError

log = logging.getLogger(__name__)

DEFAULT_NAME: Final = "/"
TABLE: Final = server_table("virtual-hosts")
_HOST: Final = b"h"
_BEGUN: Final = b"b"


@dataclass(frozen=True, slots=True)
class VirtualHostEntry:
    """A virtual host as it is kept; all but the name is for administrators."""

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    default_queue_type: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    is_going: bool = False
    """True if it is being deleted."""

    def pack(self) -> bytes:
        """Encode for the table."""
        return json.dumps(dataclasses.asdict(self)).encode()

    @classmethod
    def unpack(cls, value: bytes) -> "VirtualHostEntry":
        """Undo `pack`."""
        fields: dict[str, Any] = json.loads(value)
        return cls(**fields | {"tags": tuple(fields["tags"])})


@dataclass(frozen=True, slots=True)
class VirtualHostsPorts:
    """Ports of the virtual hosts.

    Attributes:
        store: The segment store.
        open_host: Opens everything of one, creating what is missing.
        access: Forgets the permissions of one that goes.
        connections: Ends those of one that goes.
    """

    store: SegmentStore
    open_host: Callable[[str], Coroutine[Pending[Any], None, VirtualHost]]
    access: Access
    connections: Connections


class VirtualHosts:
    """All virtual hosts. Create it with `open_virtual_hosts`."""

    def __init__(self, kept: KeptTable, ports: VirtualHostsPorts) -> None:
        self._kept = kept
        self._ports = ports
        self._entries: dict[str, VirtualHostEntry] = {}
        self._opened: dict[str, VirtualHost] = {}
        self._changing: Pending[None] | None = None
        ports.access.has_virtual_host = lambda name: self.find(name) is not None
        ports.access.user_left = self._drop_left_by

    def find(self, name: str) -> VirtualHost | None:
        """Return a virtual host that can be entered, None if there is none."""
        return self._opened.get(name)

    def names(self) -> list[str]:
        """All that can be entered, sorted."""
        return sorted(self._opened)

    def entry(self, name: str) -> VirtualHostEntry:
        """Return the kept row of a virtual host. Raises NoSuchVirtualHost."""
        if name not in self._opened:
            raise NoSuchVirtualHost(name)
        return self._entries[name]

    async def load(self) -> None:
        """Open all; on the very first start make the default one. Raises StoreError."""
        rows = await self._kept.load()
        if not rows:
            entry = VirtualHostEntry(DEFAULT_NAME, "Default virtual host")
            rows = {_key(entry.name): entry.pack(), _BEGUN: b"1"}
            await self._kept.write(rows)
        entries = [
            self._kept.unpacked(key, VirtualHostEntry.unpack, row)
            for key, row in rows.items()
            if key != _BEGUN
        ]
        for entry in entries:
            self._entries[entry.name] = entry
            opened = await self._open(entry.name)
            if not entry.is_going:
                self._opened[entry.name] = opened
                continue
            try:
                await self._finish_deletion(opened)
            except (StoreError, InternalError) as error:
                log.error("virtual host not deleted name=%s error=%s", entry.name, error)  # noqa: TRY400  # a full disk is no bug

    async def _open(self, name: str) -> VirtualHost:
        opened = await self._ports.open_host(name)
        opened.streams.limits = partial(self._ports.access.virtual_host_limits, name)
        opened.has_user = self._ports.access.has_user
        await opened.drop_strangers()
        return opened

    async def _drop_left_by(self, user: str) -> None:
        for opened in list(self._opened.values()):
            await opened.drop_strangers([user])

    async def create(
        self,
        name: str,
        *,
        description: str = "",
        tags: Sequence[str] = (),
        default_queue_type: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> VirtualHost:
        """Create a virtual host; no user has permissions there yet.

        Raises:
            Unusable: It cannot have this name.
            VirtualHostExists: It is there.
            VirtualHostBusy: One of that name is not quite deleted.
            StoreError: The store refused.
        """
        check_name(name, "virtual host")
        given = description, tuple(tags), default_queue_type, dict(metadata or {})
        await self._begin_change()
        try:
            if name in self._opened:
                raise VirtualHostExists(name)
            if name in self._entries:
                raise VirtualHostBusy(name)
            entry = VirtualHostEntry(name, *given)
            await self._kept.write({_key(name): entry.pack()})
            self._entries[name] = entry
            opened = self._opened[name] = await self._open(name)
        finally:
            self._end_change()
        log.info("virtual host created name=%s", name)
        return opened

    async def describe(
        self,
        name: str,
        *,
        description: str = "",
        tags: Sequence[str] = (),
        default_queue_type: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Replace the description of a virtual host. Raises NoSuchVirtualHost; StoreError."""
        given = description, tuple(tags), default_queue_type, dict(metadata or {})
        await self._begin_change()
        try:
            self.entry(name)
            entry = VirtualHostEntry(name, *given)
            await self._kept.write({_key(name): entry.pack()})
            self._entries[name] = entry
        finally:
            self._end_change()

    async def delete(self, name: str) -> None:
        """Delete a virtual host with all that is in it; its connections end.

        Raises:
            NoSuchVirtualHost: There is none of that name.
            StoreError: The store refused.
            InternalError: The same, of a stream. What is left goes at the next start, or when it
                is deleted again.
        """
        await self._begin_change()
        try:
            entry = self._entries.get(name)
            if entry is None:
                raise NoSuchVirtualHost(name)
            going = dataclasses.replace(entry, is_going=True)
            await self._kept.write({_key(name): going.pack()}, gives_space=True)
            self._entries[name] = going
            opened = self._opened.pop(name, None)
            for connection in self._ports.connections.of(virtual_host=name):
                connection.lose_access()
                connection.end("its virtual host was deleted")
            await self._finish_deletion(opened or await self._open(name))
        finally:
            self._end_change()

    async def _finish_deletion(self, opened: VirtualHost) -> None:
        await self._ports.access.forget_virtual_host(opened.name)
        await opened.delete_content(self._ports.store)
        await self._kept.write({_key(opened.name): None})
        del self._entries[opened.name]
        opened.let_go()
        log.info("virtual host deleted name=%s", opened.name)

    async def close(self) -> None:
        """Wait until all that was accepted is stored."""
        for opened in self._opened.values():
            await opened.close()

    async def _begin_change(self) -> None:
        while self._changing is not None:
            await self._changing
        self._changing = Pending()

    def _end_change(self) -> None:
        changing, self._changing = self._changing, None
        assert changing is not None
        changing.settle(None)


def _key(name: str) -> bytes:
    return _HOST + name.encode()


async def open_virtual_hosts(ports: VirtualHostsPorts) -> VirtualHosts:
    """Open all virtual hosts. Raises StoreError."""
    hosts = VirtualHosts(KeptTable(ports.store, TABLE), ports)
    await hosts.load()
    return hosts
