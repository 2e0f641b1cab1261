"""Attributes over the wire."""

from uuid import UUID

from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from store.api import ATTRIBUTES_MAX
from tests.pravega_client import WRITER, WireClient, end

NAME = UUID(int=7)


def update(new: int, expected: int, name: UUID = NAME) -> m.UpdateSegmentAttribute:
    return m.UpdateSegmentAttribute(1, "s", name, new, expected, "")


def value_of(client: WireClient, name: UUID = NAME) -> int:
    return client.ask(m.GetSegmentAttribute(1, "s", name, ""), m.SegmentAttribute).value


def test_an_attribute_changes_if_it_is_as_expected(client: WireClient) -> None:
    client.create("s")
    assert value_of(client) == m.ABSENT
    assert client.ask(update(5, m.ABSENT), m.SegmentAttributeUpdated).success
    assert not client.ask(update(6, 4), m.SegmentAttributeUpdated).success
    assert value_of(client) == 5


def test_an_attribute_is_removed_by_the_value_that_none_has(client: WireClient) -> None:
    client.create("s")
    client.ask(update(5, m.ABSENT), m.SegmentAttributeUpdated)
    assert client.ask(update(m.ABSENT, 5), m.SegmentAttributeUpdated).success
    assert value_of(client) == m.ABSENT


def test_a_change_of_a_writers_number_fences_it(client: WireClient) -> None:
    client.create("s")
    client.set_up("s")
    client.append(1, b"a")
    assert value_of(client, WRITER) == 1
    assert client.ask(update(9, 1, WRITER), m.SegmentAttributeUpdated).success
    client.ask(end(2, b"b"), e.InvalidEventNumber)


def test_an_attribute_of_a_missing_segment_is_refused(client: WireClient) -> None:
    client.ask(m.GetSegmentAttribute(1, "s", NAME, ""), e.NoSuchSegment)
    client.ask(update(5, m.ABSENT), e.NoSuchSegment)


def test_a_segment_has_no_more_attributes_than_may_be(client: WireClient) -> None:
    client.create("s")
    names = [UUID(int=1 << 80 | number) for number in range(ATTRIBUTES_MAX)]
    answers: list[object] = []
    for first in range(0, ATTRIBUTES_MAX, 500):
        some = names[first : first + 500]
        client.send(*(update(1, m.ABSENT, name) for name in some))
        answers += [client.receive() for _ in some]
    refused = [each for each in answers if not isinstance(each, m.SegmentAttributeUpdated)]
    # The policy and the time of creation are four of them.
    assert len(refused) == 4
    assert all(isinstance(each, e.ErrorMessage) for each in refused)
    assert client.ask(update(m.ABSENT, 1, names[0]), m.SegmentAttributeUpdated).success
    assert client.ask(update(2, m.ABSENT, names[-1]), m.SegmentAttributeUpdated).success
    client.ask(update(2, m.ABSENT, names[0]), e.ErrorMessage)
