"""Exchanges, and the bindings by which they lead to streams."""

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from gateway.broker.naming import without_line_ends
from gateway.broker.topology.exchange import (
    ALTERNATE_EXCHANGE,
    PARTITION_ORDER,
    SUPER_STREAM,
    Binding,
    Exchange,
    is_predeclared,
)
from gateway.management.errors import shown
from gateway.management.kinds.entry import Context, DefinitionEntry, Needless, Skip
from gateway.management.kinds.kind import Comparison, Definitions, Key, Notes, ObjectKind
from gateway.management.kinds.streams import RESERVED_PREFIX, STREAMS
from gateway.management.kinds.virtual_hosts import HOSTS, HostedKind, host_of

if TYPE_CHECKING:  # all of the broker, which a command line does without
    from gateway.broker.hosts.virtual_host import VirtualHost
    from gateway.management.administration import Administration

TYPES: Final = ("direct", "fanout", "topic")
_BUILT_IN: Final = frozenset({"amq.direct", "amq.fanout", "amq.topic"})
_DIGITS: Final = re.compile(r"(\d{1,9})")


class _Exchanges(HostedKind[Exchange]):
    name, word = "exchanges", "exchange"
    thing = Exchange
    section = "exchanges"
    removal = 2

    def read(self, entry: DefinitionEntry, context: Context) -> tuple[Key, Exchange]:
        """Read an exchange."""
        name = entry.name()
        kind = entry.text("type")
        if not name or name.startswith(RESERVED_PREFIX):
            raise Needless("is there from the start, or not at all")
        if kind not in TYPES:
            raise Skip(f"type {shown(kind)} is not known; there are {', '.join(TYPES)}")
        taken = self.taken(entry, is_outer=True, name=name, type=kind)
        if not isinstance(taken.arguments.get(ALTERNATE_EXCHANGE, ""), str):
            entry.notes.append(
                f"{ALTERNATE_EXCHANGE} is not the name of an exchange, so there is none"
            )
        return (context.host_of(entry), name), taken

    def is_built_in(self, key: Key) -> bool:
        return key[1] in _BUILT_IN

    def differs(self, thing: Exchange, current: Exchange, _notes: list[str]) -> bool:
        if thing != current:
            raise Needless("exists with another type or other arguments, which stay")
        return False

    def all_in(self, host: "VirtualHost") -> Iterable[Exchange]:
        return (each for each in host.exchanges.all() if not is_predeclared(each.name))

    def listed_in(self, host: "VirtualHost") -> Iterable[Exchange]:
        return sorted(host.exchanges.all(), key=lambda exchange: exchange.name)

    async def put_in(self, host: "VirtualHost", thing: Exchange) -> bool:
        return await host.exchanges.declare(thing)

    async def remove_from(self, host: "VirtualHost", key: Key) -> None:
        await host.exchanges.delete(key[1])


