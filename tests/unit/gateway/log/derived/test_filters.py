"""Filter values of a chunk, and which chunks a subscription's filter lets through."""

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.log.derived.filters import (
    FINGERPRINTS_MAX,
    WANTED_MAX,
    SubscriptionFilter,
    filter_of,
    fold,
    pack_filters,
)

VALUES = st.binary(min_size=1, max_size=12)


def wants(*values: bytes, unfiltered: bool = False) -> SubscriptionFilter:
    return SubscriptionFilter(values, unfiltered=unfiltered)


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"customer-%d" % number for number in range(first, first + count)]


# What a subscription's properties mean


@pytest.mark.parametrize(
    ("properties", "values", "unfiltered"),
    [
        ({"filter.0": "pear"}, {b"pear"}, False),
        ({"filter.": "pear", "filter.x": "fig"}, {b"pear", b"fig"}, False),
        ({"filter.0": ""}, set(), True),
        ({"filter.0": "", "filter.1": "pear"}, {b"pear"}, True),
        ({"filter.1": "pear", "filter.0": ""}, {b"pear"}, True),
        ({"filter.0": "pear", "match-unfiltered": "true"}, {b"pear"}, True),
        ({"filter.0": "pear", "match-unfiltered": "TRUE"}, {b"pear"}, False),
        ({"filter.0": "pear", "match-unfiltered": "1"}, {b"pear"}, False),
        ({"filter.0": "\udcff"}, {b"\xff"}, False),
    ],
)
def test_each_property_named_filter_dot_something_gives_a_value(
    properties: dict[str, str], values: set[bytes], *, unfiltered: bool
) -> None:
    wanted = filter_of(properties)

    assert wanted is not None
    assert (set(wanted.values or ()), wanted.unfiltered) == (values, unfiltered)


@pytest.mark.parametrize(
    "properties",
    [{}, {"filter": "pear"}, {"match-unfiltered": "true"}, {"Filter.0": "pear", "name": "n"}],
)
def test_without_such_a_property_everything_is_wanted(properties: dict[str, str]) -> None:
    assert filter_of(properties) is None


@pytest.mark.parametrize("count", [WANTED_MAX, WANTED_MAX + 1, 20_000])
@pytest.mark.parametrize("others", [0, 100, 1000])
def test_very_many_wanted_values_are_all_found_and_hardly_any_other(
    count: int, others: int
) -> None:
    wanted = filter_of({f"filter.{at}": f"value-{at}" for at in range(count)})
    foreign = [b"foreign-%d" % number for number in range(others)]

    assert wanted is not None
    assert not wanted.lets_through(b"")
    for at in (0, count // 2, count - 1):
        assert wanted.lets_through(pack_filters({b"value-%d" % at, *foreign}))
    if not others:
        passed = sum(wanted.lets_through(pack_filters({b"not-%d" % at})) for at in range(1_000))
        assert passed <= 20


def test_what_is_kept_of_very_many_wanted_values_does_not_grow_with_their_size() -> None:
    tracemalloc.start()
    try:
        wanted = filter_of({f"filter.{at}": f"{at}" + "x" * 1_000 for at in range(4_096)})
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert wanted is not None
    assert kept_bytes < 4_096 * 300


# What a chunk says


def test_a_chunk_without_filter_values_is_wanted_only_by_who_wants_unfiltered_messages() -> None:
    assert pack_filters({b""}) == pack_filters([]) == b""
    assert not wants(b"pear").lets_through(b"")
    assert wants(b"pear", unfiltered=True).lets_through(b"")


@pytest.mark.parametrize("others", [0, 5, 100, 1000])
def test_some_entries_without_a_value_are_found_next_to_any_number_with_one(others: int) -> None:
    without = pack_filters({b"", b"pear", *numbered(others)})
    all_have_one = pack_filters({b"pear", *numbered(others)})

    assert wants(unfiltered=True).lets_through(without)
    assert not wants(unfiltered=True).lets_through(all_have_one)
    assert not wants(b"no such value").lets_through(without)


@pytest.mark.parametrize("values", [{b"pear"}, set(numbered(64)), {b"x" * 1000}])
def test_few_values_are_kept_as_they_are_and_let_nothing_else_through(values: set[bytes]) -> None:
    packed = pack_filters(values)

    assert all(value in packed for value in values)
    assert all(wants(value).lets_through(packed) for value in values)
    assert not wants(*numbered(10_000, first=100)).lets_through(packed)


@pytest.mark.parametrize(
    ("count", "width"), [(65, 2), (100, 2), (655, 2), (656, 3), (FINGERPRINTS_MAX, 3)]
)
def test_many_values_take_two_or_three_bytes_each(count: int, width: int) -> None:
    packed = pack_filters(numbered(count))

    assert count * width * 0.99 <= len(packed) <= count * width + 8


def test_more_values_than_that_may_be_any_value() -> None:
    packed = pack_filters({b"", *numbered(FINGERPRINTS_MAX + 1)})

    assert len(packed) < 10
    assert wants(b"no such value").lets_through(packed)


def test_values_given_up_for_hashes_are_found_as_those_that_were_kept() -> None:
    values = set(numbered(500)) | {b""}
    digests: set[bytes] = set()
    fold(values, digests)
    assert values == {b""}
    values |= set(numbered(100, first=450))

    assert pack_filters(values, digests) == pack_filters({b"", *numbered(550)})


def test_hashes_beyond_the_largest_number_are_not_kept() -> None:
    digests: set[bytes] = set()

    fold(set(numbered(2 * FINGERPRINTS_MAX)), digests)

    assert len(digests) == FINGERPRINTS_MAX + 1
    assert wants(b"no such value").lets_through(pack_filters([], digests))


def test_damaged_filter_values_hold_nothing_back() -> None:
    for packed in (pack_filters({b"fig", b"apple"}), pack_filters(numbered(300))):
        for place in range(len(packed)):
            damaged = bytearray(packed)
            damaged[place] ^= 0x40
            assert wants(b"pear").lets_through(bytes(damaged))
            assert wants(b"pear").lets_through(packed[:place]) is (place > 0)


def test_a_form_that_is_not_known_holds_nothing_back() -> None:
    assert wants(b"pear").lets_through(b"\x02\0\0")
    assert wants(b"pear").lets_through(b"\0\0\1\0\3fig")


# No value that is there is ever missed


@given(
    values=st.sets(VALUES, max_size=300),
    others=st.sets(VALUES, max_size=40),
    some_without=st.booleans(),
    unfiltered=st.booleans(),
)
def test_no_chunk_with_a_wanted_value_is_held_back(
    values: set[bytes], others: set[bytes], *, some_without: bool, unfiltered: bool
) -> None:
    packed = pack_filters(values | {b""} if some_without else values)

    for wanted in (others, *({value} for value in values)):
        passed = SubscriptionFilter(wanted, unfiltered=unfiltered).lets_through(packed)
        has_unfiltered = some_without or not values
        assert passed or not (values & wanted or (unfiltered and has_unfiltered))


def test_of_foreign_values_at_most_one_in_fifty_is_let_through() -> None:
    chance = random.Random(7)
    for count in (65, 100, 655, 656, 5000):
        packed = pack_filters({chance.randbytes(8) for _ in range(count)})

        passed = sum(wants(chance.randbytes(9)).lets_through(packed) for _ in range(5000))

        assert passed <= 0.02 * 5000, count
