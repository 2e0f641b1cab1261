"""A query: its results in pieces, while documents change that it has not come to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import bson
import pytest

from gateway.log.names import binder_table
from gateway.log.records.openings import OpeningRoom
from gateway.mewbase.binders.binder import Binder, Changed, ProjectionPlace, open_binder
from gateway.mewbase.matcher import Matcher
from gateway.mewbase.query import Query
from gateway.mewbase.sources import EventReading, SourcePorts
from gateway.mewbase.window import Window
from gateway.mewbase.wire.writing import answer
from gateway.pending import Pending
from store.errors import StoreClosed
from tests.conformance.harness import wrap_operation
from tests.unit.gateway.stream.link_rig import Broker


def no_thread(make: object) -> NoReturn:
    raise AssertionError(make)


class Rig:
    """A binder, and a query of a client that takes what is sent."""

    def __init__(self, directory: Path) -> None:
        self.broker = Broker(directory)
        rig = self.broker.store_rig
        self.binder: Binder = rig.run(open_binder("b", rig.store, binder_table("/", "b")))
        self.ended: list[str] = []
        self.results: list[dict[str, Any]] = []
        reading = EventReading(self.wait, OpeningRoom(0, no_thread, self.wait))
        self.sources = SourcePorts(self, reading)  # type: ignore[arg-type]
        self._position = 0
        self._is_woken = False

    def wait(self, delay_ms: int) -> Pending[None]:
        assert delay_ms == 0
        turn: Pending[None] = Pending()
        self.broker.loop.call_soon(turn.settle, None)
        return turn

    def put(self, **documents: object) -> None:
        changes = {
            name.encode(): Changed(bson.encode({"id": name, "v": value}))
            for name, value in documents.items()
        }
        self._position += 1
        self.broker.store_rig.run(
            self.binder.change("p", ProjectionPlace(1, self._position), changes)
        )

    def query(
        self, matcher: dict[str, Any] | None = None, *, kept: int = 10_000, window: int = 1 << 22
    ) -> Query:
        wanted = None if matcher is None else Matcher(bson.encode(matcher))
        sent = Window(window, window)
        found = Query(7, self.binder, wanted, sent, kept, self.sources, self.ended.append)
        self.broker.store_rig.run(self.binder.begin(found))
        return found

    def wake(self, _source: Query) -> None:
        self._is_woken = True

    def take(self, query: Query) -> list[object]:
        """Take what comes; return the values of all results so far."""
        while True:
            self._is_woken = False
            found = query.next(bytearray())
            content = b"" if found is None else found.head
            while content:
                size = int.from_bytes(content[:4], "little")
                self.results.append(bson.decode(content[:size])["frame"])
                content = content[size:]
            self.broker.loop.run_until(
                lambda: not query._is_reading and not self.sources.reading.turns._is_armed
            )
            if found is None and not self._is_woken and not query.is_sifting:
                return [each["result"] and each["result"]["v"] for each in self.results]

    @property
    def is_over(self) -> bool:
        return [each["last"] for each in self.results] == [False] * (len(self.results) - 1) + [True]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    yield rig
    rig.broker.close()


def test_all_documents_come_in_order_and_the_last_one_says_so(rig: Rig) -> None:
    rig.put(**{f"{number:03}": number for number in range(300)})
    assert rig.take(rig.query()) == list(range(300))
    assert rig.is_over
    assert rig.ended == [""]
    assert rig.binder.readers == set()


def test_no_match_is_one_result_without_a_document(rig: Rig) -> None:
    assert rig.take(rig.query()) == [None]
    rig.put(a=1)
    rig.results.clear()
    assert rig.take(rig.query({"v": 2})) == [None]
    assert rig.is_over


def test_the_last_match_is_held_back_until_it_is_known_to_be_the_last(rig: Rig) -> None:
    rig.put(**{f"{number:03}": number % 50 for number in range(100)})
    assert rig.take(rig.query({"v": 7})) == [7, 7]
    assert rig.is_over


def test_a_query_sees_what_was_there_when_it_began(rig: Rig) -> None:
    rig.put(a=1, b=1, c=1, d=1)
    query = rig.query(window=0)
    assert rig.take(query) == [1]
    rig.put(a=2, aa=2, c=2)
    rig.put(b=3, c=3, d=3, e=3)
    for _ in range(3):
        query.acknowledge()
        rig.take(query)
    assert [each["result"]["id"] for each in rig.results] == ["a", "b", "c", "d"]
    assert rig.take(query) == [1, 1, 1, 1]
    assert rig.is_over
    rig.results.clear()
    assert rig.take(rig.query()) == [2, 2, 3, 3, 3, 3]


def test_a_document_that_changes_while_it_is_being_read_comes_as_it_was(rig: Rig) -> None:
    rig.put(a=1, b=1)
    query = rig.query()
    query.next(bytearray())  # the read is under way
    rig.put(a=2, b=2)
    assert rig.take(query) == [1, 1]


def test_of_large_documents_behind_small_ones_few_are_kept(rig: Rig) -> None:
    rig.put(**{f"{number:03}": number for number in range(70)})
    rig.put(**{f"{number:03}": "x" * 100_000 for number in range(70, 140)})
    document = bson.encode({"id": "000", "v": 0})
    small = len(answer("QUERYRESULT", queryID=7, ok=True, result=document, last=False))
    query = rig.query(window=64 * small)
    rig.take(query)
    query.acknowledge()
    rig.take(query)
    assert sum(map(len, query._found)) < 500_000
    rig.put(**{f"{number:03}": 0 for number in range(70, 140)})
    assert rig.ended, "what was not kept counts as what the query has not come to"
    rig.ended.clear()
    rig.results.clear()
    query = rig.query(kept=10_000_000, window=0)
    while rig.take(query) and not rig.is_over:
        if len(rig.results) == 69:
            rig.put(**{f"{number:03}": -1 for number in range(70, 140)})
        query.acknowledge()
    assert [each["result"]["v"] for each in rig.results] == [*range(70), *[0] * 70]


def test_a_query_for_which_too_much_is_kept_ends_with_an_error(rig: Rig) -> None:
    rig.put(**{f"{number:03}": "x" * 50 for number in range(600)})
    query = rig.query(kept=1_000, window=0)
    rig.take(query)
    rig.put(**{f"{number:03}": number for number in range(600)})
    assert len(rig.ended) == 1
    assert "mewbase.query_kept_bytes_max" in rig.ended[0]
    query.acknowledge()
    before = len(rig.results)
    rig.take(query)
    assert len(rig.results) == before
    assert rig.binder.readers == set()


def test_a_binder_that_cannot_be_read_ends_the_query_with_an_error(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_real: object, name: str, _keys: object, *, done: Any) -> None:  # noqa: ANN401
        done(StoreClosed(name))

    rig.put(a=1)
    query = rig.query()
    with monkeypatch.context() as patch:
        wrap_operation(patch, rig.broker.store_rig.store, "read_table", closed)
        assert rig.take(query) == []
    assert rig.ended == ["the documents cannot be read: the server's log says why"]
