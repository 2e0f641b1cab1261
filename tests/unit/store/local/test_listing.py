from collections.abc import Callable

from store.errors import StoreClosed, StoreError
from store.local.listing import Listing


def test_many_names_are_looked_at_in_several_turns() -> None:
    names = [f"{'a' if number % 2 else 'b'}/{number:06}" for number in range(50_000)]
    later: list[Callable[[], object]] = []
    found: list[list[str] | StoreError] = []
    Listing("a/", found.append, later.append).begin(None, names)
    turns = 1
    del names[:]  # what is deleted meanwhile was there
    while later:
        later.pop()()
        turns += 1
    assert turns == 3
    assert found == [[f"a/{number:06}" for number in range(1, 50_000, 2)]]


def test_a_store_that_is_closed_lists_nothing() -> None:
    closed = StoreClosed("closed")
    found: list[list[str] | StoreError] = []
    Listing("", found.append, lambda _: None).begin(closed, ["a"])
    assert found == [closed]
