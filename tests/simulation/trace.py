"""A history of random operations on a store, from a seed, with several under way at once."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from store.api import (
    ABSENT,
    ANY_VERSION,
    NOT_EXISTS,
    AttributeUpdate,
    Durability,
    Reader,
    TableEntry,
    Writer,
)
from store.errors import StoreError
from tests.conformance.harness import Pending, Rig
from tests.conformance.model import ModelWriter
from tests.simulation.disk import Disk
from tests.simulation.history import (
    Expectation,
    Operation,
    SegmentState,
    Sighting,
    apply,
    model_of,
)

SEGMENTS: Final = tuple(f"stream/{number}" for number in range(7))
PARTS: Final = ("part/0", "part/1")
"""Short-lived segments that are merged into others."""
KEY_LENGTHS: Final = {"table/hash": 0, "table/fixed": 2}
TABLES: Final = tuple(KEY_LENGTHS)
NAMES: Final = (*SEGMENTS, *PARTS, *TABLES)

WRITERS: Final = tuple(UUID(int=0xA0 + number) for number in range(3))
PLAIN: Final = tuple(UUID(int=0xB0 + number) for number in range(2))
ATTRIBUTES: Final = (*WRITERS, *PLAIN)

KEYS: Final = tuple(b"k%d" % number for number in range(6))

UNDER_WAY_MAX: Final = 24
SESSIONS_MAX: Final = 12


@dataclass(frozen=True)
class Mix:
    """How often each kind of operation comes, and how large appends are."""

    weights: dict[str, int]
    bulk_bytes: tuple[int, int] = (300, 1_500)
    own_durability: float = 0.12
    """Of so many appends the durability is not the store's."""

    def choose(self, chance: random.Random) -> str:
        return chance.choices([*self.weights], [*self.weights.values()])[0]


ALL: Final = Mix(
    {
        "append_small": 46,
        "append_bulk": 9,
        "append_empty": 2,
        "append_again": 3,
        "append_if": 4,
        "open_session": 7,
        "set_attributes": 7,
        "update_table": 11,
        "remove_keys": 3,
        "truncate": 5,
        "merge": 4,
        "seal": 1,
        "create": 10,
        "delete": 3,
        "delete_table": 2,
        "look": 5,
    }
)
"""Everything."""

TABLES_MOSTLY: Final = Mix(ALL.weights | {"update_table": 120, "remove_keys": 20})
"""So much in tables that they are compacted again and again."""

SAFE: Final = Mix(
    {
        kind: weight
        for kind, weight in ALL.weights.items()
        if kind not in {"truncate", "seal", "merge"}
    }
)
"""What leaves no doubt about later operations when one of a segment has failed."""


@dataclass
class Session:
    """A writer's session, in the store and in the model, and what it appended last."""

    id: int
    name: str
    writer: Writer | None = None
    last: tuple[bytes, int] | None = None


