"""Whatever is called, also across opening and kill -9: the store holds what the model holds."""

from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

from store.api import ABSENT, ANY_VERSION, NOT_EXISTS, AttributeUpdate, Durability, TableEntry
from tests.property.store.twin import Twin, TwinSession

NAMES = ("a", "b", "c", "table", "ordered")
WRITERS = (UUID(int=1), UUID(int=2))
ATTRIBUTES = (*WRITERS, UUID(int=3))
KEYS = (b"k0", b"k1", b"k2")

names = st.sampled_from(NAMES)
data = st.one_of(st.binary(max_size=40), st.integers(257, 3_000).map(lambda size: b"#" * size))
steps = st.integers(-2, 3)
too_long = st.sampled_from([None, None, None, 0, 0, 1])
values = st.one_of(st.just(ABSENT), st.integers(0, 4))
updates = st.lists(
    st.builds(
        AttributeUpdate,
        st.sampled_from(ATTRIBUTES),
        values,
        st.one_of(st.none(), values),
    ),
    max_size=3,
    unique_by=lambda update: update.attribute,
)


class StoreAsModel(RuleBasedStateMachine):
    """Calls are pipelined until something needs their answers."""

    sessions = Bundle("sessions")

    @initialize(durability=st.sampled_from(Durability))
    def open(self, durability: Durability) -> None:
        self.twin = Twin(durability)

    @rule(name=names, attributes=updates)
    def create(self, name: str, attributes: list[AttributeUpdate]) -> None:
        if name in {"table", "ordered"}:
            self.twin.call("create_table", name, key_length=2 if name == "ordered" else 0)
        else:
            self.twin.call("create_segment", name, attributes=attributes)

    @rule(name=names)
    def delete(self, name: str) -> None:
        self.twin.call("delete_segment", name)

    @rule(must_be_empty=st.booleans(), name=names)
    def delete_table(self, name: str, *, must_be_empty: bool) -> None:
        self.twin.call("delete_table", name, must_be_empty=must_be_empty)

    @rule(name=st.sampled_from(NAMES))
    def seal(self, name: str) -> None:
        if name not in {"table", "ordered"}:
            self.twin.call("seal_segment", name)

    @rule(name=st.sampled_from(NAMES[:3]), share=st.floats(-0.1, 1.1))
    def truncate(self, name: str, share: float) -> None:
        segment = self.twin.model.segments.get(name)
        length = segment.length if segment else 5
        self.twin.call("truncate_segment", name, int(length * share))

    @rule(into=names, source=names, attributes=updates)
    def merge(self, into: str, source: str, attributes: list[AttributeUpdate]) -> None:
        self.twin.call("merge_segments", into, source, attributes=attributes)

    @rule(target=sessions, name=st.sampled_from(NAMES[:3]), writer=st.sampled_from(WRITERS))
    def open_writer(self, name: str, writer: UUID) -> TwinSession:
        return self.twin.open_writer(name, writer)

    @rule(session=sessions, step=steps, content=data, condition=st.sampled_from([None, None, 0, 1]))
    def append(
        self, session: TwinSession, step: int, content: bytes, condition: int | None
    ) -> None:
        if session.model is None or not session.is_current:
            return
        number = max(session.model.event_number, 0) + step
        expected = None if condition is None else session.model.length + condition
        session.append(content, max(number, 0), expected)

    @rule(name=st.sampled_from(NAMES[:3]), changes=updates)
    def update_attributes(self, name: str, changes: list[AttributeUpdate]) -> None:
        self.twin.call("update_attributes", name, changes)

    @rule(name=names, position=st.integers(-1, 6_000), size=st.integers(1, 9_000))
    def read(self, name: str, position: int, size: int) -> None:
        segment = self.twin.model.segments.get(name)
        if segment is None or not segment.is_table:
            self.twin.read(name, position, size)

    @rule(
        name=names,
        keys=st.lists(st.sampled_from(KEYS), max_size=4),
        value=data,
        condition=st.sampled_from(["any", "any", "new", "exact", "wrong"]),
        too_long=too_long,
    )
    def update_table(
        self, name: str, keys: list[bytes], value: bytes, condition: str, too_long: int | None
    ) -> None:
        entries = [TableEntry(key, value, self._version(name, key, condition)) for key in keys]
        self.twin.update_table(name, entries, too_long)

    @rule(
        name=names,
        keys=st.lists(st.sampled_from(KEYS), max_size=3, unique=True),
        condition=st.sampled_from(["any", "exact", "wrong"]),
        too_long=too_long,
    )
    def remove_keys(
        self, name: str, keys: list[bytes], condition: str, too_long: int | None
    ) -> None:
        entries = [TableEntry(key, b"", self._version(name, key, condition)) for key in keys]
        self.twin.remove_keys(name, entries, too_long)

    @rule(name=names, keys=st.lists(st.sampled_from((*KEYS, b"none")), max_size=4))
    def read_table(self, name: str, keys: list[bytes]) -> None:
        self.twin.call("read_table", name, keys)

    def _version(self, name: str, key: bytes, condition: str) -> int:
        segment = self.twin.model.segments.get(name)
        found = segment.entries.get(key) if segment else None
        exact = found[1] if found else NOT_EXISTS
        versions = {"any": ANY_VERSION, "new": NOT_EXISTS, "exact": exact, "wrong": exact + 10**9}
        return versions[condition]

    @rule()
    def compare(self) -> None:
        self.twin.compare(NAMES, ATTRIBUTES)

    @rule(is_killed=st.booleans())
    def die(self, *, is_killed: bool) -> None:
        if is_killed:
            self.twin.kill()
        else:
            self.twin.reopen()
        self.twin.compare(NAMES, ATTRIBUTES)

    def teardown(self) -> None:
        if hasattr(self, "twin"):
            self.twin.compare(NAMES, ATTRIBUTES)
            self.twin.reopen()
            self.twin.compare(NAMES, ATTRIBUTES)
            self.twin.close()


TestStoreAsModel = StoreAsModel.TestCase
# An example is 40 steps on a real store: three hundred of them would take minutes.
TestStoreAsModel.settings = settings(
    deadline=None,
    stateful_step_count=40,
    max_examples=min(settings().max_examples, 60),
)
TestStoreAsModel.pytestmark = [pytest.mark.timeout(240)]  # type: ignore[attr-defined]
