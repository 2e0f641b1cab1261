"""From what a file says and what there is to what has to be done; decides, and does nothing."""

from dataclasses import dataclass, field, replace
from typing import Any, Final

from gateway.management.definitions.reading import ReadDefinitions, row_of
from gateway.management.definitions.report import ImportOutcome, ReportRow
from gateway.management.errors import DefinitionsError, shown
from gateway.management.kinds import table
from gateway.management.kinds.entry import Needless, Skip
from gateway.management.kinds.kind import Comparison, Definitions, Key, ObjectKind
from gateway.management.kinds.virtual_hosts import HOSTS

ALREADY: Final = "is so already"
PARTITIONS_MAX: Final = 1_000


@dataclass(slots=True)
class ImportPlan:
    """The work of an import.

    Attributes:
        changes: What to create or overwrite.
        rows: The outcome of every object of the file.
    """

    changes: Definitions = field(default_factory=Definitions)
    rows: list[ReportRow] = field(default_factory=list)

    @property
    def change_count(self) -> int:
        """Return how many objects are created or overwritten; 0 if all is as the file says."""
        return self.changes.count


def plan_import(
    read: ReadDefinitions, current: Definitions, *, partitions_max: int = PARTITIONS_MAX
) -> ImportPlan:
    """Compare a file with the server.

    Args:
        read: The file.
        current: What the server has.
        partitions_max: Most partitions of one super stream.

    Raises:
        DefinitionsError: The file has faults, or something in it refers to what neither the file
            nor the server has: all of it together.
    """
    return _Planner(read, current, partitions_max).plan()


class _Planner:
    def __init__(self, read: ReadDefinitions, current: Definitions, partitions_max: int) -> None:
        self._read = read
        self._plan = ImportPlan()
        self._both = Comparison(read.definitions, current, self._plan.changes, partitions_max)

    def plan(self) -> ImportPlan:
        """Judge everything; raises DefinitionsError."""
        self._judge_limits()
        for kind in table.KINDS:
            current = self._both.current.of(kind)
            for key, thing in self._both.wanted.of(kind).items():
                self._judge(kind, key, thing, current.get(key))
        for kind in reversed(table.KINDS):
            for fault in kind.faults(self._both):
                self._read.complain(fault)
        self._read.demand_no_problems()
        self._plan.rows.extend(self._read.skipped)
        return self._plan

    def _judge_limits(self) -> None:
        """Judge limits for virtual hosts of which the file says nothing else."""
        for name, limits in self._read.limits.items():
            key = "", name
            known = self._both.current.of(HOSTS).get(key)
            if known is None:
                self._read.complain(f"limits of virtual host {shown(name)}: there is none")
            else:
                self._judge(HOSTS, key, replace(known, limits=limits), known)

    def _judge(self, kind: ObjectKind[Any], key: Key, thing: Any, current: Any) -> None:  # noqa: ANN401  # of any kind
        notes = list(self._read.notes.get((kind.name, key), ()))
        if kind is HOSTS and key in self._read.only_named and current is not None:
            thing = replace(current, limits=thing.limits or current.limits)
        try:
            self._require_needs(kind, key)
            is_changed = current is None or kind.differs(thing, current, notes)
        except Skip as skip:
            row = row_of(kind, key, ImportOutcome.SKIPPED, str(skip))
            self._plan.rows.append(replace(row, is_lost=not isinstance(skip, Needless)))
            return
        except DefinitionsError as error:
            self._read.complain(str(error))
            return
        outcome = ImportOutcome.ADAPTED if notes else ImportOutcome.IMPORTED
        if is_changed:
            self._plan.changes.of(kind)[key] = thing
        else:
            notes.append(ALREADY)
        self._plan.rows.append(row_of(kind, key, outcome, "; ".join(notes)))

    def _require_needs(self, kind: ObjectKind[Any], key: Key) -> None:
        """Demand the objects that an object needs.

        Raises:
            DefinitionsError: A virtual host or a user is missing.
            Skip: Another object is.
        """
        for needed, place in kind.needs(key):
            if self._has(needed, place):
                continue
            missing = f"there is no {needed.word} {shown(place[1])}"
            if needed.is_of_cluster:
                raise DefinitionsError(f"{kind.named(key)}: {missing}")
            raise Skip(f"{missing} here")

    def _has(self, kind: ObjectKind[Any], key: Key) -> bool:
        """Return whether there is an object, or would be but for faults of its own."""
        return (
            kind.is_built_in(key)
            or any(key in each.of(kind) for each in (self._both.wanted, self._both.current))
            or (kind.name, key[1]) in self._read.faulty
        )
