"""One exchange with its bindings, and the rows of both in the catalogue's table."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final

from gateway.broker.errors import PreconditionFailed
from gateway.broker.rules.policies import Governed
from gateway.broker.streams.catalogue import LIVE, TOPOLOGY_PREFIX
from gateway.broker.topology.routes import DirectRoutes, FanoutRoutes, NoRoutes, Routes, TopicRoutes
from store.api import TableEntry

DEFAULT_EXCHANGE: Final = ""
"""Leads to every stream by its name; nothing else can be bound to it."""

DIRECT: Final = "direct"
FANOUT: Final = "fanout"
TOPIC: Final = "topic"
HEADERS: Final = "headers"

ALTERNATE_EXCHANGE: Final = "alternate-exchange"
"""Key of the exchange that gets unroutable messages, in policies and exchanges' arguments."""

SUPER_STREAM: Final = "x-super-stream"
"""Argument of an exchange that is a super stream."""

PARTITION_ORDER: Final = "x-stream-partition-order"
"""Argument of a binding: the partition's place in its super stream."""

ROUTES: Final[Mapping[str, Callable[[], Routes]]] = {
    DIRECT: DirectRoutes,
    FANOUT: FanoutRoutes,
    TOPIC: TopicRoutes,
}
EXCHANGE_KEY: Final = TOPOLOGY_PREFIX + b"exchange."
BINDING_KEY: Final = TOPOLOGY_PREFIX + b"binding."
_NUMBER_BYTES: Final = 8
_INTEGER: Final = re.compile("[+-]?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Exchange:
    """An exchange as it was declared.

    Attributes:
        name: Its name, as clients give it.
        type: DIRECT, FANOUT or TOPIC; HEADERS for two of the predeclared ones.
        durable: True if it outlives the server's process.
        auto_delete: True if it is deleted with its last binding.
        internal: True if publishing to it over HTTP is refused. Stream clients are not affected:
            they ask where a key leads, and publish to streams.
        arguments: Values as JSON has them.
    """

    name: str
    type: str = DIRECT
    _: KW_ONLY
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_super_stream(self) -> bool:
        """True if it was declared as a super stream."""
        return self.type == DIRECT and self.arguments.get(SUPER_STREAM) is True

    def check_again(self, asked: "Exchange") -> None:
        """Refuse to declare this exchange again as another one.

        Only the alternate exchange among the arguments is compared; the others stay as they are.

        Raises:
            PreconditionFailed: The exchanges differ; the message says in what.
        """
        pairs = {
            name: (getattr(asked, name), getattr(self, name))
            for name in ("type", "durable", "auto_delete", "internal")
        }
        pairs[ALTERNATE_EXCHANGE] = (
            asked.arguments.get(ALTERNATE_EXCHANGE),
            self.arguments.get(ALTERNATE_EXCHANGE),
        )
        for name, (received, current) in pairs.items():
            if received != current:
                raise PreconditionFailed(
                    f"inequivalent arg {name!r} for exchange {self.name!r}:"
                    f" received {json.dumps(received)[:200]} but current is {json.dumps(current)}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A binding of a stream to an exchange.

    Attributes:
        source: The exchange.
        destination: The stream.
        routing_key: A key, or a topic's pattern.
        arguments: Values as JSON has them. Two bindings may differ in these alone.
    """

    source: str
    destination: str
    routing_key: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """Its routing key, and its arguments if it has some, for a line of the log."""
        return f"{self.routing_key!r} {dict(self.arguments) or ''}".strip()


def is_predeclared(name: str) -> bool:
    """Return whether an exchange is predeclared."""
    return name == DEFAULT_EXCHANGE or name.startswith("amq.")


class Declared:
    """A declared exchange with its bindings.

    Attributes:
        exchange: The declaration.
        number: A number that no other exchange or stream of the virtual host ever had.
        bindings: By their keys in the table, in the order in which they were made.
        is_stored: True if it is in the table.
        is_kept: True while the holder of its lock binds or unbinds: the exchange does not go with
            its last binding until that has ended.
        is_bereft: True if the last binding went meanwhile.
        governed: What policies say of it.
    """

    def __init__(self, exchange: Exchange, number: int, *, is_stored: bool) -> None:
        self.exchange = exchange
        self.number = number
        self.is_stored = is_stored
        self.is_kept = self.is_bereft = False
        self.governed = Governed(exchange.name)
        self.bindings: dict[bytes, Binding] = {}
        self._routes = ROUTES.get(exchange.type, NoRoutes)()
        self._partitions: tuple[str, ...] | None = None

    def add(self, key: bytes, binding: Binding) -> None:
        """Add a binding; its stream exists."""
        self.bindings[key] = binding
        self._routes.add(binding.routing_key, binding.destination)
        self._partitions = None

    def remove(self, key: bytes) -> None:
        """Remove a binding."""
        binding = self.bindings.pop(key)
        self._routes.remove(binding.routing_key, binding.destination)
        self._partitions = None

    def route(self, routing_key: str) -> list[str]:
        """Return the streams that a routing key leads to, each once, by name."""
        return sorted(self._routes.match(routing_key))

    @property
    def partitions(self) -> tuple[str, ...]:
        """The streams of all bindings, by the bindings' order; those without one come last."""
        if self._partitions is None:
            ordered = sorted(self.bindings.values(), key=_place)
            self._partitions = tuple(binding.destination for binding in ordered)
        return self._partitions

    def orders_of(self, stream: str) -> list[int | None]:
        """Return the order of each binding of a stream, None for one without."""
        return [_order(each) for each in self.bindings.values() if each.destination == stream]

    @property
    def last_order(self) -> int:
        """The highest order of a binding, -1 if none has one."""
        orders = (_order(each) for each in self.bindings.values())
        return max((order for order in orders if order is not None), default=-1)

    def row(self, state: str = LIVE) -> TableEntry:
        """Return the exchange as a row of the table."""
        exchange = self.exchange
        fields = {
            "name": exchange.name,
            "number": self.number,
            "state": state,
            "type": exchange.type,
            "durable": exchange.durable,
            "auto_delete": exchange.auto_delete,
            "internal": exchange.internal,
            "arguments": dict(exchange.arguments),
        }
        return TableEntry(self.key, _packed(fields))

    @property
    def key(self) -> bytes:
        """The key of the exchange in the table."""
        return EXCHANGE_KEY + self.number.to_bytes(_NUMBER_BYTES)

    def binding_row(self, binding: Binding, generation: int) -> TableEntry:
        """Return a binding as a row of the table; `generation` is that of its stream."""
        fields = {
            "exchange": self.number,
            "stream": generation,
            "routing_key": binding.routing_key,
            "arguments": dict(binding.arguments),
        }
        value = _packed(fields)
        digest = hashlib.sha256(value).digest()
        return TableEntry(BINDING_KEY + self.number.to_bytes(_NUMBER_BYTES) + digest, value)


def _packed(fields: Mapping[str, Any]) -> bytes:
    """Encode fields so that equal ones have equal bytes. Raises PreconditionFailed."""
    try:
        return json.dumps(fields, sort_keys=True).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise PreconditionFailed(f"arguments cannot be kept: {error}") from error


def _order(binding: Binding) -> int | None:
    order = binding.arguments.get(PARTITION_ORDER)
    if isinstance(order, str) and _INTEGER.fullmatch(order):
        return int(order)
    return order if isinstance(order, int) else None


def _place(binding: Binding) -> tuple[bool, int, str]:
    order = _order(binding)
    return order is None, order or 0, binding.destination  # the same after each restart


def number_in(binding_key: bytes) -> int:
    """Return the number of the exchange whose binding has this key in the table."""
    return int.from_bytes(binding_key[len(BINDING_KEY) :][:_NUMBER_BYTES])
