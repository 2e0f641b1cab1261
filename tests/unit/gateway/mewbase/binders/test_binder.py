"""A binder: its ids in order, and what open queries see of its changes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.log.names import binder_table
from gateway.mewbase.binders.binder import Binder, Changed, Kept, ProjectionPlace, open_binder
from gateway.pending import Pending, start
from store.api import NOT_EXISTS, TableEntry, TablePage
from store.errors import CorruptSegment, KeyVersionMismatch
from tests.unit.gateway.stream.link_rig import Broker

TABLE = binder_table("/", "b")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    yield broker
    broker.close()


def opened(broker: Broker) -> Binder:
    rig = broker.store_rig
    return rig.run(open_binder("b", rig.store, TABLE))


def change(broker: Broker, binder: Binder, position: int, **contents: bytes) -> None:
    changes = {name.encode(): Changed(content) for name, content in contents.items()}
    broker.store_rig.run(binder.change("p", ProjectionPlace(1, position), changes))


class Reader:
    def __init__(self) -> None:
        self.kept: list[tuple[bytes, bytes | None]] = []

    def keep(self, name: bytes, content: bytes | None) -> None:
        self.kept.append((name, content))


def test_ids_are_sorted_and_outlive_the_server(broker: Broker) -> None:
    binder = opened(broker)
    change(broker, binder, 1, b=b"1", aa=b"2")
    change(broker, binder, 2, a=b"3", b=b"4", c=b"5")
    for each in (binder, opened(broker)):
        assert each.names_behind(None, 10) == [b"a", b"aa", b"b", b"c"]
        assert each.names_behind(b"aa", 1) == [b"b"]
        assert each.names_behind(b"bb", 5) == [b"c"]
        assert each.names_behind(b"c", 5) == []
        kept = broker.store_rig.run(each.read([b"b", b"none", b"c"]))
        assert [one.content for one in kept] == [b"4", None, b"5"]
        assert kept[1] == Kept(None, NOT_EXISTS)
        assert broker.store_rig.run(each.place_of("p")) == ProjectionPlace(1, 2)
        assert broker.store_rig.run(each.place_of("other")) is None


def test_more_rows_than_a_page_has_are_all_found(broker: Broker) -> None:
    binder = opened(broker)
    names = [f"{number:04}" for number in range(350)]
    change(broker, binder, 1, **dict.fromkeys(reversed(names), b"x"))
    assert opened(broker).names_behind(None, 1_000) == [name.encode() for name in names]


def test_ids_are_in_memory_once_for_the_binder_and_the_store(broker: Broker) -> None:
    binder = opened(broker)
    change(broker, binder, 1, a=b"1", b=b"2")
    change(broker, binder, 2, b=b"3", c=b"4")
    for each in (binder, opened(broker)):
        page: Pending[TablePage] = Pending()
        broker.store_rig.store.iterate_table(TABLE, done=page.settle)
        broker.loop.run_until(lambda: page.is_settled)  # noqa: B023
        stored = {entry.key: entry.key for entry in page.result().entries}
        assert len(each._keys) == 3
        assert all(key is stored[key] for key in each._keys)


def test_a_document_that_is_not_what_was_read_refuses_all_changes(broker: Broker) -> None:
    binder = opened(broker)
    change(broker, binder, 1, a=b"1")
    (before,) = broker.store_rig.run(binder.read([b"a"]))
    change(broker, binder, 2, a=b"2")
    wrong = {b"a": Changed(b"3", before.version), b"b": Changed(b"3")}
    with pytest.raises(KeyVersionMismatch):
        broker.store_rig.run(binder.change("p", ProjectionPlace(1, 3), wrong))
    new = {b"a": Changed(b"3", NOT_EXISTS)}
    with pytest.raises(KeyVersionMismatch):
        broker.store_rig.run(binder.change("q", ProjectionPlace(1, 3), new))
    assert binder.names_behind(None, 5) == [b"a"]
    assert broker.store_rig.run(binder.place_of("p")) == ProjectionPlace(1, 2)
    assert broker.store_rig.run(binder.place_of("q")) is None


def test_open_queries_are_told_of_what_changes_before_it_does(broker: Broker) -> None:
    binder, reader = opened(broker), Reader()
    change(broker, binder, 1, a=b"1")
    broker.store_rig.run(binder.begin(reader))
    change(broker, binder, 2, a=b"2", b=b"3")
    assert reader.kept == [(b"a", b"1"), (b"b", None)]
    (before,) = broker.store_rig.run(binder.read([b"a"]))
    changes = {b"a": Changed(b"4", before.version)}
    broker.store_rig.run(binder.change("p", ProjectionPlace(1, 3), changes))
    assert reader.kept[2:] == [(b"a", b"2")]
    binder.readers.discard(reader)
    change(broker, binder, 4, a=b"5")
    assert len(reader.kept) == 3


def test_a_change_that_is_refused_tells_open_queries_what_there_is(broker: Broker) -> None:
    binder, reader = opened(broker), Reader()
    change(broker, binder, 1, a=b"1")
    (before,) = broker.store_rig.run(binder.read([b"a"]))
    change(broker, binder, 2, a=b"2")
    broker.store_rig.run(binder.begin(reader))
    stale = {b"a": Changed(b"3", before.version)}
    with pytest.raises(KeyVersionMismatch):
        broker.store_rig.run(binder.change("q", ProjectionPlace(1, 1), stale))
    assert reader.kept == [(b"a", b"2")]


@pytest.mark.parametrize("count", [1, 49, 50, 51, 200])
def test_new_ids_are_sorted_in_however_many_they_are(broker: Broker, count: int) -> None:
    binder = opened(broker)
    change(broker, binder, 1, **{f"{number:03}": b"" for number in range(0, 400, 3)})
    change(broker, binder, 2, **{f"{number:03}": b"" for number in range(count, 0, -1)})
    names = {*range(0, 400, 3), *range(1, count + 1)}
    assert binder.names_behind(None, 1_000) == [b"%03d" % number for number in sorted(names)]


def test_a_query_begins_behind_the_change_that_is_being_stored(broker: Broker) -> None:
    binder, reader = opened(broker), Reader()
    changing = start(binder.change("p", ProjectionPlace(1, 1), {b"a": Changed(b"1")}))
    beginning = start(binder.begin(reader))
    assert not beginning.is_settled
    broker.loop.run_until(lambda: beginning.is_settled)
    assert changing.is_settled
    assert reader.kept == []
    assert binder.names_behind(None, 1) == [b"a"]


@pytest.mark.parametrize(("key", "value"), [(b"x", b""), (b"pp", b"short"), (b"p\xff", bytes(16))])
def test_a_damaged_row_is_named(broker: Broker, key: bytes, value: bytes) -> None:
    opened(broker)
    rig = broker.store_rig
    rig.do(rig.store.update_table, TABLE, [TableEntry(key, value)])
    with pytest.raises(CorruptSegment, match="is damaged"):
        opened(broker)