class _Bindings(HostedKind[Binding]):
    name, word = "bindings", "binding"
    thing = Binding
    section, named_by = "bindings", "source"
    removal = 1

    def called(self, key: Key) -> str:
        return f"binding from {shown(key[1])} to {shown(key[2])}"

    def place_of(self, key: Key) -> tuple[str, str]:
        return key[0], f"{key[1]} → {key[2]}"

    def name_in(self, content: Mapping[str, object]) -> object:
        return f"{content.get('source')} → {content.get('destination')}"

    def key(self, virtual_host: str, thing: Binding) -> Key:
        """Return the key of a binding: all that it says."""
        arguments = json.dumps(dict(thing.arguments), sort_keys=True)
        return virtual_host, thing.source, thing.destination, thing.routing_key, arguments

    def read(self, entry: DefinitionEntry, context: Context) -> tuple[Key, Binding]:
        """Read a binding from an exchange to a stream."""
        source = entry.name("source")
        if not source:
            raise Needless("every stream is bound to the default exchange anyway")
        if entry.text("destination_type", "queue") != "queue":
            raise Skip("leads to an exchange; here bindings lead to streams")
        destination = without_line_ends(entry.name("destination"))
        routing_key = entry.name("routing_key") if "routing_key" in entry else ""
        ends = {"source": source, "destination": destination, "routing_key": routing_key}
        taken = self.taken(entry, is_outer=True, **ends)
        return self.key(context.host_of(entry), taken), taken

    def finish(self, definitions: Definitions, notes: Notes) -> None:
        """Number the partitions of super streams that an older export has without order."""
        bindings, exchanges = definitions.of(self), definitions.of(EXCHANGES)
        partitions: dict[Key, dict[Key, Binding]] = {}
        for key, binding in bindings.items():
            if _is_super_stream(exchanges.get(key[:2])):
                partitions.setdefault(key[:2], {})[key] = binding
        for some in partitions.values():
            if any(PARTITION_ORDER in binding.arguments for binding in some.values()):
                continue
            for order, (key, binding) in enumerate(sorted(some.items(), key=_natural_order)):
                arguments = {**binding.arguments, PARTITION_ORDER: order}
                numbered = replace(binding, arguments=arguments)
                del bindings[key]
                new = self.key(key[0], numbered)
                bindings[new] = numbered
                notes[self.name, new] = [
                    *notes.pop((self.name, key), []),
                    f"had no {PARTITION_ORDER}: by its name it is partition {order}",
                ]

    def written(self, thing: Binding) -> dict[str, Any]:
        in_order = dict.fromkeys(("source", "destination", "destination_type"), "queue")
        return {**in_order, **self.outer(thing)}

    def needs(self, key: Key) -> Sequence[tuple[ObjectKind[Any], Key]]:
        """Return its ends, which may be missing: they were skipped, or exports leave them out."""
        host, source, destination = key[:3]
        ends = (EXCHANGES, (host, source)), (STREAMS, (host, destination))
        return (HOSTS, ("", host)), *ends

    def goes_with(self, key: Key) -> Sequence[tuple[ObjectKind[Any], Key]]:
        return self.needs(key)[:2]

    def faults(self, comparison: Comparison) -> Iterable[str]:
        """Demand that super streams have no more partitions than may be."""
        current, wanted, most = comparison.current, comparison.wanted, comparison.partitions_max
        exchanges = current.of(EXCHANGES) | wanted.of(EXCHANGES)
        bindings = current.of(self) | wanted.of(self)
        for key, count in Counter(key[:2] for key in bindings).items():
            if count > most and _is_super_stream(exchanges.get(key)):
                yield (
                    f"{EXCHANGES.named(key)}: a super stream of {count} partitions; at most"
                    f" {most} may be"
                )

    def packed_key(self, key: Key) -> object:
        return [*key[:-1], json.loads(key[-1])]

    def unpacked_key(self, packed: Any) -> Key:  # noqa: ANN401  # what JSON holds
        return *packed[:-1], json.dumps(packed[-1], sort_keys=True)

    def all_in(self, host: "VirtualHost") -> Iterable[Binding]:
        return host.exchanges.bindings()

    def group(self, key: Key) -> Hashable:
        return key[:2]

    async def put_in(self, host: "VirtualHost", thing: Binding) -> bool:
        await host.exchanges.bind(thing)
        return True

    async def put(
        self, administration: "Administration", things: Mapping[Key, Binding], made: set[Key]
    ) -> None:
        host = host_of(administration, next(iter(things)))
        await host.exchanges.bind(*things.values())
        made.update(things)

    async def remove_from(self, host: "VirtualHost", key: Key) -> None:
        source, destination, routing_key, arguments = key[1:]
        binding = Binding(
            source=source,
            destination=destination,
            routing_key=routing_key,
            arguments=json.loads(arguments),
        )
        await host.exchanges.unbind(binding)


def _is_super_stream(exchange: Exchange | None) -> bool:
    """Return whether there is an exchange whose bindings are partitions."""
    return exchange is not None and exchange.arguments.get(SUPER_STREAM) is True


def _natural_order(binding: tuple[Key, Binding]) -> list[object]:
    """`orders-10` after `orders-9`."""
    parts = _DIGITS.split(binding[1].destination)
    return [int(part) if index % 2 else part for index, part in enumerate(parts)]


EXCHANGES: Final = _Exchanges()
BINDINGS: Final = _Bindings()
