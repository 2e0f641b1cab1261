"""Publish frames in, confirms and errors out, over a real log; the kernel does the taking."""

import pytest

from gateway.stream import publishing
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.errors import MalformedFrame
from tests.chunks import GZIP, Chunk, Entry, SubBatch, publish_body
from tests.unit.gateway.log.log_rig import chunks_in
from tests.unit.gateway.stream.link_rig import Broker, LinkRig

REFUSED = ResponseCode.PRECONDITION_FAILED
UNKNOWN = ResponseCode.PUBLISHER_DOES_NOT_EXIST
BAD = SubBatch(7, 1, 4, b"no such compression")


def stored(broker: Broker, name: str = "s") -> list[tuple[Chunk, bytes]]:
    """Chunks of a stream, and what follows their data."""
    return chunks_in(broker.store_rig.content_now(broker.log(name)))


def bodies(broker: Broker, name: str = "s") -> list[bytes]:
    return [record for chunk, _ in stored(broker, name) for record in chunk.records()]


def frame(*entries: tuple[int, Entry], publisher_id: int = 1) -> bytes:
    body = b"\0\2\0\1" + publish_body(publisher_id, entries)
    return len(body).to_bytes(4) + body


# Storing and confirming


def test_entries_are_stored_and_their_ids_confirmed_after_the_commit(client: LinkRig) -> None:
    client.declare(1, "s")

    client.publish(1, (10, b"a"), (11, b"b"))

    assert client.ports.intakes == [(2, client.broker.log("s"))]
    assert client.confirmed() == []
    client.broker.settle("s")
    assert client.confirmed() == [(1, (10, 11))]
    assert bodies(client.broker) == [b"a", b"b"]


def test_a_run_of_frames_of_one_publisher_is_taken_in_one_go(client: LinkRig) -> None:
    client.declare(1, "s")
    run = frame((1, b"a")) + frame((2, b"b")) + frame()

    position = client.publish_frames(run + frame((9, b"x"), publisher_id=2))

    assert position == len(run)
    assert client.ports.intakes == [(2, client.broker.log("s"))]


def test_publishers_of_one_chunk_are_confirmed_each_in_a_frame_of_its_own(
    client: LinkRig,
) -> None:
    client.declare(1, "s")
    client.declare(2, "s")

    client.publish(1, (1, b"a"))
    client.publish(2, (1, b"b"))
    client.publish(1, (2, b"c"))
    client.broker.settle("s")

    assert client.confirmed() == [(1, (1, 2)), (2, (1,))]
    assert len(stored(client.broker)) == 1


def test_a_confirm_goes_to_the_connection_that_published(client: LinkRig) -> None:
    other = client.broker.link()
    client.declare(1, "s", "ref")
    other.declare(1, "s", "ref")

    client.publish(1, (1, b"a"))
    other.publish(1, (1, b"again"), (2, b"b"))
    client.broker.settle("s")

    assert client.confirmed() == [(1, (1,))]
    assert other.confirmed() == [(1, (2, 1))], "what is new is confirmed before duplicates"
    assert bodies(client.broker) == [b"a", b"b"]


def test_a_sub_batch_is_one_id_and_many_offsets(client: LinkRig) -> None:
    client.declare(1, "s")

    client.publish(1, (5, SubBatch.of([b"a", b"b", b"c"], GZIP)), (6, b"d"))
    client.broker.settle("s")

    assert client.confirmed() == [(1, (5, 6))]
    assert client.broker.log("s").committed_next_offset == 4
    assert bodies(client.broker) == [b"a", b"b", b"c", b"d"]


def test_ids_of_an_unnamed_publisher_mean_nothing_to_the_server(client: LinkRig) -> None:
    client.declare(1, "s")

    client.publish(1, (2**64 - 1, b"a"), (0, b"b"), (0, b"c"))
    client.broker.settle("s")

    assert client.confirmed() == [(1, (2**64 - 1, 0, 0))]


def test_what_waits_for_its_confirm_is_counted_until_it_has_it(client: LinkRig) -> None:
    client.declare(1, "s")
    client.publish(1, (1, b"a"), (2, b"b"))
    publisher = client.link.publishers[1]
    assert (publisher.unconfirmed_count, client.ports.settled_count) == (2, 0)

    client.broker.settle("s")

    assert (publisher.unconfirmed_count, client.ports.settled_count) == (0, 2)


# Duplicates


def test_a_named_publisher_stores_no_id_twice_and_duplicates_are_confirmed(
    client: LinkRig,
) -> None:
    client.declare(1, "s", "ref")

    client.publish(1, (1, b"a"), (1, b"again"), (2, b"b"))
    client.publish(1, (2, b"again"), (3, b"c"), (1, b"again"))
    client.broker.settle("s")

    confirmed = [each for _, ids in client.confirmed() for each in ids]
    assert sorted(confirmed) == [1, 1, 1, 2, 2, 3]
    assert bodies(client.broker) == [b"a", b"b", b"c"]


