from collections.abc import Iterator
from itertools import count
from uuid import UUID

import pytest

from store.api import ABSENT, ATTRIBUTES_MAX, WRITERS_MAX, AttributeUpdate, Durability
from store.errors import InvalidArgument, WriterFenced
from store.local.state.attributes import Attributes
from tests.simulation.disk import Disk
from tests.unit.store.local.opened import KIB, WRITER, Opened, opened


def writer(number: int) -> bytes:
    return number.to_bytes(16)


def test_absent_removes_an_attribute() -> None:
    attributes = Attributes()
    attributes.update([(b"a", 1), (b"b", 2), (b"a", ABSENT), (b"c", ABSENT)])
    assert attributes.named == {b"b": 2}
    assert [attributes.get(each) for each in (b"a", b"b")] == [ABSENT, 2]


def test_what_an_append_gives_a_number_is_a_writer_whoever_named_it() -> None:
    attributes = Attributes()
    attributes.update([(b"w", 5), (b"a", 1)])
    attributes.append(b"w", 6)
    assert (attributes.named, attributes.writers) == ({b"a": 1}, {b"w": 6})
    attributes.update([(b"w", 9)])
    assert (attributes.get(b"w"), attributes.all()) == (9, {b"a": 1, b"w": 9})
    attributes.update([(b"w", ABSENT)])
    assert attributes.get(b"w") == ABSENT
    attributes.append(b"w", 1)
    assert attributes.writers == {b"w": 1}


def test_writers_are_in_the_order_of_their_last_appends() -> None:
    attributes = Attributes()
    for number, name in enumerate("abcab"):
        attributes.append(name.encode(), number)
    again = b"".join((b"b", b""))
    attributes.append(again, 9)
    assert list(attributes.writers.items()) == [(b"c", 2), (b"a", 3), (b"b", 9)]
    copy = attributes.copy()
    copy.append(b"c", 10)
    assert [list(each.writers) for each in (attributes, copy)] == [
        [b"c", b"a", b"b"],
        [b"a", b"b", b"c"],
    ]


def test_those_that_have_not_written_for_longest_are_forgotten() -> None:
    attributes = Attributes()
    forgotten = [attributes.append(writer(number), 1) for number in range(WRITERS_MAX)]
    assert not any(forgotten)
    attributes.append(writer(0), 2)
    assert attributes.append(writer(WRITERS_MAX), 1) == 1_000
    assert len(attributes.writers) == WRITERS_MAX - 1_000 + 1
    assert attributes.get(writer(0)) == 2
    assert [attributes.get(writer(number)) for number in (1, 1_000, 1_001)] == [ABSENT, ABSENT, 1]


@pytest.fixture
def rig() -> Iterator[Opened]:
    rig = opened(Disk(), Durability.OS, journal_file_bytes=1_024 * KIB, checkpoint_bytes=64 * KIB)
    yield rig
    rig.close()


def test_a_segment_has_no_more_attributes_than_may_be(rig: Opened) -> None:
    name, numbers = rig.create("a"), count()
    session = rig.writer("a", WRITER)
    rig.do(session.append, b"x", 1)

    def updates(many: int) -> list[AttributeUpdate]:
        return [AttributeUpdate(UUID(int=1_000 + next(numbers)), 1) for _ in range(many)]

    some = updates(ATTRIBUTES_MAX - 1)
    rig.do(rig.store.update_attributes, name, some)
    rig.refused(InvalidArgument, rig.store.update_attributes, name, updates(2))
    rig.do(rig.store.update_attributes, name, [*some[:100], AttributeUpdate(WRITER, 4)])
    rig.do(rig.store.update_attributes, name, updates(1))
    rig.refused(InvalidArgument, rig.store.update_attributes, name, updates(1))
    rig.create("b")
    update = [AttributeUpdate(UUID(int=2), 1)]
    rig.refused(InvalidArgument, rig.store.merge_segments, "a", "b", attributes=update)
    rig.do(rig.store.update_attributes, name, [AttributeUpdate(some[0].attribute, ABSENT)])
    rig.do(rig.store.merge_segments, "a", "b", attributes=update)
    rig.refused(
        InvalidArgument, rig.store.create_segment, "c", attributes=updates(ATTRIBUTES_MAX + 1)
    )


def test_a_forgotten_writer_is_fenced_and_begins_anew_after_an_opening_too(
    rig: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    rig.create("a")
    first = rig.writer("a", UUID(int=0))
    rig.do(first.append, b"x", 1)
    attributes = rig.store.catalogue.names["a"]
    for state in (attributes.committed, attributes.pending):
        for number in range(1, WRITERS_MAX):
            state.attributes.append(writer(number), 1)
    assert rig.do(rig.store.get_attribute, "a", UUID(int=0)) == 1
    rig.do(rig.writer("a", UUID(int=WRITERS_MAX)).append, b"y", 1)

    assert "writers=1000" in caplog.text
    assert rig.do(rig.store.get_attribute, "a", UUID(int=0)) == ABSENT
    rig.refused(WriterFenced, first.append, b"z", 2)
    rig.reopen()
    assert rig.do(rig.store.get_attribute, "a", UUID(int=0)) == ABSENT
    assert rig.do(rig.store.get_attribute, "a", UUID(int=1_000)) == 1
    again = rig.writer("a", UUID(int=0))
    assert again.event_number == ABSENT
    rig.do(again.append, b"z", 2)
