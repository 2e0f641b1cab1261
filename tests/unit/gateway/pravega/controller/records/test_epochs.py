"""Facts of a stream's history: what its definition says, at a cost that grows with its segments."""

from __future__ import annotations

import gc
import math
import random
import time
from itertools import pairwise

import pytest

from gateway.pravega.controller.records import history as facts
from gateway.pravega.controller.records.epochs import Epoch, History, StreamSegment
from gateway.pravega.controller.records.history import evenly, is_done, scaled

Cut = dict[int, int]


def overlap(one: StreamSegment, other: StreamSegment) -> bool:
    return one.low < other.high and other.low < one.high


def drawn(seed: int, scalings: int = 8) -> History:
    """Return a history of splits and merges."""
    chance = random.Random(seed)
    history = History((evenly(chance.randint(1, 4), chance.randint(0, 9), 0),))
    for at_ms in range(scalings):
        first = chance.randrange(len(history.open))
        ended = history.open[first : first + chance.randint(1, 3)]
        edges = sorted({ended[0].low, ended[-1].high, *inner(chance, ended[0].low, ended[-1].high)})
        coming = scaled(history, [each.identity for each in ended], pairwise(edges), at_ms)
        assert coming is not None
        history = history.followed_by(coming)
    return history


def inner(chance: random.Random, low: float, high: float) -> list[float]:
    return [chance.uniform(low, high) for _ in range(chance.randint(0, 2))]


def cut_of(history: History, seed: int) -> Cut:
    """Return a legal cut, of segments of several epochs."""
    chance, cut, position = random.Random(seed), Cut(), 0.0
    while position < 1.0 - 1e-9:
        segments = history.segments.values()
        segment = chance.choice([each for each in segments if abs(each.low - position) < 1e-9])
        cut[segment.identity] = chance.randint(0, 9)
        position = segment.high
    return cut


def shapes(history: History) -> list[list[StreamSegment]]:
    """Return the segments of each epoch, one after the other."""
    found: list[list[StreamSegment]] = []
    for epoch in history.epochs:
        kept = [each for each in found[-1] if each.identity not in epoch.ended] if found else []
        found.append(sorted([*kept, *epoch.made]))
    return found


SEEDS = pytest.mark.parametrize("seed", range(40))


@SEEDS
def test_an_epoch_has_what_began_and_did_not_end(seed: int) -> None:
    history = drawn(seed)
    of_epochs = shapes(history)

    assert [list(history.at(epoch.number)) for epoch in history.epochs] == of_epochs
    assert list(history.open) == of_epochs[-1]
    assert history.at(-1) == history.at(len(of_epochs)) == ()
    assert history.next_number == 1 + max(each.number for each in of_epochs[-1])


@SEEDS
def test_a_segment_is_followed_by_what_has_its_keys_in_the_epoch_of_its_end(seed: int) -> None:
    history = drawn(seed)
    expected: dict[int, dict[StreamSegment, list[int]]] = {each: {} for each in history.segments}
    for before, after in pairwise(shapes(history)):
        ended = [each for each in before if each not in after]
        for segment in ended:
            expected[segment.identity] = {
                new: [old.identity for old in ended if overlap(old, new)]
                for new in after
                if new not in before and overlap(new, segment)
            }

    assert {each: history.successors(each) for each in history.segments} == expected


@SEEDS
def test_before_a_cut_is_what_is_older_than_a_segment_of_the_cut_with_its_keys(seed: int) -> None:
    history = drawn(seed)
    cut = cut_of(history, seed)
    inside = [history.segments[each] for each in cut]

    assert facts.is_cut(history, cut)
    assert history.before(cut) == {
        identity
        for identity, segment in history.segments.items()
        if identity not in cut
        and any(overlap(segment, each) and segment.epoch < each.epoch for each in inside)
    }
    assert history.before({}) == set()


@SEEDS
def test_behind_a_cut_is_what_is_newer_than_a_segment_of_the_cut_with_its_keys(seed: int) -> None:
    history = drawn(seed)
    whole = cut_of(history, seed)

    for cut in (whole, dict(list(whole.items())[1:])):  # a part of a cut has not all keys
        inside = [history.segments[each] for each in cut]
        assert history.behind(cut) == cut.keys() | {
            identity
            for identity, segment in history.segments.items()
            if any(overlap(segment, each) and segment.epoch > each.epoch for each in inside)
        }
    assert history.behind(whole) | history.before(whole) == history.segments.keys()
    assert history.behind({}) == set()


