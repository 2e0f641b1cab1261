"""From what a file says and what there is to what has to be done; decides, and does nothing."""

from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from gateway.broker.arguments import StreamArguments
from gateway.management.definitions.errors import DefinitionsError, shown
from gateway.management.definitions.objects import (
    KINDS,
    NO_PASSWORD,
    BindingObject,
    DefinedObject,
    Definitions,
    ExchangeObject,
    HostObject,
    PermissionObject,
    StreamObject,
    UserObject,
    named,
    place_of,
)
from gateway.management.definitions.reading import ReadDefinitions, row_of
from gateway.management.definitions.report import Outcome, Row

ALREADY: Final = "is so already"
PARTITIONS_MAX: Final = 1_000


@dataclass(slots=True)
class Plan:
    """What an import does.

    Attributes:
        changes: What to create or overwrite, by kind, in the order of `KINDS`.
        rows: What becomes of every object of the file.
    """

    changes: dict[str, list[DefinedObject]] = field(
        default_factory=lambda: {kind: [] for kind in KINDS}
    )
    rows: list[Row] = field(default_factory=list)

    @property
    def change_count(self) -> int:
        """How many objects are created or overwritten; 0 if the file says what is so already."""
        return sum(len(things) for things in self.changes.values())


class _Conflict(Exception):
    """Why an object of the file is left out: what is there already stays."""


class _Missing(_Conflict):
    """What an object of the file needs is not here."""


def plan_import(
    read: ReadDefinitions,
    current: Definitions,
    *,
    built_in_exchanges: Collection[str] = (),
    partitions_max: int = PARTITIONS_MAX,
) -> Plan:
    """Compare a file with the server.

    Args:
        read: The file.
        current: What the server has.
        built_in_exchanges: Names of exchanges that every virtual host has.
        partitions_max: Most partitions of one super stream.

    Raises:
        DefinitionsError: The file has faults, or something in it refers to what neither the file
            nor the server has: all of it together.
    """
    return _Planner(read, current, built_in_exchanges, partitions_max).plan()