def test_a_duplicate_is_not_confirmed_before_its_original_is_stored(client: LinkRig) -> None:
    client.declare(1, "s", "ref")
    client.publish(1, (1, b"a"))
    client.broker.store_rig.turn_until_appended(client.broker.log("s"))

    client.publish(1, (1, b"again"))

    assert client.ports.intakes[-1] == (1, client.broker.log("s"))
    assert client.confirmed() == []
    client.broker.settle("s")
    assert client.confirmed() == [(1, (1, 1))]


def test_a_duplicate_of_something_stored_is_confirmed_at_once(client: LinkRig) -> None:
    client.declare(1, "s", "ref")
    client.publish(1, (5, b"a"))
    client.broker.settle("s")
    client.confirmed()

    client.publish(1, (5, b"again"), (3, b"again"))

    assert client.confirmed() == [(1, (5, 3))]


@pytest.mark.parametrize("count", [8_191, 8_192, 8_193, 20_000])
def test_any_number_of_duplicates_is_confirmed(client: LinkRig, count: int) -> None:
    client.declare(1, "s", "ref")
    client.publish(1, (50_000, b"a"))
    client.broker.settle("s")
    client.confirmed()

    client.publish(1, *((number, b"x") for number in range(count)), (50_001, b"new"))
    client.broker.settle("s")

    confirmed = [each for _, ids in client.confirmed() for each in ids]
    assert sorted(confirmed) == [*range(count), 50_001]
    assert client.ports.intakes[-1] == (count + 1, client.broker.log("s"))
    assert bodies(client.broker) == [b"a", b"new"]


@pytest.mark.parametrize("last", [2**63 - 1, 2**63, 2**64 - 2])
def test_ids_of_a_named_publisher_are_unsigned(client: LinkRig, last: int) -> None:
    client.declare(1, "s", "ref")

    client.publish(1, (last, b"a"), (last + 1, b"b"), (last, b"again"), (5, b"again"))
    client.broker.settle("s")
    client.publish(1, (last + 1, b"again"))

    assert bodies(client.broker) == [b"a", b"b"]
    sequence = client.ask(
        m.PublisherSequence, "query_publisher_sequence", m.QueryPublisherSequence("ref", "s")
    )
    assert sequence.sequence == last + 1


def test_the_last_id_of_a_reference_outlives_its_publisher(client: LinkRig) -> None:
    client.declare(1, "s", "ref")
    client.publish(1, (7, b"a"))
    client.tell("delete_publisher", m.DeletePublisher(1))
    client.declare(2, "s", "ref")

    client.publish(2, (7, b"again"), (8, b"b"))
    client.broker.settle("s")

    assert bodies(client.broker) == [b"a", b"b"]


def test_references_are_bytes_of_any_kind(client: LinkRig) -> None:
    client.declare(1, "s", "\udcff\udcfe")
    client.publish(1, (7, b"a"))
    client.broker.settle("s")

    assert stored(client.broker)[0][1][:4] == b"\0\x02\xff\xfe"


# Chunks that are full


def test_a_chunk_is_bounded_by_the_largest_frame(client: LinkRig) -> None:
    client.declare(1, "s")

    for _ in range(3):
        client.publish(1, *((number, bytes(50_000)) for number in range(20)))
    client.broker.settle("s")

    chunks = [chunk for chunk, _ in stored(client.broker)]
    assert sum(chunk.entry_count for chunk in chunks) == 60
    assert max(48 + len(chunk.data) for chunk in chunks) <= client.broker.frame_bytes_max - 13


def test_the_largest_entry_is_a_chunk_of_its_own(client: LinkRig) -> None:
    client.declare(1, "s")
    largest = bytes(client.broker.frame_bytes_max - 9 - 12)

    client.publish(1, (1, b"before"))
    client.publish(1, (2, largest))
    client.publish(1, (3, b"after"))
    client.broker.settle("s")

    assert [chunk.records() for chunk, _ in stored(client.broker)] == [
        [b"before"],
        [largest],
        [b"after"],
    ]
    assert [ids for _, ids in client.confirmed()] == [(1,), (2,), (3,)]


@pytest.mark.parametrize("size", [8_000, 16_300, 16_320, 16_324, 16_328, 20_000])
def test_a_chunk_that_began_small_grows_and_gets_its_trailer(client: LinkRig, size: int) -> None:
    client.declare(1, "s", "reference")
    client.publish(1, (1, b"begun"))
    client.broker.store_rig.turn_until_appended(client.broker.log("s"))

    client.publish(1, (2, bytes(100)))
    client.publish(1, (3, bytes(size - 104)))
    client.publish(1, (4, b"x"))
    client.broker.settle("s")

    assert len(bodies(client.broker)) == 4
    assert client.confirmed()[-1][1][-1] == 4


