"""The life of a segment over the wire."""

from uuid import UUID

from gateway.pravega.segments import CREATED_AT, ROLLOVER_SIZE, SCALE_RATE, SCALE_TYPE, SEGMENTS_MAX
from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from store.api import ATTRIBUTES_MAX
from tests.pravega_client import WRITER, WireClient, end
from tests.pravega_rig import WireServer


def attribute(server: WireServer, segment: str, name: UUID) -> object:
    return server.ask(lambda done: server.store.get_attribute(segment, name, done=done))


def test_a_segment_has_its_policy_from_the_beginning(
    server: WireServer, client: WireClient
) -> None:
    client.ask(m.CreateSegment(1, "s", 20, 2, "", 1_000_000), m.SegmentCreated)

    assert attribute(server, "s", SCALE_TYPE) == 2
    assert attribute(server, "s", SCALE_RATE) == 20
    assert attribute(server, "s", ROLLOVER_SIZE) == 1_000_000
    created_at = attribute(server, "s", CREATED_AT)
    assert isinstance(created_at, int)
    assert created_at > 1_600_000_000_000


def test_a_policy_is_changed(server: WireServer, client: WireClient) -> None:
    client.create("s")
    updated = client.ask(m.UpdateSegmentPolicy(3, "s", 9, 1, ""), m.SegmentPolicyUpdated)
    assert updated == m.SegmentPolicyUpdated(3, "s")
    assert (attribute(server, "s", SCALE_TYPE), attribute(server, "s", SCALE_RATE)) == (1, 9)


def test_a_name_that_is_taken_is_refused(client: WireClient) -> None:
    client.create("s")
    refused = client.ask(m.CreateSegment(4, "s", 0, 0, ""), e.SegmentAlreadyExists)
    assert (refused.request_id, refused.segment) == (4, "s")


def test_info_tells_length_start_and_state(client: WireClient) -> None:
    client.create("s")
    client.set_up("s")
    client.append(1, b"0123456789")
    client.ask(m.TruncateSegment(5, "s", 4, ""), m.SegmentTruncated)
    client.ask(m.SealSegment(6, "s", ""), m.SegmentSealed)

    info = client.ask(m.GetStreamSegmentInfo(7, "s", ""), m.StreamSegmentInfo)

    assert (info.request_id, info.exists, info.is_sealed, info.is_deleted) == (7, True, True, False)
    assert (info.start_offset, info.write_offset) == (4, 10)
    assert info.last_modified > 1_600_000_000_000


def test_a_seal_is_for_once(client: WireClient) -> None:
    client.create("s")
    client.ask(m.SealSegment(6, "s", ""), m.SegmentSealed)
    refused = client.ask(m.SealSegment(8, "s", ""), e.SegmentIsSealed)
    assert (refused.request_id, refused.offset) == (8, -1)


def test_a_truncation_lies_between_start_and_length(client: WireClient) -> None:
    client.create("s")
    client.set_up("s")
    client.append(1, b"0123456789")
    client.ask(m.TruncateSegment(5, "s", 4, ""), m.SegmentTruncated)
    client.ask(m.TruncateSegment(6, "s", 4, ""), m.SegmentTruncated)
    for offset in (3, 11):
        refused = client.ask(m.TruncateSegment(7, "s", offset, ""), e.SegmentIsTruncated)
        assert (refused.start_offset, refused.offset) == (4, offset)


def test_a_deleted_name_is_free_at_once(client: WireClient) -> None:
    client.create("s")
    client.set_up("s")
    client.append(1, b"gone")
    client.send(m.DeleteSegment(2, "s", ""), m.CreateSegment(3, "s", 0, 0, ""))
    assert client.must(m.SegmentDeleted).request_id == 2
    assert client.must(m.SegmentCreated).request_id == 3
    assert client.content("s") == b""


def test_requests_for_a_segment_that_is_not_there_say_so(client: WireClient) -> None:
    for request in (
        m.SealSegment(9, "s", ""),
        m.DeleteSegment(9, "s", ""),
        m.TruncateSegment(9, "s", 0, ""),
        m.GetStreamSegmentInfo(9, "s", ""),
        m.UpdateSegmentPolicy(9, "s", 0, 0, ""),
        m.SetupAppend(9, UUID(int=1), "s", ""),
        m.ReadSegment("s", 0, 10, "", 9),
    ):
        refused = client.ask(request, e.NoSuchSegment)
        assert (refused.request_id, refused.segment) == (9, "s"), request


def test_a_stream_has_no_more_segments_than_may_be_and_others_have_theirs(
    client: WireClient,
) -> None:
    names = [f"scope/stream/{number}" for number in range(SEGMENTS_MAX)]
    for first in range(0, SEGMENTS_MAX, 500):
        some = names[first : first + 500]
        client.send(*(m.CreateSegment(1, name, 0, 0, "") for name in some))
        for name in some:
            assert client.must(m.SegmentCreated).segment == name

    refused = client.ask(m.CreateSegment(2, "scope/stream/more", 0, 0, ""), e.ErrorMessage)
    assert (refused.request_id, refused.segment) == (2, "scope/stream/more")
    assert "5000 segments of 'scope/stream'" in refused.message
    client.ask(t.CreateTableSegment(3, "scope/stream/table", ""), e.ErrorMessage)
    client.create("scope/other/more")
    for _ in range(3):  # parts of segments take no room of theirs
        client.ask(m.CreateTransientSegment(4, WRITER, names[0], ""), m.SegmentCreated)
    client.ask(m.DeleteSegment(5, names[0], ""), m.SegmentDeleted)
    client.create("scope/stream/more")
    client.ask(m.CreateSegment(6, "scope/stream/too many", 0, 0, ""), e.ErrorMessage)


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
