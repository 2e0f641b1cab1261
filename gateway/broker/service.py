"""State of service of the whole server: its listeners, its alarms, and administrators' changes.

Nothing of this is stored: the next start begins with the settings, without an alarm, in service.
"""

import enum
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from gateway.broker.cluster import ClusterControl
from gateway.broker.connections import Connections
from gateway.broker.patience import Patience

log = logging.getLogger(__name__)


class ScarceResource(enum.Enum):
    """A resource that the server may be short of."""

    DISK = "disk"
    """No client may publish."""
    MEMORY = "memory"
    """Shown to administrators; stream clients go on, as with RabbitMQ."""


class ListenerControl(Protocol):
    """A listener, as administrators see it."""

    @property
    def protocol(self) -> str:
        """RabbitMQ's name of the protocol there, as `stream` or `stream/ssl`."""
        ...

    @property
    def addresses(self) -> Sequence[tuple[str, int]]:
        """Hosts and ports that are listened on."""
        ...

    @property
    def is_shut(self) -> bool:
        """True if new connections are refused."""
        ...

    def shut(self) -> None:
        """Refuse new connections from now on; those that are open stay."""
        ...

    def cut(self) -> int:
        """End every connection that came in here, without a Close; return how many there were."""
        ...

    def reopen(self) -> None:
        """Take in clients again, at the addresses of before.

        Raises OSError, whose `filename` is the address, if one is taken by now.
        """
        ...


class ServicePart(Protocol):
    """Work that goes on beside the clients, as administrators see it."""

    @property
    def ended(self) -> list[str]:
        """Parts of it that have ended though the server goes on, in words."""
        ...


class ListenerBlocked(Exception):
    """A listener cannot be opened again; the message says why."""


@dataclass(frozen=True, slots=True)
class About:
    """Facts about the server, for administrators.

    Attributes:
        version: Its own.
        data: The directory of everything stored.
        started_ms: When it started, in milliseconds since 1970.
    """

    version: str = ""
    data: Path = Path()
    started_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)

    @property
    def peer_properties(self) -> dict[str, str]:
        """The properties that clients are told, which look for RabbitMQ's words."""
        return {
            "cluster_name": "rabbit@localhost (Hutch)",
            "copyright": "Copyright (c) the Hutch authors",
            "information": "Licensed under Apache-2.0. Speaks the protocol of https://rabbitmq.com",
            "platform": f"Erlang/OTP 29.1.1 (in truth Hutch {self.version} on Python)",
            "product": "RabbitMQ",
            "version": "4.3.6",
        }


class ServiceState:
    """State that concerns all connections alike, and can change while they are open.

    Attributes:
        about: The server.
        is_disk_full: Whether publishes are refused for want of space; clients are still read.
        consumer_update_timeout_ms: How long a single active consumer may take to answer.
        is_draining: Clients are to be sent to other servers, and no more are let in.
        is_stopped: No client is served, though all is kept.
        cluster: The cluster; None if this server is alone.
        patience: The time limit of requests in a cluster.
    """

    def __init__(
        self,
        connections: Connections,
        consumer_update_timeout_ms: int = 60_000,
        about: About | None = None,
    ) -> None:
        self.about = about or About()
        self.is_disk_full = False
        self.consumer_update_timeout_ms = consumer_update_timeout_ms
        self.is_draining = False
        self.is_stopped = False
        self.cluster: ClusterControl | None = None
        self.patience: Patience | None = None
        self._connections = connections
        self._listeners: list[ListenerControl] = []
        self._parts: list[ServicePart] = []
        self._alarms: set[ScarceResource] = set()

    @property
    def listeners(self) -> list[ListenerControl]:
        """Listeners of the stream protocol."""
        return list(self._listeners)

    def add_listener(self, listener: ListenerControl) -> None:
        """Note a listener that was opened."""
        self._listeners.append(listener)

    def add_part(self, part: ServicePart) -> None:
        """Note work that goes on beside the clients."""
        self._parts.append(part)

    @property
    def ended(self) -> list[str]:
        """Work that should go on and has ended, in words; only a start begins it again."""
        return [text for part in self._parts for text in part.ended]

    # Alarms

    @property
    def alarms(self) -> list[ScarceResource]:
        """Resources that the server is short of, by name."""
        full = {ScarceResource.DISK} if self.is_disk_full else set()
        return sorted(self._alarms | full, key=lambda resource: resource.value)

    @property
    def alarm_names(self) -> list[str]:
        """The names of all alarms, those of the cluster too."""
        names = [resource.value for resource in self.alarms]
        return names if self.cluster is None else names + self.cluster.alarms

    @property
    def takes_publishers(self) -> bool:
        """True if clients may publish."""
        return ScarceResource.DISK not in self._alarms

    def set_alarm(self, resource: ScarceResource) -> None:
        """Note that the server is short of something: without disk, publishers are not read."""
        if resource in self._alarms:
            return
        self._alarms.add(resource)
        log.warning("alarm set resource=%s", resource.value)
        if resource is ScarceResource.DISK:
            self._tell(lambda connection: connection.hold_publishing())

    def clear_alarm(self, resource: ScarceResource) -> None:
        """Note that there is enough of it again."""
        if resource not in self._alarms:
            return
        self._alarms.discard(resource)
        log.warning("alarm cleared resource=%s", resource.value)
        if resource is ScarceResource.DISK:
            self._tell(lambda connection: connection.release_publishing())

    def _tell(self, tell: Callable[..., object]) -> None:
        for connection in self._connections:
            tell(connection)

    # Maintenance

    def drain(self) -> None:
        """Let no more clients in, and say of no stream that it is here; open connections stay."""
        if not self.is_draining:
            self.is_draining = True
            log.warning("draining, no new connections")
        self._shut()

    def revive(self) -> None:
        """End `drain`. Raises ListenerBlocked."""
        if not self.is_stopped:
            self._reopen()
        if self.is_draining:
            self.is_draining = False
            log.warning("in service again")

    def stop(self) -> int:
        """Let no client in and end every connection; everything is kept. Returns how many ended."""
        self.is_stopped = True
        self._shut()
        log.warning("stopped, no client is served until started again")
        return sum(listener.cut() for listener in self._listeners)

    def start(self) -> None:
        """End `stop`. Raises ListenerBlocked."""
        if not self.is_draining:
            self._reopen()
        self.is_stopped = False

    def _shut(self) -> None:
        for listener in self._listeners:
            if not listener.is_shut:
                listener.shut()

    def _reopen(self) -> None:
        for listener in self._listeners:
            if listener.is_shut:
                try:
                    listener.reopen()
                except OSError as error:
                    reason = error.strerror or str(error)
                    raise ListenerBlocked(f"cannot listen on {error.filename}: {reason}") from error
