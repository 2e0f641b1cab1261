"""Publish frames with filter values: what of them is kept with which chunk."""

import pytest

from gateway.log.derived.filters import FILTER_BYTES_MAX, pack_filters
from tests.unit.gateway.stream.link_rig import LinkRig
from tests.unit.gateway.stream.test_publishing import bodies, stored


def test_filter_values_are_kept_with_the_chunk(client: LinkRig) -> None:
    client.declare(1, "s")

    client.publish_filtered(1, (1, "pear", b"a"), (2, "fig", b"b"))
    client.broker.settle("s")

    assert client.ports.intakes == [(2, client.broker.log("s"))]
    assert client.confirmed() == [(1, (1, 2))]
    ((chunk, rest),) = stored(client.broker)
    assert chunk.records() == [b"a", b"b"]
    assert (chunk.trailer_size, rest) == (0, pack_filters({b"fig", b"pear"}))


@pytest.mark.parametrize("order", ["filtered first", "plain first"])
def test_a_chunk_with_both_kinds_of_entries_says_that_some_have_no_value(
    client: LinkRig, order: str
) -> None:
    client.declare(1, "s")
    if order == "plain first":
        client.publish(1, (1, b"a"))
    client.publish_filtered(1, (2, "fig", b"b"))
    if order == "filtered first":
        client.publish(1, (3, b"c"))
    client.broker.settle("s")

    assert [rest for _, rest in stored(client.broker)] == [pack_filters({b"", b"fig"})]


@pytest.mark.parametrize("how", ["no value", "an empty value", "version 1"])
def test_many_entries_with_values_share_no_chunk_with_entries_that_have_none(
    client: LinkRig, how: str
) -> None:
    client.declare(1, "s")

    def without(first: int) -> None:
        if how == "version 1":
            client.publish(1, *((n, b"b") for n in range(first, first + 20)))
        else:
            value = None if how == "no value" else ""
            client.publish_filtered(1, *((n, value, b"b") for n in range(first, first + 20)))

    client.publish_filtered(1, *((n, "fig", b"a") for n in range(20)))
    without(20)
    client.publish_filtered(1, *((n, "fig", b"a") for n in range(40, 60)))
    without(60)
    client.broker.settle("s")

    found = [(chunk.records(), rest) for chunk, rest in stored(client.broker)]
    nothing = b"" if how == "version 1" else pack_filters({b""})
    assert found == [
        ([b"a"] * 20, pack_filters({b"fig"})),
        ([b"b"] * 20, nothing),
        ([b"a"] * 20, pack_filters({b"fig"})),
        ([b"b"] * 20, nothing),
    ]
    assert sorted(each for _, ids in client.confirmed() for each in ids) == list(range(80))


def test_few_entries_with_values_share_a_chunk_with_those_that_have_none(client: LinkRig) -> None:
    client.declare(1, "s")
    for number in range(15):
        client.publish(1, (number, b"b"))
    client.publish_filtered(1, (15, "fig", b"a"))
    client.publish_filtered(1)
    client.publish(1, (16, b"b"))
    client.broker.settle("s")

    ((chunk, rest),) = stored(client.broker)
    assert (chunk.entry_count, rest) == (17, pack_filters({b"", b"fig"}))


def test_filter_values_of_a_chunk_are_not_those_of_the_next(client: LinkRig) -> None:
    client.declare(1, "s")
    client.publish_filtered(1, (1, "fig", b"a"))
    client.broker.settle("s")

    client.publish_filtered(1, (2, "pear", b"b"))
    client.broker.settle("s")
    client.publish(1, (3, b"c"))
    client.broker.settle("s")

    rests = [rest for _, rest in stored(client.broker)]
    assert rests == [pack_filters({b"fig"}), pack_filters({b"pear"}), b""]


def test_a_filtered_frame_that_fills_chunks_leaves_its_values_where_its_entries_are(
    client: LinkRig,
) -> None:
    client.declare(1, "s")

    client.publish_filtered(1, *((n, f"v{n}", bytes(400_000)) for n in range(5)))
    client.broker.settle("s")

    found = [(chunk.entry_count, rest) for chunk, rest in stored(client.broker)]
    assert found == [
        (2, pack_filters({b"v0", b"v1"})),
        (2, pack_filters({b"v2", b"v3"})),
        (1, pack_filters({b"v4"})),
    ]


def test_more_filter_values_than_are_written_are_not_kept_in_memory(client: LinkRig) -> None:
    client.declare(1, "s")
    client.publish(1, (0, b"first"))
    chunk = client.broker.log("s").open_chunk(0)

    for number in range(1, 41):
        client.publish_filtered(1, (number, f"{number:010000}", b"x"))
        assert chunk.filters is not None
        assert sum(map(len, chunk.filters)) < 2 * FILTER_BYTES_MAX
    client.broker.settle("s")

    ((found, rest),) = stored(client.broker)
    assert found.entry_count == 41
    assert rest == pack_filters({b"", *(b"%010000d" % number for number in range(1, 41))})


def test_few_filter_values_of_many_entries_are_kept(client: LinkRig) -> None:
    client.declare(1, "s")

    for number in range(40):
        client.publish_filtered(1, (number, f"{number % 2:010000}", b"x"))
    client.broker.settle("s")

    ((found, rest),) = stored(client.broker)
    assert (found.entry_count, rest) == (40, pack_filters({b"%010000d" % n for n in range(2)}))


def test_duplicates_in_a_filtered_frame_are_confirmed(client: LinkRig) -> None:
    client.declare(1, "s", "ref")

    client.publish_filtered(1, (5, "fig", b"a"), (5, "old", b"again"), (4, "old", b"again"))
    client.broker.settle("s")

    assert [sorted(ids) for _, ids in client.confirmed()] == [[4, 5, 5]]
    assert bodies(client.broker) == [b"a"]