class Trace:
    """Makes operations, calls them, and writes down when they were answered."""

    def __init__(
        self,
        rig: Rig,
        disk: Disk,
        durability: Durability,
        chance: random.Random,
        *,
        mix: Mix = ALL,
        states: dict[str, SegmentState | None] | None = None,
    ) -> None:
        """Go on from `states` (nothing, if None), which are those that the store holds."""
        self.operations: list[Operation] = []
        self._rig = rig
        self._disk = disk
        self._durability = durability
        self._chance = chance
        self._mix = mix
        self._states = states or {}
        # Runs ahead: has every operation at once, so that the next one can be made to fit.
        self._model = model_of(self._states)
        self._model_sessions: dict[int, ModelWriter] = {}
        self._sessions: list[Session] = []
        self._readers: dict[str, tuple[int, Reader]] = {}
        self._sightings: list[Sighting] = []
        self._under_way = 0
        self._fill = 0

    def run(self, count: int, mix: Mix | None = None) -> None:
        """Issue operations until there are so many, and wait for all answers at the end."""
        self._mix = mix or self._mix
        while len(self.operations) < count:
            self.step()
        self.settle()

    def step(self) -> None:
        """Issue a few operations, and let the store work, more or less."""
        for _ in range(self._chance.randint(1, 9)):
            self._make(self._mix.choose(self._chance))
        self._breathe()

    def read(self) -> None:
        """Have each reader give some bytes, and write down which."""
        for name, (since, reader) in self._readers.items():
            try:
                if reader.start == reader.length:
                    continue
                position = self._chance.randrange(reader.start, reader.length)
                data = reader.read_cached(position, self._chance.randint(1, 2_000))
            except StoreError:
                continue
            if data:
                end = position + len(data)
                at = len(self._disk.record)
                self._sightings.append(Sighting(at, name, since, end, position, data))

    def delete_all(self) -> None:
        """Delete everything, one after the other, while something else may want to grow."""
        for name in [each for each in NAMES if each in self._model.segments]:
            method = "delete_table" if name in TABLES else "delete_segment"
            self._append("append_small")
            self._call(method, (name,), name)
            if self._chance.random() < 0.7:
                self.settle()
        self.settle()

    def settle(self) -> None:
        self._rig.loop.run_until(lambda: not self._under_way)

    def expectation(self, *, is_strict: bool = True) -> Expectation:
        """Tell what must be on the disk when; with `is_strict` the model must agree throughout."""
        return Expectation(self.operations, self._sightings, self._states, NAMES, is_strict)

    def _breathe(self) -> None:
        """Let the store work, more or less."""
        loop = self._rig.loop
        choice = self._chance.random()
        if self._under_way > UNDER_WAY_MAX or choice < 0.4:
            self.settle()
        elif choice < 0.8:
            loop.turn()
        self._look_at_readers()

    def _look_at_readers(self) -> None:
        for name, (since, reader) in self._readers.items():
            try:
                length = reader.length
            except StoreError:
                continue
            self._sightings.append(Sighting(len(self._disk.record), name, since, length))

    # Calls

    def _call(
        self,
        method: str,
        names: tuple[str, ...],
        *arguments: object,
        session: Session | None = None,
        **options: object,
    ) -> None:
        """Call the store, and do the same in the model."""
        named = options.get("durability")
        operation = Operation(
            index=len(self.operations),
            method=method,
            arguments=arguments,
            options=options,
            names=names,
            durability=named if isinstance(named, Durability) else self._durability,
            issued_at=len(self._disk.record),
            session=session.id if session else None,
        )
        self.operations.append(operation)
        placeholders: Sequence[int] | None = None
        if method == "update_table":
            entries = arguments[1]
            assert isinstance(entries, list)
            placeholders = range(-1_000 - 100 * operation.index, -900 - 100 * operation.index)
            placeholders = placeholders[: len(entries)]
        apply(operation, self._model, self._model_sessions, placeholders)
        target = session.writer if session and session.writer else self._rig.store
        self._under_way += 1

        def on_answer(pending: Pending) -> None:
            self._under_way -= 1
            operation.answered_at = len(self._disk.record)
            operation.result = pending.result
            if isinstance(pending.result, StoreError):
                return
            if placeholders is not None:
                self._learn_versions(operation, placeholders)
            if method == "open_writer" and session:
                session.writer = pending.result

        self._rig.start(getattr(target, method), *arguments, then=on_answer, **options)

    def _learn_versions(self, operation: Operation, placeholders: Sequence[int]) -> None:
        (name,) = operation.names
        table = self._model.segments.get(name)
        versions = operation.result
        assert isinstance(versions, Sequence)
        if table is None:
            return
        real = dict(zip(placeholders, versions, strict=True))
        for key, (value, version) in table.entries.items():
            if version in real:
                table.entries[key] = (value, real[version])

    # Kinds of operations: each makes one call that mostly succeeds

    def _make(self, kind: str) -> None:
        if kind.startswith("append"):
            self._append(kind)
        else:
            getattr(self, f"_{kind}")()

    def _existing(self, names: Sequence[str]) -> str | None:
        existing = [name for name in names if name in self._model.segments]
        return self._chance.choice(existing) if existing else None

    def _bytes(self, size: int) -> bytes:
        """Give bytes that are not found twice in a history."""
        self._fill += 1
        return (b"<%d>" % self._fill * (size // 3 + 1))[:size]

    def _append(self, kind: str) -> None:
        chance = self._chance
        usable = [each for each in self._sessions if each.writer is not None]
        if not usable:
            self._open_session()
            return
        session = chance.choice(usable[-6:])
        known = self._model_sessions[session.id]
        size = chance.randint(1, 120)
        if kind == "append_bulk":
            size = chance.randint(*self._mix.bulk_bytes)
        elif kind == "append_empty":
            size = 0
        data, number = self._bytes(size), max(known.event_number, -1) + chance.choice([1, 1, 1, 5])
        options: dict[str, object] = {}
        if kind == "append_again" and session.last is not None:
            data, number = session.last
        elif kind == "append_if":
            options["expected_length"] = known.length + chance.choice([0, 0, 0, 1])
        if chance.random() < self._mix.own_durability:
            options["durability"] = chance.choice([*Durability])
        session.last = (data, number)
        self._call("append", (session.name,), data, number, session=session, **options)

    def _open_session(self) -> None:
        name = self._existing((*SEGMENTS, *PARTS))
        if name is None:
            self._create()
            return
        self._open_session_on(name, self._chance.choice(WRITERS))

    def _set_attributes(self) -> None:
        name = self._existing((*SEGMENTS, *PARTS))
        if name is None:
            return
        self._call("update_attributes", (name,), name, self._updates(name))

    def _first_values(self) -> list[AttributeUpdate]:
        """Give the attributes of a creation: as often none."""
        chance = self._chance
        chosen = chance.sample(ATTRIBUTES, chance.choice([0, 0, 1, 3]))
        return [AttributeUpdate(each, chance.randint(0, 1_000)) for each in chosen]

    def _updates(self, name: str) -> list[AttributeUpdate]:
        chance = self._chance
        found = self._model.segments[name].attributes
        updates = []
        for attribute in chance.sample(ATTRIBUTES[2:], chance.randint(1, 3)):
            value = chance.choice([ABSENT, chance.randint(0, 1_000)])
            expected = chance.choice([None, found.get(attribute, ABSENT), 5])
            updates.append(AttributeUpdate(attribute, value, expected))
        return updates

    def _update_table(self) -> None:
        name = self._existing(TABLES)
        if name is None:
            self._create_table()
            return
        entries = [
            TableEntry(key, self._bytes(self._chance.randint(0, 60)), self._version(name, key))
            for key in self._chance.choices(KEYS, k=self._chance.randint(1, 4))
        ]
        self._call("update_table", (name,), name, entries)

    def _version(self, name: str, key: bytes) -> int:
        """Give a condition, mostly one that holds."""
        _, version = self._model.segments[name].entries.get(key, (b"", NOT_EXISTS))
        choice = self._chance.random()
        if choice < 0.6 or version < NOT_EXISTS:  # not known yet
            return ANY_VERSION
        return version if choice < 0.95 else version + 1_000_000

    def _remove_keys(self) -> None:
        name = self._existing(TABLES)
        if name is not None:
            keys = self._chance.sample(KEYS, self._chance.randint(1, 2))
            entries = [TableEntry(key, b"", self._version(name, key)) for key in keys]
            self._call("remove_keys", (name,), name, entries)

    def _truncate(self) -> None:
        name = self._existing(SEGMENTS)
        if name is not None:
            segment = self._model.segments[name]
            position = self._chance.randint(segment.start, segment.length)
            if self._chance.random() < 0.1:
                position = segment.length + 1
            self._call("truncate_segment", (name,), name, position)

    def _merge(self) -> None:
        target, source = self._existing(SEGMENTS), self._existing((*PARTS, *PARTS, *SEGMENTS))
        if target is None or source is None or target == source:
            return
        attributes = self._updates(target) if self._chance.random() < 0.4 else []
        self._readers.pop(source, None)
        names = (target, source)
        self._call("merge_segments", names, target, source, attributes=attributes)

    def _seal(self) -> None:
        name = self._existing(SEGMENTS)
        if name is not None:
            self._call("seal_segment", (name,), name)

    def _create(self) -> None:
        name = self._chance.choice((*SEGMENTS, *PARTS))
        self._call("create_segment", (name,), name, attributes=self._first_values())
        if name in PARTS:  # filled at once, or there would be little to merge
            self._open_session_on(name, WRITERS[0])

    def _open_session_on(self, name: str, writer: UUID) -> None:
        session = Session(len(self.operations), name)
        self._sessions = [*self._sessions[-SESSIONS_MAX:], session]
        self._call("open_writer", (name,), name, writer, session=session)
        # A session may know appends that were called behind it, up to when it is handed over;
        # so that there is no doubt about what it knows, there are none.
        self.settle()

    def _create_table(self) -> None:
        name = self._chance.choice(TABLES)
        self._call("create_table", (name,), name, key_length=KEY_LENGTHS[name])

    def _delete(self) -> None:
        name = self._chance.choice(NAMES)
        self._readers.pop(name, None)
        self._call("delete_segment", (name,), name)

    def _delete_table(self) -> None:
        name = self._existing(TABLES)
        if name is not None:
            self._call("delete_table", (name,), name, must_be_empty=self._chance.random() < 0.2)

    def _look(self) -> None:
        """Have a reader whose view is noted."""
        name = self._existing(SEGMENTS)
        if name is None or name in self._readers:
            return
        self.settle()
        pending = self._rig.start(self._rig.store.open_reader, name)
        self._rig.wait(pending)
        if not isinstance(pending.result, StoreError):
            self._readers[name] = (len(self.operations), pending.result)
