"""Projections that run: each event is taken once, whatever the store answers."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import bson
import pytest

from gateway.log.names import binder_table
from gateway.log.records.openings import Opener, OpeningRoom
from gateway.mewbase.binders import folding
from gateway.mewbase.binders.binder import Binder, open_binder
from gateway.mewbase.binders.binders import Binders
from gateway.mewbase.binders.feeder import Feeder, FeederPorts
from gateway.mewbase.binders.projection import Change
from gateway.mewbase.binders.projections_file import projection_of
from gateway.mewbase.events import record_of
from gateway.mewbase.sources import EventReading
from gateway.pending import Pending, start
from gateway.settings.mewbase import BadSubBatchRule
from store.api import Done, TableEntry
from store.errors import DiskFull, SegmentFailed, StoreError
from tests.chunks import GZIP, ZSTD, SubBatch
from tests.conformance.harness import wrap_operation
from tests.unit.gateway.log.log_rig import put
from tests.unit.gateway.stream.link_rig import Broker

T = TypeVar("T")
SUM = {"mode": "add", "path": "sum", "quantity": "n"}


class Rig:
    """Channels `a` and `b`, the binder `x`, and projections."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.broker = Broker(directory)
        for name in ("a", "b"):
            self.broker.store_rig.run(self.broker.streams.create(name, {}))
        self.feeders: list[Feeder] = []
        self.reading = EventReading(self.wait, OpeningRoom(1 << 26, self.in_thread, self.wait))
        self.pauses: list[tuple[int, Pending[None]]] = []
        self.fate = BadSubBatchRule.SKIP
        self.change: Change | None = None
        self.ids_max = 100
        self.binder = self._opened()

    def _opened(self) -> Binder:
        rig = self.broker.store_rig
        return rig.run(open_binder("x", rig.store, binder_table("/", "x"), self.ids_max))

    def restart(self) -> None:
        """Open the same directory anew, as after a kill."""
        self.broker.close()
        self.broker = Broker(self.directory)
        self.feeders.clear()
        self.binder = self._opened()

    def wait(self, delay_ms: int) -> Pending[None]:
        pause: Pending[None] = Pending()
        if not delay_ms:
            self.broker.loop.call_soon(pause.settle, None)
        else:
            self.pauses.append((delay_ms, pause))
        return pause

    def end_pause(self) -> int:
        """End the pause of a projection; return how long it was."""
        self.broker.loop.run_until(lambda: bool(self.pauses))
        delay_ms, pause = self.pauses.pop(0)
        pause.settle(None)
        return delay_ms

    def feed(self, channel: str = "a", **more: str) -> Feeder:
        number = len(self.feeders)
        described = {"name": f"p{number}", "channel": channel, "binder": "x", "id": "id", **more}
        ports = FeederPorts(self.broker.streams, self.in_thread, self.reading)
        projection = projection_of(described)
        feeder = Feeder(projection, self.binder, ports, self.change, self.fate)
        self.feeders.append(feeder)
        feeder.start()
        return feeder

    def in_thread(self, function: Callable[[], T]) -> Pending[T]:
        done: Pending[T] = Pending()
        self.broker.loop.call_soon(lambda: done.settle(function()))
        return done

    def publish(self, channel: str = "a", *events: dict[str, Any] | SubBatch) -> None:
        log = self.broker.log(channel)
        encoded = (e if isinstance(e, SubBatch) else record_of(bson.encode(e)) for e in events)
        put(log, list(encoded))
        self.broker.settle(channel)

    def caught_up(self) -> None:
        for feeder in self.feeders:
            pending = start(feeder.caught_up())
            self.broker.loop.run_until(lambda: pending.is_settled)  # noqa: B023

    def documents(self) -> dict[str, dict[str, Any]]:
        names = self.binder.names_behind(None, 1_000)
        found = self.broker.store_rig.run(self.binder.read(names))
        contents = [each.content for each in found if each.content is not None]
        return {
            name.decode(): bson.decode(content)
            for name, content in zip(names, contents, strict=True)
        }

    def sum(self) -> float:
        self.caught_up()
        return float(self.documents()["t"]["sum"])


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    yield rig
    for feeder in rig.feeders:
        stopping = start(feeder.stop())
        rig.broker.loop.run_until(lambda: stopping.is_settled)  # noqa: B023
    rig.broker.close()


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Rig, Exception, bool], None]]:
    """Let the next update of the binder's table fail; it may be stored all the same."""

    def fail(rig: Rig, error: Exception, is_stored: bool) -> None:  # noqa: FBT001
        failures = [error]

        def update(
            real: Callable[..., None],
            name: str,
            entries: list[TableEntry],
            *,
            done: Done[Any],
            **more: Any,  # noqa: ANN401
        ) -> None:
            if "binder" not in name or not failures:
                real(name, entries, done=done, **more)
                return
            outcome = failures.pop()
            if is_stored:
                real(name, entries, done=lambda _: done(outcome), **more)
            else:
                done(outcome)

        wrap_operation(monkeypatch, rig.broker.store_rig.store, "update_table", update)

    return fail  # type: ignore[return-value]


