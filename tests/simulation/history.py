"""What a store must hold after a crash: for each segment, one of the states that it went through.

A timeline has the states of one name in the order of its operations. After a crash the name must
be in one of them, and in none from before what was acknowledged.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from uuid import UUID

from store.api import ABSENT, Durability, TableEntry
from store.errors import DiskFull, StoreClosed, StoreError
from store.replica.shipping import Fenced
from tests.conformance.harness import Rig
from tests.conformance.model import Model, ModelSegment, ModelWriter, Versioned
from tests.simulation.crash import Crash

UNKNOWN = -7
"""The version of a table entry whose update was never acknowledged."""


@dataclass(frozen=True)
class SegmentState:
    """All that the store tells of one segment, but for times."""

    start: int
    is_sealed: bool
    is_table: bool
    key_length: int
    content: bytes
    """From `start` on; of a table nothing."""
    attributes: dict[UUID, int]
    entries: dict[bytes, Versioned]

    def __str__(self) -> str:
        kind = f"table of {len(self.entries)}" if self.is_table else "segment"
        numbers = {str(key)[-4:]: value for key, value in self.attributes.items()}
        end = self.start + len(self.content)
        return (
            f"{kind} [{self.start}, {end}){' sealed' * self.is_sealed} {numbers} "
            f"{self.content[-20:]!r} {sorted(self.entries.items())!r:.200}"
        )


def state_of(model: Model, name: str) -> SegmentState | None:
    """Tell what the model holds under a name."""
    segment = model.segments.get(name)
    if segment is None:
        return None
    return SegmentState(
        0 if segment.is_table else segment.start,
        segment.is_sealed,
        segment.is_table,
        segment.key_length,
        segment.data[segment.start :],
        dict(segment.attributes),
        dict(segment.entries),
    )


def model_of(states: dict[str, SegmentState | None]) -> Model:
    """Build a model that holds these states."""
    model = Model()
    for name, state in states.items():
        if state is None:
            continue
        model.segments[name] = ModelSegment(
            name,
            is_table=state.is_table,
            key_length=state.key_length,
            data=bytes(state.start) + state.content,
            start=state.start,
            is_sealed=state.is_sealed,
            attributes=dict(state.attributes),
            entries=dict(state.entries),
        )
    return model


def is_same(expected: SegmentState | None, seen: SegmentState | None) -> bool:
    if expected == seen:
        return True
    if expected is None or seen is None or not expected.entries:
        return False
    known = {
        key: (value, seen.entries.get(key, (b"", UNKNOWN))[1] if version == UNKNOWN else version)
        for key, (value, version) in expected.entries.items()
    }
    return expected.__dict__ | {"entries": known} == seen.__dict__


def is_cut_short(
    expected: SegmentState | None,
    seen: SegmentState | None,
    later: Iterable[SegmentState | None],
) -> bool:
    """Tell whether a segment that lost its last bytes has kept a truncation behind them."""
    if expected is None or seen is None or not expected.start <= seen.start:
        return False
    if not any(state is not None and state.start >= seen.start for state in later):
        return False
    content = expected.content[seen.start - expected.start :]
    return replace(expected, start=seen.start, content=content) == seen


@dataclass
class Operation:
    """One call, and when it was made and answered: places in the record of the disk."""

    index: int
    method: str
    arguments: tuple[object, ...]
    options: dict[str, object]
    names: tuple[str, ...]
    durability: Durability
    issued_at: int
    session: int | None = None
    """Which session an append is of, or an `open_writer` opens."""
    answered_at: int | None = None
    result: object = None

    @property
    def is_acknowledged(self) -> bool:
        return self.answered_at is not None and not isinstance(self.result, StoreError)

    @property
    def is_unknown(self) -> bool:
        """Nobody knows whether it happened: the journal failed with it, or there is no answer."""
        return self.answered_at is None or isinstance(self.result, StoreClosed | Fenced)

    def is_under_way(self, cut: int) -> bool:
        """Tell whether it was called, and not yet answered, at a place of the record."""
        return self.issued_at <= cut and (self.answered_at is None or self.answered_at > cut)

    def __str__(self) -> str:
        text = f"{self.method}{self.arguments!r:.100} {self.options or ''}"
        return (
            f"#{self.index} [{self.issued_at}…{self.answered_at}] {self.names} session "
            f"{self.session} {text} -> {self.result!r:.100}"
        )


@dataclass(frozen=True)
class Moment:
    """A state of a name, from the operation that brought it about."""

    state: SegmentState | None
    operation: Operation | None


@dataclass
class Timeline:
    """The states of one name."""

    name: str
    moments: list[Moment] = field(default_factory=list)
    seen: list[tuple[int, int]] = field(default_factory=list)
    """What a reader saw: from which place of the record on which moment must have been reached."""


def apply(
    operation: Operation,
    model: Model,
    sessions: dict[int, ModelWriter],
    versions: Sequence[int] | None = None,
) -> object:
    """Do in the model what the operation does in the store; gives the value or the error."""
    options = dict(operation.options)
    if operation.method == "update_table":
        options["versions"] = versions
    try:
        if operation.method == "append":
            assert operation.session is not None
            return sessions[operation.session].append(*operation.arguments, **options)  # type: ignore[arg-type] # as generated
        value: object = getattr(model, operation.method)(*operation.arguments, **options)
    except StoreError as error:
        return error
    if isinstance(value, ModelWriter):
        assert operation.session is not None
        sessions[operation.session] = value
    return value


def replay(
    operations: Iterable[Operation],
    model: Model,
    names: Iterable[str],
    *,
    is_strict: bool,
    cut: int | None = None,
) -> dict[str, Timeline]:
    """Apply what was acknowledged, and what may have happened, to the model: the timelines.

    What was refused or failed has not happened, unless the journal failed with it.

    Args:
        operations: In the order of the calls.
        model: As it was before them.
        names: All names there are.
        is_strict: No step of the disk has failed, so that every refusal must be the model's.
        cut: A place of the record: what was under way there may have happened, and also what then
            found no space. A frame of the journal that finds none may be written all the same, and
            be whole until it is taken back, which is done, durably, before the refusal is told.
    """
    timelines = {name: Timeline(name, [Moment(state_of(model, name), None)]) for name in names}
    sessions: dict[int, ModelWriter] = {}
    for operation in operations:
        is_unknown = operation.is_unknown or (
            cut is not None
            and operation.is_under_way(cut)
            and (operation.is_acknowledged or isinstance(operation.result, DiskFull))
        )
        if not (operation.is_acknowledged or is_unknown or is_strict):
            continue
        versions: Sequence[int] | None = None
        if operation.method == "update_table":
            entries = operation.arguments[1]
            assert isinstance(entries, Sequence)
            versions = [UNKNOWN] * len(entries)
            if operation.is_acknowledged and not is_unknown:
                assert isinstance(operation.result, Sequence)
                versions = operation.result
        value = apply(operation, model, sessions, versions)
        if not is_unknown:
            _must_agree(operation, value)
        if operation.method != "open_writer" and not isinstance(value, StoreError):
            for name in operation.names:
                timelines[name].moments.append(Moment(state_of(model, name), operation))
    return timelines


def _must_agree(operation: Operation, value: object) -> None:
    """The store's answer must be the model's."""
    result = operation.result
    if isinstance(value, StoreError) or isinstance(result, StoreError):
        assert type(result) is type(value), f"{operation}: the model says {value!r}"
    elif operation.method in {"append", "seal_segment", "merge_segments"}:
        assert result == value, f"{operation}: the model says {value!r}"


@dataclass(frozen=True)
class Sighting:
    """A reader saw so many bytes of a segment."""

    at: int
    """The place in the record."""
    name: str
    since: int
    """The segment is the one there was at this operation."""
    length: int
    position: int = 0
    data: bytes = b""
    """The bytes that it was given of it, and their place."""


def note_sightings(timelines: dict[str, Timeline], sightings: Iterable[Sighting]) -> None:
    """What was seen has been committed, so it must be there from then on."""
    for sighting in sightings:
        timeline = timelines[sighting.name]
        start = 0
        for index, moment in enumerate(timeline.moments):
            if moment.operation is not None and moment.operation.index < sighting.since:
                start = index
        for index in range(start, len(timeline.moments)):
            state = timeline.moments[index].state
            if state is not None and state.start + len(state.content) >= sighting.length:
                begin = sighting.position - state.start
                there = state.content[begin : begin + len(sighting.data)]
                assert not sighting.data or there == sighting.data, f"another record: {sighting}"
                timeline.seen.append((sighting.at, index))
                break
        else:
            raise AssertionError(f"seen, but never there: {sighting}")


@dataclass(frozen=True)
class Expectation:
    """What a history promises of the disk after a crash at some place of its record."""

    operations: Sequence[Operation]
    sightings: Sequence[Sighting]
    before: dict[str, SegmentState | None]
    """What there was when it began."""
    names: Sequence[str]
    is_strict: bool
    """See `replay`."""

    @cached_property
    def timelines(self) -> dict[str, Timeline]:
        """The timelines of the whole history."""
        return self._timelines(self.operations, self.sightings)

    def timelines_of_refused(self, cut: int) -> dict[str, Timeline] | None:
        """Give the timelines if what was about to be refused at a place has happened there.

        None if there was no such thing: an operation under way that then found no space.
        """
        operations = [each for each in self.operations if each.issued_at <= cut]
        if not any(
            isinstance(each.result, DiskFull) and each.is_under_way(cut) for each in operations
        ):
            return None
        return self._timelines(operations, [each for each in self.sightings if each.at <= cut], cut)

    def _timelines(
        self,
        operations: Iterable[Operation],
        sightings: Iterable[Sighting],
        cut: int | None = None,
    ) -> dict[str, Timeline]:
        model = model_of(self.before)
        found = replay(operations, model, self.names, is_strict=self.is_strict, cut=cut)
        note_sightings(found, sightings)
        return found

    def check(
        self,
        seen: dict[str, SegmentState | None],
        cut: int,
        crash: Crash,
        *,
        is_anything_lost: bool = False,
    ) -> None:
        """Every segment is in a state of its timeline, and merges are whole.

        Args:
            seen: What the store holds that was opened after the crash.
            cut: How many steps of the record were done.
            crash: How it ended.
            is_anything_lost: Bytes may be lost that a merge has moved, so that it may be undone
                in its target alone.
        """
        whole = self.timelines
        try:
            self._check(whole, seen, cut, crash, is_anything_lost=is_anything_lost)
        except AssertionError:
            timelines = self.timelines_of_refused(cut)
            if timelines is None:
                raise
            self._check(timelines, seen, cut, crash, is_anything_lost=is_anything_lost)

    def _check(
        self,
        timelines: dict[str, Timeline],
        seen: dict[str, SegmentState | None],
        cut: int,
        crash: Crash,
        *,
        is_anything_lost: bool,
    ) -> None:
        found = {}
        for name, state in seen.items():
            timeline = timelines[name]
            first, last = self.bounds(timeline, cut, crash)
            states = [moment.state for moment in timeline.moments[: last + 1]]
            found[name] = [
                index
                for index in range(first, last + 1)
                if is_same(states[index], state)
                or (is_anything_lost and is_cut_short(states[index], state, states[index:]))
            ]
            if not found[name]:
                raise AssertionError(self._complain(timeline, state, first, last))
        if not is_anything_lost:
            self._check_merges(timelines, found)

    def bounds(self, timeline: Timeline, cut: int, crash: Crash) -> tuple[int, int]:
        """Give the first and the last moment that the name can be in."""
        is_power_cut = crash.is_power_cut
        meant = [
            not is_power_cut
            or moment.operation is None
            or moment.operation.durability is Durability.DISK
            for moment in timeline.moments
        ]
        first, last = 0, 0
        for index, moment in enumerate(timeline.moments):
            operation = moment.operation
            if operation is None:
                continue
            if operation.issued_at <= cut:
                last = index
            if operation.is_acknowledged and (operation.answered_at or 0) <= cut and meant[index]:
                first = index
        for at, index in timeline.seen:
            if at <= cut:
                first = max(first, *(each for each in range(index + 1) if meant[each]), 0)
        return first, last

    @staticmethod
    def _check_merges(timelines: dict[str, Timeline], found: dict[str, list[int]]) -> None:
        """A merge has happened to both of its segments or to neither."""
        for name, timeline in timelines.items():
            for index, moment in enumerate(timeline.moments):
                operation = moment.operation
                if operation is None or operation.method != "merge_segments":
                    continue
                other = next(each for each in operation.names if each != name)
                at = next(
                    place
                    for place, each in enumerate(timelines[other].moments)
                    if each.operation is operation
                )
                mine = {place >= index for place in found[name]}
                others = {place >= at for place in found[other]}
                assert mine & others, f"half of a merge: {operation}"

    @staticmethod
    def _complain(timeline: Timeline, state: SegmentState | None, first: int, last: int) -> str:
        lines = [f"{timeline.name!r} is {state}, which it can not be; from {first} to {last}:"]
        for index in range(max(0, first - 2, last - 12), min(len(timeline.moments), last + 2)):
            moment = timeline.moments[index]
            mark = ">" if first <= index <= last else " "
            lines.append(f"{mark} {index}: {moment.state} after {moment.operation}")
        return "\n".join(lines)


def observe(
    rig: Rig, names: Sequence[str], attributes: Sequence[UUID]
) -> dict[str, SegmentState | None]:
    """Read all of the named segments from an open store."""
    infos = {name: rig.start(rig.store.info, name) for name in names}
    rig.wait(*infos.values())
    seen: dict[str, SegmentState | None] = dict.fromkeys(names)
    existing = {
        name: info.value for name, info in infos.items() if not isinstance(info.result, StoreError)
    }
    found = {
        (name, attribute): rig.start(rig.store.get_attribute, name, attribute)
        for name in existing
        for attribute in attributes
    }
    pages = {
        name: rig.start(rig.store.iterate_table, name, count=100_000)
        for name, info in existing.items()
        if info.is_table
    }
    rig.wait(*found.values(), *pages.values())
    for name, info in existing.items():
        entries: Sequence[TableEntry] = pages[name].value.entries if name in pages else ()
        seen[name] = SegmentState(
            0 if info.is_table else info.start,
            info.sealed,
            info.is_table,
            info.key_length,
            b"" if info.is_table else rig.content(name),
            {
                attribute: found[name, attribute].value
                for attribute in attributes
                if found[name, attribute].value != ABSENT
            },
            {entry.key: (entry.value, entry.version) for entry in entries},
        )
    return seen
