"""Subscriptions and stored offsets: codes and the order of checks."""

import pytest

from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import Permission
from hutch.stream.offsets import (
    FIRST,
    LAST,
    NEXT,
    OffsetSpec,
    OffsetType,
    at_offset,
)
from tests.chunks import SubBatch
from tests.unit.gateway.stream.handlers.test_publishers import forbid
from tests.unit.gateway.stream.link_rig import LinkRig

OK = ResponseCode.OK
UNKNOWN = ResponseCode.STREAM_DOES_NOT_EXIST
REFUSED = ResponseCode.ACCESS_REFUSED
PRECONDITION = ResponseCode.PRECONDITION_FAILED
TAKEN = ResponseCode.SUBSCRIPTION_ID_ALREADY_EXISTS
ABSENT = ResponseCode.SUBSCRIPTION_ID_DOES_NOT_EXIST
TOO_LONG = "n" * 256


def subscribe(
    client: LinkRig,
    subscription_id: int = 1,
    stream: str = "s",
    offset: OffsetSpec = FIRST,
    **properties: str,
) -> int:
    named = {name.replace("_", "-"): value for name, value in properties.items()}
    return client.code("subscribe", m.Subscribe(subscription_id, stream, offset, 10, named))


def query(client: LinkRig, reference: str, stream: str = "s") -> tuple[int, int]:
    answer = client.ask(m.StoredOffset, "query_offset", m.QueryOffset(reference, stream))
    return answer.code, answer.offset


# Subscribe


@pytest.mark.parametrize(
    ("offset", "chunk_ids"),
    [
        (FIRST, [0, 2, 4]),
        (LAST, [4]),
        (NEXT, []),
        (at_offset(0), [0, 2, 4]),
        (at_offset(3), [2, 4]),
        (at_offset(6), []),
        (at_offset(2**64 - 1), []),
        (OffsetSpec(OffsetType.TIMESTAMP, 0), [0, 2, 4]),
        (OffsetSpec(OffsetType.TIMESTAMP, -(2**63)), [0, 2, 4]),
        (OffsetSpec(OffsetType.TIMESTAMP, 1_000_015), [4]),
        (OffsetSpec(OffsetType.TIMESTAMP, 1_000_021), []),
    ],
)
def test_a_subscription_starts_where_its_specification_says(
    client: LinkRig, offset: OffsetSpec, chunk_ids: list[int]
) -> None:
    client.declare(0, "s")
    for _ in range(3):
        client.publish(0, (1, SubBatch.of([b"a", b"b"])))
        client.broker.settle("s")
        client.broker.now_ms += 10

    assert subscribe(client, offset=offset) == OK
    assert [each.chunk.chunk_id for each in client.deliver(1)] == chunk_ids
    client.publish(0, (1, SubBatch.of([b"a", b"b"])))
    client.broker.settle("s")
    assert [each.chunk.chunk_id for each in client.deliver(1)] == [6]


@pytest.mark.parametrize("offset", [FIRST, LAST, NEXT, at_offset(0), at_offset(999)])
def test_a_subscription_of_an_empty_stream_waits_for_its_first_chunk(
    client: LinkRig, offset: OffsetSpec
) -> None:
    assert subscribe(client, offset=offset) == OK
    assert client.deliver(1) == []
    client.declare(0, "s")

    client.publish(0, (1, b"a"))
    client.broker.settle("s")

    assert [each.chunk.records() for each in client.deliver(1)] == [[b"a"]]


def test_an_id_is_taken_once_a_connection(client: LinkRig) -> None:
    assert subscribe(client, 255) == OK

    assert subscribe(client, 255) == TAKEN
    assert subscribe(client.broker.link(), 255) == OK
    client.tell("unsubscribe", m.Unsubscribe(255))
    assert subscribe(client, 255) == OK


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({"name": "n" * 255}, OK),
        ({"name": TOO_LONG}, PRECONDITION),
        ({"filter.0": "pear", "match-unfiltered": "true"}, OK),
        ({"chunk_selector": "all", "anything": "else"}, OK),
        ({"single-active-consumer": "TRUE"}, OK),
        ({"single-active-consumer": "false", "name": "n"}, OK),
        ({"single-active-consumer": "true"}, PRECONDITION),
        ({"single-active-consumer": "true", "name": "n"}, OK),
        ({"single-active-consumer": "true", "name": ""}, OK),
    ],
)
def test_properties_are_checked(client: LinkRig, properties: dict[str, str], code: int) -> None:
    assert client.code("subscribe", m.Subscribe(1, "s", FIRST, 1, properties)) == code


