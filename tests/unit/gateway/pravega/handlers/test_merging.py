"""Merges of segments over the wire."""

import dataclasses
from uuid import UUID

import pytest

from gateway.pravega.handlers.merging import ACCUMULATE, IF_EQUAL, IF_GREATER, NONE, REPLACE
from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from hutch.pravega.messages import ABSENT
from tests.pravega_client import WireClient
from tests.pravega_rig import WireServer
from tests.unit.gateway.pravega.handlers.test_segments import update, value_of

NAME = UUID(int=7)
MERGE = m.MergeSegments(1, "s", "source", "")


def filled(client: WireClient, segment: str, data: bytes) -> None:
    client.create(segment)
    client.set_up(segment)
    client.append(1, data)


@pytest.fixture
def both(client: WireClient) -> WireClient:
    """A client of a server with a target and a source."""
    filled(client, "s", b"target")
    filled(client, "source", b"source")
    return client


def test_a_merge_that_comes_again_is_answered_as_the_first_was(
    both: WireClient, server: WireServer
) -> None:
    first = both.ask(MERGE, m.SegmentsMerged)
    assert first.new_target_write_offset == 12
    with server.client() as other:
        assert other.ask(MERGE, m.SegmentsMerged) == first
    assert both.content("s") == b"targetsource"


def test_a_merge_of_a_source_that_never_was_is_refused(both: WireClient) -> None:
    both.ask(m.MergeSegments(1, "s", "other", ""), e.NoSuchSegment)
    both.ask(m.MergeSegments(1, "other", "source", ""), e.NoSuchSegment)
    assert both.content("source") == b"source"


@pytest.mark.parametrize(
    ("kind", "before", "value", "old", "after"),
    [
        (NONE, ABSENT, 6, 0, 6),
        (NONE, 5, 6, 0, None),
        (REPLACE, 5, 6, 0, 6),
        (REPLACE, ABSENT, 6, 0, 6),
        (IF_GREATER, 5, 6, 0, 6),
        (IF_GREATER, 5, 5, 0, None),
        (IF_GREATER, ABSENT, -9, 0, -9),
        (ACCUMULATE, 5, -6, 0, -1),
        (ACCUMULATE, ABSENT, 6, 0, 6),
        (ACCUMULATE, 2**63 - 1, 2, 0, -(2**63) + 1),
        (IF_EQUAL, 5, 6, 5, 6),
        (IF_EQUAL, 5, 6, 4, None),
        (IF_EQUAL, ABSENT, 6, ABSENT, 6),
    ],
)
def test_attributes_change_with_the_merge_or_nothing_does(
    both: WireClient, kind: int, before: int, value: int, old: int, after: int | None
) -> None:
    both.ask(update(before, ABSENT), m.SegmentAttributeUpdated)
    change = m.AttributeUpdate(NAME, kind, value, old)
    both.send(dataclasses.replace(MERGE, attribute_updates=(change,)))
    if after is None:
        assert not both.must(m.SegmentAttributeUpdated).success
        assert value_of(both) == before
        assert both.content("source") == b"source"
    else:
        both.must(m.SegmentsMerged)
        assert value_of(both) == after
        assert both.content("s") == b"targetsource"


@pytest.mark.parametrize(
    ("kind", "before", "value", "old"),
    [
        (NONE, ABSENT, 6, 0),
        (REPLACE, 5, 6, 0),
        (IF_GREATER, 5, 6, 0),
        (ACCUMULATE, 5, 1, 0),
        (IF_EQUAL, 5, 6, 5),
    ],
)
def test_a_merge_with_a_condition_comes_again_without_another_change(
    both: WireClient, kind: int, before: int, value: int, old: int
) -> None:
    both.ask(update(before, ABSENT), m.SegmentAttributeUpdated)
    change = m.AttributeUpdate(NAME, kind, value, old)
    merge = dataclasses.replace(MERGE, attribute_updates=(change,))
    first = both.ask(merge, m.SegmentsMerged)
    assert both.ask(merge, m.SegmentsMerged) == first
    assert value_of(both) == 6


@pytest.mark.parametrize(
    ("kinds", "values", "after"),
    [
        ((ACCUMULATE, ACCUMULATE), (2, 3), 10),
        ((ACCUMULATE, IF_GREATER), (2, 8), 8),
        ((ACCUMULATE, IF_GREATER), (2, 7), None),
        ((REPLACE, ACCUMULATE), (1, 1), 2),
    ],
)
def test_a_second_update_of_an_attribute_builds_on_the_first(
    both: WireClient, kinds: tuple[int, int], values: tuple[int, int], after: int | None
) -> None:
    both.ask(update(5, ABSENT), m.SegmentAttributeUpdated)
    changes = tuple(
        m.AttributeUpdate(NAME, kind, value, 0) for kind, value in zip(kinds, values, strict=True)
    )
    both.send(dataclasses.replace(MERGE, attribute_updates=changes))
    assert isinstance(both.receive(), m.SegmentsMerged) is (after is not None)
    assert value_of(both) == (5 if after is None else after)


def test_an_unknown_type_of_update_ends_the_connection(both: WireClient) -> None:
    both.send(dataclasses.replace(MERGE, attribute_updates=(m.AttributeUpdate(NAME, 9, 1, 0),)))
    assert both.is_ended()


def test_a_segment_is_not_merged_into_itself(both: WireClient) -> None:
    both.ask(m.MergeSegments(1, "s", "s", ""), e.ErrorMessage)
    both.set_up("s")
    both.append(2, b"!")
    assert both.content("s") == b"target!"


def test_a_batch_is_merged_in_order_and_again_without_harm(both: WireClient) -> None:
    filled(both, "third", b"third")
    batch = m.MergeSegmentsBatch(1, "s", ("third", "source"), "")
    merged = both.ask(batch, m.SegmentsBatchMerged)
    assert merged.sources == (m.MergedSource("third", 11), m.MergedSource("source", 17))
    again = both.ask(batch, m.SegmentsBatchMerged)
    assert again.sources == (m.MergedSource("third", 17), m.MergedSource("source", 17))
    assert both.content("s") == b"targetthirdsource"


def test_a_batch_into_a_missing_target_is_refused(both: WireClient) -> None:
    both.ask(m.MergeSegmentsBatch(1, "other", ("source",), ""), e.NoSuchSegment)
    assert both.content("source") == b"source"