@SEEDS
def test_a_history_goes_on_without_its_oldest_epochs(seed: int) -> None:
    history = drawn(seed)
    place = seed % len(history.epochs)
    later = history.since(place)

    numbers = [epoch.number for epoch in history.epochs[place:]]
    assert [later.at(number) for number in numbers] == [history.at(number) for number in numbers]
    assert later.open == history.open
    assert later.at(numbers[0] - 1) == ()
    for identity in later.segments:
        assert later.successors(identity) == history.successors(identity)
    assert later.next_number == history.next_number


@pytest.mark.parametrize(
    "ranges",
    [
        [(0.0, 0.4), (0.5, 1.0)],
        [(0.0, 0.6), (0.5, 1.0)],
        [(0.0, 0.5), (0.5, 0.5), (0.5, 1.0)],
        [(0.0, 0.5), (0.5, 0.5 + 1e-10), (0.5 + 1e-10, 1.0)],
        [(math.nan, 1.0)],
        [(0.0, math.nan), (math.nan, 1.0)],
        [(-math.inf, math.inf)],
        [],
    ],
)
def test_ranges_with_a_gap_a_key_in_two_or_no_keys_are_refused(
    ranges: list[tuple[float, float]],
) -> None:
    assert scaled(History((evenly(2, 0, 0),)), [0, 1], ranges, 0) is None


@pytest.mark.parametrize("count", [3, 5, 7, 49, 1_000])
def test_new_segments_have_the_edges_of_the_old_ones_to_the_last_bit(count: int) -> None:
    first = evenly(count, 0, 0)
    history = History((first,))
    for number, segment in enumerate(first.made):
        low, high = number / count, (number + 1) / count
        ranges = [(low, (low + high) / 2), ((low + high) / 2 + 1e-16, high)]
        epoch = scaled(history, [segment.identity], ranges, 0)
        assert epoch is not None
        one, other = epoch.made
        assert (one.low, one.high, other.high) == (segment.low, other.low, segment.high)
        assert is_done(epoch, [segment.identity], ranges)


def test_first_segments_have_the_edges_that_clients_compute() -> None:
    width = 1.0 / 5

    assert [each.low for each in evenly(5, 0, 0).made] == [place * width for place in range(5)]
    assert evenly(49, 0, 0).made[-1].high == 1


def test_only_open_segments_end() -> None:
    history = History((evenly(1, 0, 0),))
    coming = scaled(history, [0], [(0.0, 1.0)], 1)
    assert coming == Epoch(1, 1, (StreamSegment(0.0, 1.0, 1, 1),), (0,))

    assert scaled(history.followed_by(coming), [0], [(0.0, 1.0)], 2) is None
    assert scaled(history, [7], [(0.0, 1.0)], 2) is None


# Costs


def large(segments: int) -> History:
    """Return a history of segments with all keys, one after the other, and then of narrow ones."""
    count = segments // 2
    wide = [Epoch(0, 0, (StreamSegment(0.0, 1.0, 0, 0),))]
    for number in range(1, count):
        made = (StreamSegment(0.0, 1.0, number, number),)
        wide.append(Epoch(number, number, made, (wide[-1].made[0].identity,)))
    narrow = tuple(each._replace(epoch=count) for each in evenly(count, count, count).made)
    return History((*wide, Epoch(count, count, narrow, (wide[-1].made[0].identity,))))


def cost_s(segments: int) -> float:
    history = large(segments)
    began_s = time.thread_time()
    cut = dict.fromkeys((each.identity for each in history.open), 0)
    assert facts.is_cut(history, cut)
    assert len(history.before(cut)) == segments // 2
    assert len(history.behind({history.epochs[0].made[0].identity: 0})) == len(history.segments)
    last_wide = history.epochs[-1].ended[0]
    assert len(history.successors(last_wide)) == segments // 2
    assert len(history.at(history.last.number)) == segments // 2
    return time.thread_time() - began_s


def test_eight_times_as_many_segments_cost_eight_times_as_much() -> None:
    once_s = eight_s = math.inf
    gc.disable()  # it would look through what other tests left
    try:
        for _ in range(20):  # what others keep in the processor's memory only adds
            once_s, eight_s = min(once_s, cost_s(2_500)), min(eight_s, cost_s(20_000))
            if eight_s <= 2.3**3 * once_s:
                return
    finally:
        gc.enable()
    pytest.fail(f"{eight_s} s where an eighth takes {once_s} s")