# Refusing


def test_an_unknown_publisher_gets_every_id_back(client: LinkRig) -> None:
    client.publish(9, (2**64 - 1, b"a"), (5, BAD), (5, b""))

    assert client.ports.intakes == [(0, None)]
    assert client.refused() == [(9, [(2**64 - 1, UNKNOWN), (5, UNKNOWN), (5, UNKNOWN)])]


def test_an_unknown_publisher_gets_an_error_of_nothing_for_nothing(client: LinkRig) -> None:
    client.publish(9)

    assert client.refused() == [(9, [])]


def test_an_unknown_publisher_gets_the_ids_of_a_filtered_frame_back(client: LinkRig) -> None:
    client.publish_filtered(9, (1, "fig", b"a"), (2, None, b"b"))

    assert client.refused() == [(9, [(1, UNKNOWN), (2, UNKNOWN)])]


def test_only_the_first_frame_of_an_unknown_publisher_is_refused_at_once(client: LinkRig) -> None:
    first = frame((1, b"a"), publisher_id=9)

    position = client.publish_frames(first + frame((2, b"b"), publisher_id=9))

    assert position == len(first)
    assert client.refused() == [(9, [(1, UNKNOWN)])]


def test_a_bad_sub_batch_and_what_follows_it_in_its_frame_are_refused(client: LinkRig) -> None:
    client.declare(1, "s")
    first = frame((1, b"a"), (2, BAD), (3, b"c"), (4, BAD))

    position = client.publish_frames(first + frame((5, b"e")))

    assert client.refused() == [(1, [(2, REFUSED), (3, REFUSED), (4, REFUSED)])]
    assert position == len(first)
    assert client.ports.intakes == [(1, client.broker.log("s"))]
    client.broker.settle("s")
    assert client.confirmed() == [(1, (1,))]
    assert bodies(client.broker) == [b"a"]


def test_a_frame_that_is_cut_short_behind_a_bad_sub_batch_is_malformed(client: LinkRig) -> None:
    client.declare(1, "s")
    whole = frame((1, b"a"), (2, BAD), (3, b"cut"))
    cut = (len(whole) - 5).to_bytes(4) + whole[4:-1]

    with pytest.raises(MalformedFrame):
        client.publish_frames(cut)


@pytest.mark.parametrize("publisher_id", [1, 9], ids=["known", "unknown"])
def test_a_malformed_frame_stores_the_entries_before_the_fault(
    client: LinkRig, publisher_id: int
) -> None:
    client.declare(1, "s")
    whole = frame((1, b"a"), (2, b"cut"), publisher_id=publisher_id)
    cut = (len(whole) - 5).to_bytes(4) + whole[4:-1]

    with pytest.raises(MalformedFrame) as caught:
        client.publish_frames(cut)

    assert caught.value.position == 13 + 13
    client.broker.settle("s")
    assert bodies(client.broker) == ([b"a"] if publisher_id == 1 else [])


def test_a_malformed_filtered_frame_is_reported(client: LinkRig) -> None:
    client.declare(1, "s")
    frame = bytearray.fromhex("00000013 0002 0002 01 00000001 0000000000000001 ffff")

    with pytest.raises(MalformedFrame):
        publishing.take_with_filters(client.link, frame, 0, len(frame))


# Publishers that go, streams that go


def test_confirms_of_a_deleted_publisher_are_dropped_and_no_longer_waited_for(
    client: LinkRig,
) -> None:
    client.declare(1, "s")
    client.publish(1, (1, b"a"), (2, b"b"))
    client.tell("delete_publisher", m.DeletePublisher(1))
    assert client.ports.settled_count == 2

    client.broker.settle("s")

    assert client.confirmed() == []
    assert client.ports.settled_count == 2
    assert bodies(client.broker) == [b"a", b"b"]


def test_a_new_publisher_of_the_same_id_gets_its_own_confirms_only(client: LinkRig) -> None:
    client.declare(1, "s")
    client.publish(1, (1, b"a"))
    client.tell("delete_publisher", m.DeletePublisher(1))
    client.declare(1, "s")

    client.publish(1, (2, b"b"))
    client.broker.settle("s")

    assert client.confirmed() == [(1, (2,))]


def test_when_a_stream_is_deleted_under_a_publisher_the_client_is_told_once(
    client: LinkRig,
) -> None:
    other = client.broker.link()
    client.declare(1, "s")
    client.declare(2, "s")
    client.publish(1, (1, b"a"))

    other.tell("delete_stream", m.DeleteStream("s"))
    client.broker.loop.run_for(0.05)

    assert client.take("metadata_update") == [
        m.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, "s")
    ]
    assert client.ports.settled_count == 1
    client.confirmed()
    client.publish(1, (2, b"b"))
    assert client.refused() == [(1, [(2, UNKNOWN)])]
