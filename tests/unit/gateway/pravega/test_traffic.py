"""Counts of what clients write to segments."""

from __future__ import annotations

import pytest

from gateway.pravega import traffic as module
from gateway.pravega.traffic import Traffic, Written

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

    assert traffic.taken() == {SEGMENT: Written(150, 3)}
    assert traffic.taken() == {}


def test_what_a_transaction_writes_counts_when_it_is_committed(traffic: Traffic) -> None:
    traffic.note(PART, 100, 2)
    assert traffic.taken() == {}

    traffic.commit(PART, SEGMENT)
    traffic.commit(PART, SEGMENT)

    assert traffic.taken() == {SEGMENT: Written(100, 2)}


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

    assert traffic.taken() == {"one": Written(2, 2), "two": Written(1, 1)}
