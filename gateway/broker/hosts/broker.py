"""The broker of a server, open, as the ports of its protocols get it."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

from gateway.broker.access.access import Access
from gateway.broker.access.authentication import Authentication
from gateway.broker.connections import Connections
from gateway.broker.hosts.virtual_hosts import VirtualHosts
from gateway.broker.service import ServiceState
from store.api import SegmentStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """Users, virtual hosts and clients.

    Attributes:
        store: The open store.
        connections: The clients of all protocols.
        service: State of service: alarms, drain and listeners.
        readers: Ended before the streams are closed: parts of ports that read them by themselves.
    """

    store: SegmentStore
    access: Access
    authentication: Authentication
    virtual_hosts: VirtualHosts
    connections: Connections
    service: ServiceState
    readers: list[Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=list)


class BrokerBackend(Protocol):
    """A backend with a broker."""

    @property
    def broker(self) -> Broker:
        """The open broker."""
        ...
