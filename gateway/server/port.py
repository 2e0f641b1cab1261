"""Ports, as the process runs them: one class for each protocol, at the addresses of its settings.

A process makes its ports from the settings, and then does each step for all of them before the
next: `prepare`, `bind`, `serve` at the start, and `stop_accepting`, `settle`, `close` at the end.
Nothing is bound before every setting was looked at, and nothing is closed before what clients have
sent is stored. A member of a cluster comes to `bind` and `wait` first, until it is its turn.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, Self, TypeVar

from gateway.network.listening import Address, take_all
from gateway.server.context import ServerContext
from gateway.server.endpoint import PortEndpoint, TlsEndpoint
from gateway.settings.model import Settings

B_contra = TypeVar("B_contra", contravariant=True)
"""The backend, as the port needs it."""


class Port(ABC, Generic[B_contra]):
    """A protocol at its endpoints.

    Attributes:
        endpoints: The addresses of the port, in the order of its settings.
        context: State that the ports share; the process sets it before `prepare`.
    """

    context: ServerContext

    def __init__(self, endpoints: Iterable[PortEndpoint]) -> None:
        self.endpoints = list(endpoints)

    @classmethod
    @abstractmethod
    def configured(cls, settings: Settings) -> Self | None:
        """Return the port that the settings ask for, None if they ask for none; blocks.

        It reads the files that the settings name, and binds nothing. On the event loop.

        Raises:
            ConfigError: A setting is wrong, or something that it needs is missing.
        """

    async def prepare(self, backend: B_contra) -> None:
        """Take the steps that can show a wrong setting, now that the store is open.

        Raises ConfigError or StoreError.
        """

    async def wait(self, backend: B_contra) -> None:
        """Answer what can be answered of a process that waits for its turn, `bind` comes before.

        Nothing behind the port is open. Raises ConfigError.
        """

    def bind(self) -> None:
        """Take the addresses. Raises ConfigError: all that cannot be had."""
        take_all(each.bind for each in self.endpoints)

    @abstractmethod
    async def serve(self, backend: B_contra) -> None:
        """Let clients come in. Raises ConfigError or StoreError."""

    def stop_accepting(self) -> None:
        """Refuse new clients; those that are there stay."""
        for each in self.endpoints:
            each.stop_accepting()

    async def settle(self) -> None:
        """Wait until all that was taken from clients is stored. Raises StoreError."""

    async def close(self) -> None:
        """End all that is left. Also of a port that never served."""
        for each in self.endpoints:
            each.close()

    @property
    @abstractmethod
    def ready(self) -> str:
        """The words of the ready line, as `name=host:port`; empty for none."""

    @property
    def further_addresses(self) -> list[Address]:
        """The addresses of each endpoint behind its first."""
        return [address for each in self.endpoints for address in each.addresses[1:]]

    @property
    def over_tls(self) -> list[TlsEndpoint]:
        """The endpoints that have certificates."""
        return [each for each in self.endpoints if isinstance(each, TlsEndpoint)]
