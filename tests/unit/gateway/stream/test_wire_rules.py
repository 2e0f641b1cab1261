"""Rules of the wire that clients rely on, or would like to break; numbers are of the checklist."""

import time
import tracemalloc

import pytest

from hutch.stream import messages as m
from hutch.stream.codec import decode_request
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import COMMANDS
from hutch.stream.errors import MalformedFrame
from hutch.stream.offsets import FIRST, NEXT, at_offset
from tests.chunks import SubBatch
from tests.unit.gateway.stream.link_rig import LinkRig

OK = ResponseCode.OK


def stored(client: LinkRig, count: int) -> None:
    """Publish sub-batches, which are delivered one a chunk."""
    client.declare(0, "s")
    for number in range(count):
        client.publish(0, (number, SubBatch.of([b"a", b"b"])))
        client.broker.settle("s")


def subscribe(
    client: LinkRig, number: int, credit: int, properties: dict[str, str] | None = None
) -> None:
    message = m.Subscribe(number, "s", FIRST, credit, properties or {})
    assert client.code("subscribe", message) == OK


# 27: counts and strings


@pytest.mark.parametrize(
    "frame",
    [
        "000f 0001 00000001 ffffffff",
        "000f 0001 00000001 7fffffff 0001 61",
        "0011 0001 00000001 ffffffff",
        "000d 0001 00000001 0001 61 ffffffff",
        "001b 0001 00000001 ffffffff",
        "001d 0001 00000001 0001 61 ffffffff",
        "001d 0001 00000001 0001 61 00000001 0001 61 ffffffff",
        "0007 0001 00000001 01 0001 61 0001 0001 ffffffff",
    ],
    ids=lambda frame: frame[:4],
)
def test_no_count_is_believed_before_its_items_are_there(frame: str) -> None:
    tracemalloc.start()
    started = time.process_time()
    try:
        decode_request(bytes.fromhex(frame))
    except MalformedFrame:
        pass
    finally:
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert peak_bytes < 16 * 1024
    assert time.process_time() - started < 0.1


def test_strings_of_any_bytes_survive_and_only_their_size_can_be_wrong() -> None:
    for raw in (b"\xff\xfe", b"a\0b", b"\xed\xa0\x80", b"../..", b"%2f", b"__proto__", b""):
        frame = bytes.fromhex("000e 0001 00000001") + len(raw).to_bytes(2) + raw
        message = decode_request(frame).message
        assert isinstance(message, m.DeleteStream)
        assert message.stream.encode("utf-8", "surrogateescape") == raw
        with pytest.raises(MalformedFrame):
            decode_request(frame[:-1] if raw else frame[:-2])


# 28: sub-batches


@pytest.mark.parametrize("codec", range(8))
def test_sub_batches_are_stored_as_they_came_or_refused_by_their_head(
    client: LinkRig, codec: int
) -> None:
    """What is inside is the clients' affair: nothing of it is looked at, counted or unpacked."""
    lie = SubBatch(codec, 3, 30, b"this is no compressed data at all")
    client.declare(0, "s")
    client.publish(0, (1, lie))
    client.broker.settle("s")

    if codec > 4:  # none, gzip, snappy, lz4, zstd
        assert client.refused() == [(0, [(1, ResponseCode.PRECONDITION_FAILED)])]
        return
    assert client.confirmed() == [(0, (1,))]
    subscribe(client, 1, 10)
    (delivery,) = client.deliver(1)
    assert (delivery.chunk.record_count, delivery.chunk.entries()) == (3, [lie])


@pytest.mark.parametrize(("declared", "is_taken"), [(64 << 20, True), ((64 << 20) + 1, False)])
def test_a_sub_batch_may_declare_64_mib_and_not_a_byte_more(
    client: LinkRig, declared: int, *, is_taken: bool
) -> None:
    client.declare(0, "s")
    client.publish(0, (1, SubBatch(1, 1, declared, b"bomb")))
    client.broker.settle("s")

    assert bool(client.confirmed()) == is_taken
    assert bool(client.refused()) != is_taken


# 30: credit


