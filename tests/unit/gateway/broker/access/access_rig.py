"""Users and virtual hosts on a store in memory, without connections but those of the test."""

from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gateway.broker.access.access import Access, May, open_access
from gateway.broker.access.model import Right
from gateway.broker.connections import (
    ConnectionDetails,
    Connections,
    ConsumerDetails,
    PublisherDetails,
)
from gateway.broker.streams.catalogue import Stream
from gateway.network.transport import Transport
from gateway.pending import Pending, run
from tests.conformance.harness import Loop
from tests.conformance.model import Model
from tests.conformance.model_store import ModelStore

T = TypeVar("T")


def outcome_of(coroutine: Coroutine[Pending[Any], None, T]) -> T | BaseException:
    """Run what has nothing to wait for; give what it returned or raised."""
    outcomes: list[Any] = []
    run(coroutine, outcomes.append)
    (outcome,) = outcomes
    return outcome  # type: ignore[no-any-return]  # what the coroutine gave


@dataclass(eq=False)
class Client:
    """A connection that remembers what was done to it."""

    user: str
    virtual_host_name: str = "/"
    protocol: str = "stream"
    peer: str = "127.0.0.1:50000"
    local: str = "127.0.0.1:5552"
    client_properties: dict[str, str] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)

    def details(self) -> ConnectionDetails:
        return ConnectionDetails("PLAIN", 60, 1_048_576, Transport(100, 200))

    def publisher_details(self) -> list[PublisherDetails]:
        return []

    def consumer_details(self) -> list[ConsumerDetails]:
        return []

    def cut_off(self, reason: str) -> None:
        self.events.append(f"cut off: {reason}")

    def lose_each(self, streams: Iterable[Stream]) -> None:
        self.events.append(f"lost: {len(list(streams))}")

    def lose_access(self) -> None:
        self.events.append("access lost")

    def rights_changed(self, may: May) -> None:
        self.events.append(f"may write a: {may(Right.WRITE, 'a')}")

    def end(self, reason: str) -> None:
        self.events.append(f"ended: {reason}")

    def hold_publishing(self) -> None:
        self.events.append("held")

    def release_publishing(self) -> None:
        self.events.append("released")


class AccessRig:
    """A store, a registry, and the users."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.model = Model()
        self.store = ModelStore(self.loop, self.model)
        self.connections = Connections()
        self.access = self.open()

    def open(self) -> Access:
        """Open what is in the store, as a server does that starts."""
        return self.run(open_access(self.store, self.connections))

    def connect(self, user: str, virtual_host: str = "/") -> Client:
        client = Client(user, virtual_host)
        self.connections.add(client)
        return client

    def run(self, coroutine: Coroutine[Pending[Any], None, T]) -> T:
        outcomes: list[Any] = []
        run(coroutine, outcomes.append)
        self.loop.run_until(lambda: bool(outcomes))
        (outcome,) = outcomes
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome  # type: ignore[no-any-return]  # what the coroutine gave
