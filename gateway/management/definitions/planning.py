"""From what a file says and what there is to what has to be done; decides, and does nothing."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gateway.broker.access.model import User
from gateway.broker.rules.arguments import StreamArguments
from gateway.management.definitions.errors import DefinitionsError, shown
from gateway.management.definitions.objects import (
    KINDS,
    Definitions,
    Key,
    has_foreign_hash,
    is_super_stream,
    named,
)
from gateway.management.definitions.reading import ReadDefinitions, row_of
from gateway.management.definitions.report import Outcome, Row

ALREADY: Final = "is so already"
PARTITIONS_MAX: Final = 1_000


@dataclass(slots=True)
class Plan:
    """The work of an import.

    Attributes:
        changes: What to create or overwrite.
        rows: The outcome of every object of the file.
    """

    changes: Definitions = field(default_factory=Definitions)
    rows: list[Row] = field(default_factory=list)

    @property
    def change_count(self) -> int:
        """Return how many objects are created or overwritten; 0 if all is as the file says."""
        return sum(len(self.changes.of(kind)) for kind in KINDS)


class _Conflict(Exception):
    """An object of the file is left out: the one that is there stays."""


class _Missing(_Conflict):
    """An object of the file needs one that is not here."""


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
            current = self._current.of(kind)
            for key, thing in self._wanted.of(kind).items():
                self._judge(kind, key, thing, current.get(key))
        self._count_partitions()
        self._count_streams()
        self._read.demand_no_problems()
        self._plan.rows.extend(self._read.skipped)
        return self._plan

    def _judge_limits(self) -> None:
        """Judge limits for virtual hosts of which the file says nothing else."""
        for name, limits in self._read.limits.items():
            key = "", name
            known = self._current.hosts.get(key)
            if known is None:
                self._read.complain(f"limits of virtual host {shown(name)}: there is none")
            else:
                self._judge("hosts", key, replace(known, limits=limits), known)

    def _judge(self, kind: str, key: Key, thing: Any, current: Any) -> None:  # noqa: ANN401  # of any kind
        notes = list(self._read.notes.get((kind, key), ()))
        if kind == "hosts" and key in self._read.only_named and current is not None:
            thing = replace(current, limits=thing.limits or current.limits)
        try:
            self._require_references(kind, key)
            is_changed = current is None or _differs(kind, thing, current, notes)
        except _Conflict as conflict:
            row = row_of(kind, key, Outcome.SKIPPED, str(conflict))
            self._plan.rows.append(replace(row, is_lost=isinstance(conflict, _Missing)))
            return
        except DefinitionsError as error:
            self._read.complain(str(error))
            return
        outcome = Outcome.ADAPTED if notes else Outcome.IMPORTED
        if is_changed:
            self._plan.changes.of(kind)[key] = thing
        else:
            notes.append(ALREADY)
        self._plan.rows.append(row_of(kind, key, outcome, "; ".join(notes)))

    def _require_references(self, kind: str, key: Key) -> None:
        host, name = key[:2]
        if kind in ("hosts", "users"):
            return
        if not self._has("hosts", host):
            raise DefinitionsError(f"{named(kind, key)}: there is no virtual host {shown(host)}")
        if kind == "permissions" and not self._has("users", name):
            raise DefinitionsError(f"{named(kind, key)}: there is no user {shown(name)}")
        if kind == "bindings":
            self._require_ends(key)

    def _has(self, kind: str, name: str) -> bool:
        """Return whether there is a user or virtual host, or would be but for faults of its own."""
        is_here = any(("", name) in each.of(kind) for each in (self._wanted, self._current))
        return is_here or (kind, name) in self._read.faulty

    def _require_ends(self, binding: Key) -> None:
        """An end may be missing because it was skipped, or because exports leave it out."""
        host, source, destination = binding[:3]
        both = self._wanted, self._current
        if source not in self._built_in and not any((host, source) in of.exchanges for of in both):
            raise _Missing(f"there is no exchange {shown(source)} here")
        if not any((host, destination) in of.streams for of in both):
            raise _Missing(f"there is no stream {shown(destination)} here")

    def _count_partitions(self) -> None:
        exchanges = self._current.exchanges | self._wanted.exchanges
        bindings = self._current.bindings | self._wanted.bindings
        for key, count in Counter(key[:2] for key in bindings).items():
            if count > self._partitions_max and is_super_stream(exchanges.get(key)):
                self._read.complain(
                    f"{named('exchanges', key)}: a super stream of {count} partitions; at most"
                    f" {self._partitions_max} may be"
                )

    def _count_streams(self) -> None:
        """Demand room for the streams that come, under the limits that there will be."""
        there = Counter(host for host, _ in self._current.streams)
        coming = Counter(host for host, _ in self._plan.changes.streams)
        hosts = self._current.hosts | self._plan.changes.hosts
        for name, count in coming.items():
            host = hosts.get(("", name))
            if host is None:  # its own entry has faults
                continue
            limit = host.limits.get("max-queues", -1)
            if 0 <= limit < there[name] + count:
                self._read.complain(
                    f"virtual host {shown(name)}: {there[name] + count} streams would be in it;"
                    f" its limit max-queues is {shown(limit)}"
                )


def _differs(kind: str, thing: Any, current: Any, notes: list[str]) -> bool:  # noqa: ANN401  # of any kind
    """Return whether what is there has to be written over. Raises _Conflict if it cannot be."""
    if kind == "users":
        if thing.password_hash is None and has_foreign_hash(current):
            notes.append("the file has no password for it: the one it has here stays")
        thing = with_own(thing, current)
    elif kind == "streams":
        if StreamArguments.parse(thing.arguments) != StreamArguments.parse(current.arguments):
            raise _Conflict(
                f"exists with other arguments, which stay: {_listed(current.arguments)}"
            )
        return False
    elif kind == "exchanges" and thing != current:
        raise _Conflict("exists with another type or other arguments, which stay")
    return bool(thing != current)


def with_own(user: User, current: User | None) -> User:
    """Return a user of a file with what of the user that is there no export can hold."""
    if current is None:
        return user
    is_kept = user.password_hash is None and has_foreign_hash(current)
    hashed = current.password_hash if is_kept else user.password_hash
    return replace(user, password_hash=hashed, loopback_only=current.loopback_only)


def _listed(arguments: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={shown(value)}" for name, value in arguments.items()) or "none"