class _Planner:
    def __init__(
        self,
        read: ReadDefinitions,
        current: Definitions,
        built_in_exchanges: Collection[str],
        partitions_max: int,
    ) -> None:
        self._read = read
        self._wanted = read.definitions
        self._current = current
        self._built_in = built_in_exchanges
        self._partitions_max = partitions_max
        self._plan = Plan()

    def plan(self) -> Plan:
        """Judge everything; raises DefinitionsError."""
        self._judge_limits()
        for kind in KINDS:
            wanted: Mapping[Hashable, DefinedObject] = getattr(self._wanted, kind)
            current: Mapping[Hashable, DefinedObject] = getattr(self._current, kind)
            for key, thing in wanted.items():
                self._judge(kind, thing, current.get(key))
        self._count_partitions()
        self._count_streams()
        self._read.demand_no_problems()
        self._plan.rows.extend(self._read.skipped)
        return self._plan

    def _judge_limits(self) -> None:
        """Judge limits for virtual hosts of which the file says nothing else."""
        for name, limits in self._read.limits.items():
            known = self._current.hosts.get(name)
            if known is None:
                self._read.complain(f"limits of virtual host {shown(name)}: there is none")
            else:
                self._judge("hosts", replace(known, limits=limits), known)

    def _judge(self, kind: str, thing: DefinedObject, current: DefinedObject | None) -> None:
        notes = list(self._read.notes.get((kind, thing.key), ()))
        if thing.key in self._read.only_named and isinstance(current, HostObject):
            assert isinstance(thing, HostObject)
            thing = replace(current, limits=thing.limits or current.limits)
        try:
            self._require_references(thing)
            settled = _settle(thing, current, notes)
        except _Conflict as conflict:
            row = row_of(kind, thing, Outcome.SKIPPED, str(conflict))
            self._plan.rows.append(replace(row, is_lost=isinstance(conflict, _Missing)))
            return
        except DefinitionsError as error:
            self._read.complain(str(error))
            return
        if settled is not None:
            self._plan.changes[kind].append(settled)
        outcome = Outcome.ADAPTED if notes else Outcome.IMPORTED
        if settled is None:
            notes.append(ALREADY)
        self._plan.rows.append(row_of(kind, thing, outcome, "; ".join(notes)))

    def _require_references(self, thing: DefinedObject) -> None:
        if isinstance(thing, HostObject | UserObject):
            return
        host = thing.virtual_host
        if not self._has("hosts", host):
            raise DefinitionsError(f"{named(thing)}: there is no virtual host {shown(host)}")
        if isinstance(thing, PermissionObject) and not self._has("users", thing.user):
            raise DefinitionsError(f"{named(thing)}: there is no user {shown(thing.user)}")
        if isinstance(thing, BindingObject):
            self._require_ends(thing)

    def _has(self, kind: str, name: str) -> bool:
        """Tell whether there is a user or virtual host, or would be but for faults of its own."""
        is_here = name in getattr(self._wanted, kind) or name in getattr(self._current, kind)
        return is_here or (kind, name) in self._read.faulty

    def _require_ends(self, binding: BindingObject) -> None:
        """An end may be missing because it was skipped, or because exports leave it out."""
        source = (binding.virtual_host, binding.source)
        if (
            source not in self._wanted.exchanges
            and source not in self._current.exchanges
            and binding.source not in self._built_in
        ):
            raise _Missing(f"there is no exchange {shown(binding.source)} here")
        destination = (binding.virtual_host, binding.destination)
        if destination not in self._wanted.streams and destination not in self._current.streams:
            raise _Missing(f"there is no stream {shown(binding.destination)} here")

    def _count_partitions(self) -> None:
        counts: dict[Hashable, int] = {}
        for binding in (self._current.bindings | self._wanted.bindings).values():
            key: Hashable = (binding.virtual_host, binding.source)
            exchange = self._wanted.exchanges.get(key) or self._current.exchanges.get(key)
            if exchange is not None and exchange.is_super_stream:
                counts[key] = counts.get(key, 0) + 1
        for key, count in counts.items():
            if count > self._partitions_max:
                exchange = self._wanted.exchanges.get(key) or self._current.exchanges[key]
                self._read.complain(
                    f"{named(exchange)}: a super stream of {count} partitions; at most"
                    f" {self._partitions_max} may be"
                )

    def _count_streams(self) -> None:
        """Demand room for the streams that come, under the limits that there will be."""
        there = Counter(stream.virtual_host for stream in self._current.streams.values())
        coming = Counter(place_of(stream)[0] for stream in self._plan.changes["streams"])
        hosts: Mapping[Hashable, DefinedObject] = self._current.hosts | {
            host.key: host for host in self._plan.changes["hosts"]
        }
        for name, count in coming.items():
            host = hosts.get(name)
            if not isinstance(host, HostObject):  # its own entry has faults
                continue
            limit = host.limits.get("max-queues", -1)
            if 0 <= limit < there[name] + count:
                self._read.complain(
                    f"virtual host {shown(name)}: {there[name] + count} streams would be in it;"
                    f" its limit max-queues is {shown(limit)}"
                )


def _settle(
    thing: DefinedObject, current: DefinedObject | None, notes: list[str]
) -> DefinedObject | None:
    """Return what to write; None if it is so already. Raises _Conflict."""
    if current is None:
        return thing
    if isinstance(thing, UserObject) and isinstance(current, UserObject):
        return _settle_user(thing, current, notes)
    if isinstance(thing, StreamObject) and isinstance(current, StreamObject):
        if StreamArguments.parse(thing.arguments) != StreamArguments.parse(current.arguments):
            raise _Conflict(
                f"exists with other arguments, which stay: {_listed(current.arguments)}"
            )
        return None
    if thing == current or isinstance(thing, BindingObject):
        return None
    if isinstance(thing, ExchangeObject) and isinstance(current, ExchangeObject):
        raise _Conflict("exists with another type or other arguments, which stay")
    return thing


def _settle_user(thing: UserObject, current: UserObject, notes: list[str]) -> UserObject | None:
    """An export has no hash that RabbitMQ cannot use; brought back, it must not take it away."""
    if thing.password_hash == NO_PASSWORD and current.has_foreign_hash:
        notes.append("the file has no password for it: the one it has here stays")
        thing = replace(thing, has_foreign_hash=True)
    return None if thing == current else thing


def _listed(arguments: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={shown(value)}" for name, value in arguments.items()) or "none"
