"""Checkpoints of a group of readers: when one is the last, and what is forgotten."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gateway.pravega.controller.readers import checkpoints as module
from gateway.pravega.controller.readers import packed
from gateway.pravega.controller.readers.checkpoints import Checkpoints
from gateway.pravega.controller.readers.packed import UnreadableValue, Work

SILENT = "x_SILENT_"


def begun(*names: str, readers: Sequence[str] = ("a", "b")) -> Checkpoints:
    checkpoints = Checkpoints(Work())
    for name in names:
        checkpoints.begin(name, readers, {"free": 1})
    return checkpoints


def test_a_checkpoint_is_the_last_one_when_all_readers_have_reached_it() -> None:
    checkpoints = begun("one")

    checkpoints.reach("one", "a", {"first": 5})
    assert checkpoints.last == {}
    checkpoints.reach("one", "b", {"second": 7})
    assert checkpoints.last == {"free": 1, "first": 5, "second": 7}


def test_a_checkpoint_that_only_asks_for_a_cut_is_not_the_last_one() -> None:
    checkpoints = begun(SILENT)

    for reader in ("a", "b"):
        checkpoints.reach(SILENT, reader, {"first": 5})

    assert checkpoints.last == {}


def test_one_that_begins_without_readers_is_not_the_last_one() -> None:
    assert begun("one", readers=()).last == {}


def test_a_second_beginning_changes_nothing() -> None:
    checkpoints = begun("one")
    checkpoints.reach("one", "a", {})

    checkpoints.begin("one", ("a", "b"), {})
    checkpoints.reach("one", "b", {})

    assert checkpoints.last == {"free": 1}


def test_a_reader_that_ends_has_reached_all_that_wait_for_it() -> None:
    checkpoints = begun("one", readers=("a",))

    checkpoints.remove("b", {"first": 9})
    assert checkpoints.last == {}
    checkpoints.remove("a", {"first": 9})
    assert checkpoints.last == {"free": 1, "first": 9}


def test_those_before_one_are_forgotten_and_cannot_be_reached() -> None:
    checkpoints = begun("one", "two")

    checkpoints.clear_before("none")
    checkpoints.clear_before("two")
    for name in ("one", "two"):
        for reader in ("a", "b"):
            checkpoints.reach(name, reader, {name: 1})

    assert checkpoints.last == {"free": 1, "two": 1}


def test_those_that_are_cancelled_cannot_be_reached() -> None:
    checkpoints = begun("one", SILENT)

    checkpoints.cancel()
    checkpoints.reach("one", "a", {})
    checkpoints.reach(SILENT, "a", {})  # is not cancelled, so that it waits for `a` no more

    with pytest.raises(UnreadableValue):
        checkpoints.reach(SILENT, "a", {})


def test_a_reader_reaches_a_checkpoint_once() -> None:
    checkpoints = begun("one")
    checkpoints.reach("one", "a", {})

    with pytest.raises(UnreadableValue, match="does not wait for it"):
        checkpoints.reach("one", "a", {})


def test_checkpoints_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECKPOINTS_MAX", 2)
    begun("one", "two")
    with pytest.raises(UnreadableValue, match="more than 2 checkpoints"):
        begun("one", "two", "three")

    monkeypatch.setattr(module, "ENTRIES_MAX", 1)
    begun("one")
    with pytest.raises(UnreadableValue, match="has had more than 1"):
        begun("one", "two")


def test_what_checkpoints_copy_counts_as_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "WORK_MAX", 8)

    begun("one", "two")
    with pytest.raises(UnreadableValue, match="more than 8 entries"):
        begun("one", "two", "three")
