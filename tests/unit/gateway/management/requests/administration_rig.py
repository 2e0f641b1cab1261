"""Requests of administrators to a broker on a store in memory."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gateway.management.administration import OWNER, Actor, Administration
from gateway.management.definitions.unfinished import UnfinishedImport
from gateway.management.requests.table import answer
from gateway.pending import Pending
from tests.unit.gateway.stream.link_rig import Broker

T = TypeVar("T")


def at_once(function: Callable[[], T]) -> Pending[T]:
    """Run what a thread would run."""
    pending: Pending[T] = Pending()
    outcome: T | BaseException
    try:
        outcome = function()
    except Exception as error:  # noqa: BLE001  # handed to who waits
        outcome = error
    pending.settle(outcome)
    return pending


class Rig:
    """An administration and what it administers."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.unfinished = UnfinishedImport(broker.store_rig.store, at_once)
        assert broker.store_rig.run(self.unfinished.load()) is None
        self.administration = Administration(
            broker.access,
            broker.virtual_hosts,
            broker.connections,
            broker.service,
            at_once,
            unfinished=self.unfinished,
        )

    def ask(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        body: bytes = b"",
        actor: Actor = OWNER,
    ) -> Any:  # noqa: ANN401  # what JSON holds
        asked = answer(self.administration, actor, name, arguments or {}, body)
        return self.broker.store_rig.run(asked)
