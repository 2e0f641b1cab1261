"""What exchanges, bindings and super streams do, without a store: the model of a property."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import astuple, dataclass, field
from typing import Any

from gateway.broker.topology.exchanges import PARTITION_ORDER, Binding, Exchange
from hutch.stream.codes import ResponseCode

OK = ResponseCode.OK
UNKNOWN = ResponseCode.STREAM_DOES_NOT_EXIST
EXISTS = ResponseCode.STREAM_ALREADY_EXISTS
PRECONDITION = ResponseCode.PRECONDITION_FAILED


@dataclass(frozen=True)
class Create:
    name: str


@dataclass(frozen=True)
class Delete:
    name: str


@dataclass(frozen=True)
class CreateSuper:
    name: str
    partitions: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True)
class DeleteSuper:
    name: str


@dataclass(frozen=True)
class Add:
    name: str
    partitions: tuple[str, ...]


@dataclass(frozen=True)
class Declare:
    name: str
    kind: str


@dataclass(frozen=True)
class Undeclare:
    name: str


@dataclass(frozen=True)
class Bind:
    name: str
    stream: str
    key: str
    order: int | None

    @property
    def binding(self) -> Binding:
        arguments = {} if self.order is None else {PARTITION_ORDER: self.order}
        return Binding(
            source=self.name, destination=self.stream, routing_key=self.key, arguments=arguments
        )


@dataclass(frozen=True)
class Unbind(Bind):
    pass


Operation = Create | Delete | CreateSuper | DeleteSuper | Add | Declare | Undeclare | Bind | Unbind


@dataclass
class Model:
    """Streams with whether they were born as partitions, exchanges, and what joins them."""

    streams: dict[str, bool] = field(default_factory=dict)
    exchanges: dict[str, str] = field(default_factory=lambda: {"amq.topic": "topic"})
    bindings: set[tuple[str, str, str, int | None]] = field(default_factory=set)

    def after(self, operation: Operation) -> tuple["Model", int]:
        """Return the model after an operation, and the operation's code."""
        changed = deepcopy(self)
        code = changed.do(operation)
        return (changed if code == OK else self), code

    def do(self, operation: Operation) -> int:
        """Do an operation; return its code. After any other code than OK all is undone."""
        ways: dict[type, Callable[..., int]] = {
            Create: self._create,
            Delete: self._delete,
            CreateSuper: self._create_super,
            DeleteSuper: self._delete_super,
            Add: self._add,
            Declare: self._declare,
            Undeclare: self._undeclare,
            Bind: self._bind,
            Unbind: self._unbind,
        }
        return ways[type(operation)](*astuple(operation))

    def _declare(self, name: str, kind: str) -> int:
        there = self.exchanges.setdefault(name, kind)
        # A super stream's is a direct one, and of arguments only the alternate is compared.
        return OK if there == kind or (there, kind) == ("super", "direct") else PRECONDITION

    def _bind(self, *binding: Any) -> int:  # noqa: ANN401 - a binding's fields
        if binding[0] not in self.exchanges or binding[1] not in self.streams:
            return UNKNOWN
        self.bindings.add(binding)
        return OK

    def _unbind(self, *binding: Any) -> int:  # noqa: ANN401 - a binding's fields
        if binding[0] not in self.exchanges or binding[1] not in self.streams:
            return UNKNOWN
        self.bindings.discard(binding)
        return OK

    def _create(self, name: str) -> int:
        if name in self.streams:
            return PRECONDITION if self.streams[name] else EXISTS
        self.streams[name] = False
        return OK

    def _delete(self, name: str) -> int:
        if name not in self.streams:
            return UNKNOWN
        del self.streams[name]
        self.bindings = {each for each in self.bindings if each[1] != name}
        return OK

    def _create_super(self, name: str, partitions: tuple[str, ...], keys: tuple[str, ...]) -> int:
        if len(keys) != len(partitions) or len(set(partitions)) != len(partitions):
            return PRECONDITION
        if name in self.exchanges or any(each in self.streams for each in partitions):
            return EXISTS
        self.exchanges[name] = "super"
        self._join(name, partitions, keys, 0)
        return OK

    def _add(self, name: str, partitions: tuple[str, ...]) -> int:
        if name not in self.exchanges:
            return UNKNOWN
        if self.exchanges[name] != "super" or len(set(partitions)) != len(partitions):
            return PRECONDITION
        if any(each in self.streams for each in partitions):
            return EXISTS
        orders = [order for at, _, _, order in self.bindings if at == name and order is not None]
        self._join(name, partitions, partitions, max(orders, default=-1) + 1)
        return OK

    def _join(self, name: str, partitions: tuple[str, ...], keys: tuple[str, ...], at: int) -> None:
        for order, (partition, key) in enumerate(zip(partitions, keys, strict=True), start=at):
            self.streams[partition] = True
            self.bindings.add((name, partition, key, order))

    def _delete_super(self, name: str) -> int:
        if name not in self.exchanges or name.startswith("amq."):
            return UNKNOWN
        for _, stream, _, _ in [each for each in self.bindings if each[0] == name]:
            self._delete(stream)
        return self._undeclare(name)

    def _undeclare(self, name: str) -> int:
        if name.startswith("amq."):
            return PRECONDITION
        if name not in self.exchanges:
            return UNKNOWN
        del self.exchanges[name]
        self.bindings = {each for each in self.bindings if each[0] != name}
        return OK

    def partitions(self, name: str) -> tuple[int, tuple[str, ...]]:
        if name not in self.exchanges:
            return UNKNOWN, ()
        found = sorted(
            (order is None, order or 0, stream)
            for at, stream, _, order in self.bindings
            if at == name
        )
        return OK, tuple(stream for _, _, stream in found)

    def route(self, name: str, routing_key: str) -> tuple[int, tuple[str, ...]]:
        if name not in self.exchanges:
            return UNKNOWN, ()
        kind = self.exchanges[name]
        found = {
            stream
            for at, stream, key, _ in self.bindings
            if at == name
            and (key == routing_key or kind == "fanout" or (kind, key) == ("topic", "#"))
        }
        return OK, tuple(sorted(found))


def exchange_of(operation: Declare) -> Exchange:
    """Return what an operation declares."""
    return Exchange(operation.name, operation.kind)
