"""Counts of what clients write to segments."""

from __future__ import annotations

import pytest

from gateway.pravega import traffic as module
from gateway.pravega.traffic import SPACING_BYTES, AppendsUnderWay, Boundaries, Traffic, WriteCounts

SEGMENT = "scope/stream/0.#epoch.0"
PART = f"{SEGMENT}#transaction.{1:032x}"


@pytest.fixture
def traffic() -> Traffic:
    traffic = Traffic()
    traffic.is_watched = True
    return traffic


def test_what_is_written_is_taken_once(traffic: Traffic) -> None:
    traffic.note(SEGMENT, 100, 2)
    traffic.note(SEGMENT, 50, 1)

    assert traffic.taken() == {SEGMENT: WriteCounts(150, 3)}
    assert traffic.taken() == {}


def test_what_a_transaction_writes_counts_when_it_is_committed(traffic: Traffic) -> None:
    traffic.note(PART, 100, 2)
    assert traffic.taken() == {}

    traffic.commit(PART, SEGMENT)
    traffic.commit(PART, SEGMENT)

    assert traffic.taken() == {SEGMENT: WriteCounts(100, 2)}


def test_what_an_aborted_transaction_wrote_does_not_count(traffic: Traffic) -> None:
    traffic.note(PART, 100, 2)
    traffic.abort(PART)
    traffic.commit(PART, SEGMENT)

    assert sum(traffic.taken().get(SEGMENT, (0, 0))) == 0


def test_nothing_is_counted_without_a_controller() -> None:
    traffic = Traffic()
    traffic.note(SEGMENT, 100, 2)

    assert traffic.taken() == {}


def test_no_more_segments_are_counted_than_may_be(
    traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SEGMENTS_MAX", 2)
    for name in ("one", "two", "three", "one"):
        traffic.note(name, 1, 1)

    assert traffic.taken() == {"one": WriteCounts(2, 2), "two": WriteCounts(1, 1)}


MIB = 1 << 20


def test_a_callback_waits_until_few_bytes_are_left() -> None:
    under_way, calls = AppendsUnderWay(), []
    for _ in range(3):
        under_way.begin(8 * MIB)
    under_way.when_drained(lambda: calls.append("drained"))
    under_way.end(8 * MIB)
    assert calls == []
    under_way.end(8 * MIB)
    assert calls == ["drained"]


def test_a_callback_waits_until_no_append_is_left_however_small() -> None:
    whole, calls = AppendsUnderWay(), []
    one, other = AppendsUnderWay(whole), AppendsUnderWay(whole)
    one.begin(0)
    other.begin(5)
    whole.when_none(lambda: calls.append("none"))
    other.end(5)
    assert calls == []
    one.end(0)
    assert calls == ["none"]
    assert whole.in_flight_bytes == 0


def test_where_none_is_under_way_the_callback_comes_at_once() -> None:
    calls: list[str] = []
    AppendsUnderWay().when_none(lambda: calls.append("none"))
    assert calls == ["none"]


def test_the_last_noted_at_or_below_a_position_is_found() -> None:
    boundaries = Boundaries()
    for index in range(10):
        boundaries.note("s", 1, index * SPACING_BYTES)
    assert boundaries.below("s", 1, 3 * SPACING_BYTES) == 3 * SPACING_BYTES
    assert boundaries.below("s", 1, 4 * SPACING_BYTES - 1) == 3 * SPACING_BYTES
    assert boundaries.below("s", 1, SPACING_BYTES - 1) == 0


def test_appends_near_each_other_are_noted_once() -> None:
    boundaries = Boundaries()
    boundaries.note("s", 1, SPACING_BYTES)
    boundaries.note("s", 1, SPACING_BYTES + 1)
    assert boundaries.below("s", 1, SPACING_BYTES + 1) == SPACING_BYTES


def test_a_name_that_is_used_again_is_another_segment() -> None:
    boundaries = Boundaries()
    boundaries.note("s", 1, SPACING_BYTES)
    assert boundaries.below("s", 2, SPACING_BYTES) == 0
    boundaries.note("s", 2, 2 * SPACING_BYTES)
    assert boundaries.below("s", 2, 9 * SPACING_BYTES) == 2 * SPACING_BYTES
    boundaries.forget("s")
    assert boundaries.below("s", 2, 9 * SPACING_BYTES) == 0