def test_credit_is_signed_adds_up_and_is_never_too_much(client: LinkRig) -> None:
    """65,535 is -1; thousands of the largest steps are no overflow."""
    stored(client, 4)
    subscribe(client, 1, 0)
    assert client.deliver(1) == []
    client.tell("credit", m.Credit(1, 1))
    assert len(client.deliver(1)) == 1
    client.tell("credit", m.Credit(1, -1))
    client.tell("credit", m.Credit(1, 1))
    assert client.deliver(1) == [], "the one that was taken back"
    for _ in range(3_000):
        client.tell("credit", m.Credit(1, 32_767))
    assert len(client.deliver(1)) == 3
    for _ in range(3_100):
        client.tell("credit", m.Credit(1, -32_768))
    client.publish(0, (99, b"x"))
    client.broker.settle("s")
    assert client.deliver(1) == []
    assert client.take("credit") == [], "credit itself is not answered"


def test_a_subscribe_takes_the_largest_credit_as_it_is_meant(client: LinkRig) -> None:
    stored(client, 2)

    subscribe(client, 1, 32_767)

    assert len(client.deliver(1)) == 2


def test_credit_for_nobody_is_answered_each_time_and_changes_nothing(client: LinkRig) -> None:
    for credit in (0, 1, -1, 32_767):
        for _ in range(3):
            client.tell("credit", m.Credit(9, credit))
    refused = client.take("credit")

    assert refused == [m.CreditRefused(ResponseCode.SUBSCRIPTION_ID_DOES_NOT_EXIST, 9)] * 12


def test_credit_for_one_that_may_not_read_yet_is_kept_and_said_to_be_no_use(
    client: LinkRig,
) -> None:
    group = {"single-active-consumer": "true", "name": "app"}
    subscribe(client, 1, 0, group)
    subscribe(client, 2, 0, group)

    client.tell("credit", m.Credit(2, 5))

    assert client.take("credit") == [m.CreditRefused(ResponseCode.PRECONDITION_FAILED, 2)]
    assert client.link.subscriptions[2].credit == 5


# 32: references


def test_an_empty_reference_is_none_and_a_null_one_is_no_string(client: LinkRig) -> None:
    """RabbitMQ refuses null there as well; clients send the empty string."""
    client.declare(1, "s", "")
    client.declare(2, "s", "")
    null = bytes.fromhex("0001 0001 00000007 03 ffff 0001") + b"s"

    with pytest.raises(MalformedFrame, match="null"):
        client.start_frame(null)

    assert set(client.link.publishers) == {1, 2}


# 38: versions, statistics, places


def test_versions_are_exchanged_for_every_command_and_unknown_ones_are_let_be(
    client: LinkRig,
) -> None:
    strange = (m.CommandVersions(8, 1, 2), m.CommandVersions(0x7777, 1, 9))
    answer = client.ask(
        m.CommandVersionsReply,
        "exchange_command_versions",
        m.ExchangeCommandVersions(strange),
    )

    assert answer.code == OK
    offered = {each.key: (each.version_min, each.version_max) for each in answer.commands}
    assert set(offered) <= {row.key for row in COMMANDS}
    assert offered[2] == (1, 2)
    assert client.session.deliver_version == 2


def test_statistics_have_the_three_names_that_clients_ask_for(client: LinkRig) -> None:
    statistics = m.StreamStats("s")
    empty = client.ask(m.StreamStatsReply, "stream_stats", statistics).statistics
    stored(client, 3)
    full = client.ask(m.StreamStatsReply, "stream_stats", statistics).statistics

    assert {"first_chunk_id", "last_chunk_id", "committed_chunk_id"} <= set(empty)
    assert (empty["first_chunk_id"], empty["committed_chunk_id"]) == (-1, -1)
    assert (full["first_chunk_id"], full["committed_chunk_id"]) == (0, 4)


def test_resolving_a_place_needs_no_subscription_and_changes_none(client: LinkRig) -> None:
    stored(client, 2)
    for spec, offset in ((FIRST, 0), (NEXT, 4), (at_offset(3), 2)):
        request = m.ResolveOffsetSpec("s", spec, {})
        answer = client.ask(m.ResolvedOffset, "resolve_offset_spec", request)
        assert answer == m.ResolvedOffset(OK, offset)
    assert client.link.subscriptions == {}


# The advisories


@pytest.mark.parametrize(
    "value", ["all", "user_data", "tracking_delta", "", "no-such-thing", "x" * 3_000, "\udcff"]
)
def test_a_chunk_selector_is_an_ordinary_property_whatever_it_says(
    client: LinkRig, value: str
) -> None:
    """RabbitMQ made an atom of each, of which there are a million and no more."""
    stored(client, 1)

    subscribe(client, 1, 10, {"chunk_selector": value})

    assert [each.chunk.record_count for each in client.deliver(1)] == [2]