def events(*amounts: float) -> list[dict[str, Any]]:
    return [{"id": "t", "n": amount} for amount in amounts]


def test_events_are_taken_as_they_come(rig: Rig) -> None:
    rig.feed(**SUM)
    for amount in (1, 2, 3):
        rig.publish("a", *events(amount, amount))
        rig.caught_up()
    assert rig.sum() == 12


def test_two_projections_may_change_one_document(rig: Rig) -> None:
    for channel in ("a", "b"):
        rig.publish(channel, *events(*range(100)))
    rig.feed("a", **SUM)
    rig.feed("b", **SUM)
    for _ in range(10):
        rig.publish("a", *events(1))
        rig.publish("b", *events(1))
    assert rig.sum() == 2 * 4950 + 20


@pytest.mark.parametrize("error", [DiskFull("x"), SegmentFailed("x")])
@pytest.mark.parametrize("is_stored", [False, True])
def test_an_update_that_fails_is_neither_lost_nor_doubled(
    rig: Rig,
    failing: Callable[[Rig, Exception, bool], None],
    caplog: pytest.LogCaptureFixture,
    error: StoreError,
    is_stored: bool,  # noqa: FBT001
) -> None:
    rig.feed(**SUM)
    rig.publish("a", *events(1))
    rig.caught_up()
    failing(rig, error, is_stored)
    rig.publish("a", *events(2, 3))
    assert rig.end_pause() == 100
    rig.publish("a", *events(4))
    assert rig.sum() == 10
    assert "projection waits projection=p0 channel=a error=" in caplog.text


def test_a_query_does_not_wait_for_a_projection_that_waits_itself(
    rig: Rig, failing: Callable[[Rig, Exception, bool], None]
) -> None:
    feeder = rig.feed(**SUM)
    rig.caught_up()
    failing(rig, DiskFull("x"), False)  # noqa: FBT003
    waiting = start(feeder.caught_up())
    rig.publish("a", *events(1))
    rig.broker.loop.run_until(lambda: bool(rig.pauses))
    assert waiting.is_settled
    assert start(feeder.caught_up()).is_settled


def test_it_goes_on_where_it_was_after_a_kill(rig: Rig) -> None:
    for amount in range(5):
        rig.feed(**SUM)
        rig.publish("a", *events(amount))
        if amount % 2:
            rig.caught_up()
        rig.restart()
    rig.feed(**SUM)
    assert rig.sum() == 10


