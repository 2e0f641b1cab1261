"""Sharing a bounded queue: turns, who gives way, and items that several wait for."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from gateway.broker.access.fair_queue import SOURCES_MAX, FairQueue


def taken(queue: FairQueue[str]) -> list[str]:
    items = []
    while (item := queue.take()) is not None:
        items.append(item)
    assert len(queue) == 0
    return items


def test_each_source_has_its_turn_and_its_own_order() -> None:
    queue: FairQueue[str] = FairQueue(10)
    for item in ("a1", "a2", "a3", "b1", "c1", "c2"):
        assert queue.add(item, item[0]) is None

    assert taken(queue) == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_who_has_most_waiting_gives_way_with_what_it_added_last() -> None:
    queue: FairQueue[str] = FairQueue(3)
    for item in ("a1", "a2", "a3"):
        queue.add(item, "a")

    assert queue.add("a4", "a") == "a4"
    assert queue.add("b1", "b") == "a3"
    assert queue.add("b2", "b") == "b2"
    assert queue.add("c1", "c") == "a2"
    assert queue.add("d1", "d") == "d1"

    assert taken(queue) == ["a1", "b1", "c1"]


def test_an_item_that_another_source_waits_for_stays() -> None:
    queue: FairQueue[str] = FairQueue(2)
    queue.add("a1", "a")
    queue.add("a2", "a")
    queue.join("a2", "b")
    queue.join("a2", "b")
    queue.join("not there", "b")

    assert queue.add("c1", "c") == "c1"
    assert queue.take() == "a1"
    assert queue.add("c1", "c") is None

    assert taken(queue) == ["a2", "c1"]


def test_an_item_that_a_thousand_wait_for_is_looked_up_for_a_few_of_them() -> None:
    queue: FairQueue[str] = FairQueue(2)
    queue.add("shared", "a")
    for number in range(1_000):
        queue.join("shared", f"10.0.{number >> 8}.{number & 255}")

    assert len(queue._waiting) == SOURCES_MAX
    assert taken(queue) == ["shared"]
    assert not queue._waiting


@given(
    st.integers(1, 5),
    st.lists(
        st.tuples(st.sampled_from(["add", "add", "join", "take"]), st.sampled_from("abc")),
        max_size=60,
    ),
)
def test_nothing_is_lost_doubled_or_beyond_the_bound(
    most: int, steps: list[tuple[str, str]]
) -> None:
    queue: FairQueue[int] = FairQueue(most)
    there: deque[int] = deque()
    for number, (step, source) in enumerate(steps):
        if step == "add":
            out = queue.add(number, source)
            there.append(number)
            if out is not None:
                there.remove(out)
        elif step == "join" and there:
            queue.join(there[0], source)
        elif step == "take":
            item = queue.take()
            assert (item is None) == (not there)
            if item is not None:
                there.remove(item)
        assert len(queue) == len(there) <= most
    while (item := queue.take()) is not None:
        there.remove(item)
    assert not there