def test_checks_of_subscribe_come_in_the_order_of_the_reference(client: LinkRig) -> None:
    for number in range(256):
        assert subscribe(client, number) == OK
    forbid(client, Permission.READ)
    assert subscribe(client, 1, "nowhere", name=TOO_LONG) == PRECONDITION
    client.tell("unsubscribe", m.Unsubscribe(0))
    assert subscribe(client, 1, "nowhere", name=TOO_LONG) == REFUSED
    assert subscribe(client, 1, "nowhere") == REFUSED
    forbid(client)
    assert subscribe(client, 1, "nowhere", name=TOO_LONG) == PRECONDITION
    assert subscribe(client, 1, "nowhere") == UNKNOWN
    assert subscribe(client, 1, single_active_consumer="true") == TAKEN
    assert subscribe(client, 0, single_active_consumer="true") == PRECONDITION
    assert subscribe(client, 0) == OK


def test_a_subscription_that_was_refused_is_not_there(client: LinkRig) -> None:
    assert subscribe(client, 1, "nowhere") == UNKNOWN

    assert client.code("unsubscribe", m.Unsubscribe(1)) == ABSENT
    assert client.ports.woken == []


# Credit and Unsubscribe


def test_credit_is_answered_only_when_there_is_no_such_subscription(client: LinkRig) -> None:
    assert subscribe(client, 1) == OK
    client.tell("credit", m.Credit(1, 5))
    assert client.received() == []

    client.tell("credit", m.Credit(2, 5))

    (answer,) = client.received()
    assert (answer.correlation_id, answer.message) == (None, m.CreditRefused(ABSENT, 2))
    assert client.ports.frames == [bytes.fromhex("00000007 8009 0001 0004 02")]


def test_unsubscribing_twice_is_refused(client: LinkRig) -> None:
    assert subscribe(client, 1) == OK

    assert client.code("unsubscribe", m.Unsubscribe(1)) == OK
    assert client.code("unsubscribe", m.Unsubscribe(1)) == ABSENT


# Offsets


@pytest.mark.parametrize("offset", [0, 5, 2**63, 2**64 - 1])
@pytest.mark.parametrize("reference", ["ref", "", "r" * 255, "\udcff"])
def test_a_query_sees_the_offset_stored_before_it(
    client: LinkRig, reference: str, offset: int
) -> None:
    client.tell("store_offset", m.StoreOffset(reference, "s", 7))
    client.tell("store_offset", m.StoreOffset(reference, "s", offset))

    assert client.received() == []
    assert query(client, reference) == (OK, offset)


def test_offsets_belong_to_a_stream_and_a_reference(client: LinkRig) -> None:
    client.create("t")
    client.tell("store_offset", m.StoreOffset("ref", "s", 7))

    assert query(client, "ref", "t") == (ResponseCode.NO_OFFSET, 0)
    assert query(client, "other") == (ResponseCode.NO_OFFSET, 0)
    assert query(client.broker.link(), "ref") == (OK, 7)


def test_an_offset_that_cannot_be_stored_is_dropped_without_a_word(client: LinkRig) -> None:
    client.tell("store_offset", m.StoreOffset(TOO_LONG, "s", 7))
    client.tell("store_offset", m.StoreOffset("ref", "nowhere", 7))

    assert client.received() == []
    assert query(client, TOO_LONG) == (ResponseCode.NO_OFFSET, 0)


def test_checks_of_a_query_come_in_the_order_of_the_reference(client: LinkRig) -> None:
    forbid(client, Permission.READ)
    assert query(client, "ref", "nowhere") == (REFUSED, 0)
    forbid(client)
    assert query(client, "ref", "nowhere") == (UNKNOWN, 0)


def test_offsets_of_a_deleted_stream_are_not_those_of_the_next_of_its_name(
    client: LinkRig,
) -> None:
    client.tell("store_offset", m.StoreOffset("ref", "s", 7))
    client.tell("delete_stream", m.DeleteStream("s"))
    client.create("s")

    assert query(client, "ref") == (ResponseCode.NO_OFFSET, 0)


# Answers nobody asked for


def test_an_answer_to_a_question_that_was_never_asked_is_ignored(client: LinkRig) -> None:
    client.answer("consumer_update", m.ConsumerUpdateReply(OK, FIRST))

    assert client.received() == []
    assert not client.session.is_done