def test_a_channel_that_comes_later_is_found_and_told_once(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.feed("later", **SUM)
    assert [rig.end_pause() for _ in range(3)] == [500] * 3
    told = "projection waits projection=p0 channel=later error=there is no such channel; it begins"
    assert caplog.text.count(told) == 1
    rig.broker.store_rig.run(rig.broker.streams.create("later", {}))
    rig.end_pause()
    rig.publish("later", *events(1))
    assert rig.sum() == 1


def test_a_channel_that_is_made_anew_is_taken_from_its_beginning(rig: Rig) -> None:
    rig.feed(**SUM)
    rig.publish("a", *events(1, 2))
    rig.caught_up()
    tell = rig.broker.streams.logs.tell_watchers
    rig.broker.store_rig.run(rig.broker.streams.delete("a", tell))
    rig.broker.store_rig.run(rig.broker.streams.create("a", {}))
    rig.end_pause()
    rig.publish("a", *events(5))
    assert rig.sum() == 8


def test_one_that_begins_now_leaves_out_what_is_there(rig: Rig) -> None:
    rig.publish("a", *events(1, 2))
    rig.feed(**SUM, **{"from": "now"})
    rig.caught_up()
    rig.publish("a", *events(5))
    assert rig.sum() == 5
    rig.restart()
    rig.publish("a", *events(7))
    rig.feed(**SUM, **{"from": "now"})
    assert rig.sum() == 12


def test_a_stop_does_not_wait_for_a_pause(rig: Rig) -> None:
    feeder = rig.feed("nowhere")
    rig.broker.loop.run_until(lambda: bool(rig.pauses))
    stopping = start(feeder.stop())
    assert stopping.is_settled
    rig.feeders.clear()


def test_large_documents_are_stored_in_batches(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "_BATCH_BYTES", 1_000)
    rig.publish("a", *({"id": f"{number:03}", "d": bytes(200)} for number in range(100)))
    rig.feed(mode="merge")
    rig.caught_up()
    assert len(rig.documents()) == 100


def test_many_large_documents_that_change_at_once_are_stored_in_parts(rig: Rig) -> None:
    large = bytes(900_000)
    for number in range(20):
        rig.publish("a", {"id": f"{number:02}", "d": large})
    feeder = rig.feed(mode="merge")
    rig.caught_up()
    rig.publish("a", *({"id": f"{number:02}", "n": number} for number in range(20)), {"n": 20})
    rig.caught_up()
    assert [each.get("n") for each in rig.documents().values()] == list(range(20))
    assert feeder.passed_over.count == 1
    assert not rig.pauses or [delay_ms for delay_ms, _ in rig.pauses] == [10_000]


def test_what_makes_no_document_is_counted_and_told_from_time_to_time(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    rig.publish("a", {"n": 1}, {"id": "t", "n": 1}, {"id": "t"}, {"id": "t", "n": 2})
    feeder = rig.feed(**SUM)
    for _ in range(3):
        rig.publish("a", {"id": 7.5})
        rig.caught_up()
    assert rig.sum() == 3
    assert feeder.passed_over.count == 5
    first = "events make no document projection=p0 channel=a events=2 first=0 reason=it has no fie"
    assert [line.startswith(first) for line in caplog.messages] == [True]
    assert rig.end_pause() == 10_000
    later = "events make no document projection=p0 channel=a events=3 first=4 reason="
    assert [line.startswith(later) for line in caplog.messages] == [False, True]
    assert caplog.messages[1].endswith("since_start=5")
    rig.end_pause()
    assert len(caplog.messages) == 2
    rig.publish("a", {"id": 7.5})
    rig.caught_up()
    assert len(caplog.messages) == 3


BAD = SubBatch(GZIP, 4, 28, b"garbage")
SENT = "a publisher sent a sub-batch of 4 records that is not 28 bytes compressed by gzip"


@pytest.mark.parametrize("fate", [BadSubBatchRule.SKIP, BadSubBatchRule.RAW])
def test_it_goes_on_behind_a_bad_sub_batch_and_says_so(
    rig: Rig, caplog: pytest.LogCaptureFixture, fate: BadSubBatchRule
) -> None:
    rig.publish("a", *events(1), BAD, *events(2), BAD)
    rig.fate = fate
    feeder = rig.feed(**SUM)
    rig.publish("a", *events(3))

    assert rig.sum() == 6
    said = f"projection=p0 from=1 to=4 reason={SENT} bad_sub_batches={fate.value}"
    assert f"events cannot be taken {said}" in caplog.text
    assert feeder.passed_over.count == (2 if fate is BadSubBatchRule.RAW else 0)


def test_the_bytes_of_a_bad_sub_batch_are_an_event_without_an_id(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.publish("a", BAD)
    rig.fate = BadSubBatchRule.RAW
    rig.feed(**SUM)
    rig.caught_up()

    assert "events make no document projection=p0 channel=a events=1 first=0" in caplog.text


def test_one_that_may_not_pass_a_bad_sub_batch_takes_what_is_before_it_and_waits(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.publish("a", *events(1, 2), BAD, *events(4))
    rig.fate = BadSubBatchRule.FAIL
    rig.feed(**SUM)

    assert [rig.end_pause() for _ in range(4)] == [100, 200, 400, 800]
    assert rig.sum() == 3
    assert f"projection waits projection=p0 channel=a error=at position 2 {SENT}" in caplog.text
    assert "set mewbase.bad_sub_batches to skip or raw" in caplog.text

    rig.restart()
    rig.fate = BadSubBatchRule.SKIP
    rig.feed(**SUM)
    assert rig.sum() == 7


@pytest.mark.parametrize("mode", [{}, {"mode": "merge"}, SUM])
def test_a_binder_takes_so_many_ids_and_goes_on_with_those_that_it_has(
    rig: Rig, caplog: pytest.LogCaptureFixture, mode: dict[str, str]
) -> None:
    rig.ids_max = 3
    rig.restart()
    feeder = rig.feed(**mode)
    for names in ("abac", "bdcd", "aed"):  # more than the binder takes, and some of them again
        rig.publish("a", *({"id": name, "n": 1} for name in names))
        rig.caught_up()
    assert sorted(rig.documents()) == ["a", "b", "c"]
    assert feeder.passed_over.count == 4
    assert "reason=the binder takes no more ids (mewbase.binder_ids_max)" in caplog.text
    rig.restart()
    again = rig.feed(**mode)
    rig.publish("a", {"id": "d", "n": 1}, {"id": "c", "n": 7})
    rig.caught_up()
    assert sorted(rig.documents()) == ["a", "b", "c"]
    assert again.passed_over.count == 1


def test_a_slow_function_keeps_no_large_sub_batch_from_others(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[tuple[Callable[[], Any], Pending[Any]]] = []

    def slow(function: Callable[[], Any]) -> Pending[Any]:
        steps.append((function, Pending()))
        return steps[-1][1]

    def count(document: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
        return {"id": event["id"], "seen": [*(document or {"seen": []})["seen"], event["n"]]}

    def other_has_turn() -> bool:
        if rig.pauses:
            rig.end_pause()
        return other.has_turn

    def is_caught_up() -> bool:
        while steps:
            function, done = steps.pop()
            done.settle(function())
        return caught_up.is_settled

    monkeypatch.setattr(rig, "in_thread", slow)
    large = [record_of(bson.encode({"id": "t", "n": n, "d": bytes(50_000)})) for n in range(64)]
    rig.publish("a", {"id": "t", "n": -1}, SubBatch.of(large, ZSTD), {"id": "t", "n": 64})
    rig.change = count
    feeder = rig.feed(mode="python")
    room = rig.reading.room
    for _ in range(2):  # before the sub-batch, and within it
        rig.broker.loop.run_until(lambda: bool(steps))
        other = Opener(room).open(1 << 26, lambda: None, lambda: None)
        assert not other.has_turn
        rig.broker.loop.run_until(other_has_turn)
        other.close()
        function, done = steps.pop()
        done.settle(function())
    caught_up = start(feeder.caught_up())
    rig.broker.loop.run_until(is_caught_up)
    assert rig.documents()["t"]["seen"] == [*range(-1, 65)]
    rig.broker.loop.run_until(lambda: room._left == 1 << 26)


def test_an_event_that_makes_no_document_takes_no_id(rig: Rig) -> None:
    rig.ids_max = 1
    rig.restart()
    rig.feed(**SUM)
    rig.publish("a", {"id": "a"}, {"id": "b", "n": 1}, {"id": "c", "n": 1})
    rig.caught_up()
    assert list(rig.documents()) == ["b"]


def test_an_id_has_at_most_1024_bytes(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    feeder = rig.feed()
    rig.publish("a", {"id": "\xe9" * 512}, {"id": "\xe9" * 512 + "x"})
    rig.caught_up()
    assert list(rig.documents()) == ["\xe9" * 512]
    assert feeder.passed_over.count == 1
    assert "reason=its id has 1025 bytes, and 1024 are the most" in caplog.text


def test_an_event_at_which_the_server_itself_fails_is_passed_over(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    """A path that leads nowhere is told at the start, and here is not looked at."""
    feeder = rig.feed(mode="add", path="...", quantity="n")
    rig.publish("a", *events(1, 2))
    rig.caught_up()
    rig.publish("a", *events(3))
    rig.caught_up()
    assert feeder.passed_over.count == 3
    assert not feeder.failure
    assert "first=0 reason=a fault of the server: ValueError(" in caplog.text


def test_one_that_has_ended_is_told_with_its_reason(
    rig: Rig,
    failing: Callable[[Rig, Exception, bool], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    binders = Binders(rig.wait)
    binders.add(rig.binder)
    feeder = rig.feed(**SUM)
    binders._feeders.append(feeder)
    rig.caught_up()
    assert (binders.ended_of(rig.binder), binders.ended) == ("", [])
    failing(rig, RuntimeError("broken"), False)  # noqa: FBT003
    rig.publish("a", *events(1))
    rig.caught_up()
    assert binders.ended_of(rig.binder) == "p0"
    assert binders.ended == ["projection 'p0': RuntimeError('broken')"]
    assert "projection has ended projection=p0 channel=a" in caplog.text
