"""Declaring publishers: codes and the order of checks."""

import pytest

from gateway.broker.service import ScarceResource
from gateway.stream.refusals import Refusal
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import Permission
from tests.unit.gateway.stream.link_rig import LinkRig

OK = ResponseCode.OK
UNKNOWN = ResponseCode.STREAM_DOES_NOT_EXIST
REFUSED = ResponseCode.ACCESS_REFUSED
PRECONDITION = ResponseCode.PRECONDITION_FAILED
LONGEST, TOO_LONG = "r" * 255, "r" * 256


def declare(client: LinkRig, publisher_id: int, reference: str, stream: str) -> int:
    return client.code("declare_publisher", m.DeclarePublisher(publisher_id, reference, stream))


def forbid(client: LinkRig, *forbidden: Permission) -> None:
    def require(permission: Permission, name: str) -> None:
        if permission in forbidden:
            raise Refusal(ResponseCode.ACCESS_REFUSED, name)

    client.link.require = require  # type: ignore[method-assign]  # a test's stand-in


def sequence(client: LinkRig, reference: str, stream: str = "s") -> m.PublisherSequence:
    request = m.QueryPublisherSequence(reference, stream)
    return client.ask(m.PublisherSequence, "query_publisher_sequence", request)


@pytest.mark.parametrize("reference", ["", "ref", LONGEST, "é" * 127, "\udcff"])
def test_a_publisher_is_declared(client: LinkRig, reference: str) -> None:
    assert declare(client, 255, reference, "s") == OK


def test_an_id_and_a_reference_are_taken_once_a_connection(client: LinkRig) -> None:
    client.create("t")
    assert declare(client, 1, "ref", "s") == OK

    assert declare(client, 1, "other", "t") == PRECONDITION
    assert declare(client, 2, "ref", "s") == PRECONDITION
    assert declare(client, 2, "ref", "t") == OK
    assert declare(client.broker.link(), 1, "ref", "s") == OK


def test_any_number_of_publishers_has_no_reference(client: LinkRig) -> None:
    assert [declare(client, number, "", "s") for number in range(256)] == [OK] * 256


@pytest.mark.parametrize("reference", [TOO_LONG, "é" * 128])
def test_a_reference_has_at_most_255_bytes(client: LinkRig, reference: str) -> None:
    assert declare(client, 1, reference, "s") == PRECONDITION


def test_an_unknown_stream_has_no_publishers(client: LinkRig) -> None:
    assert declare(client, 1, "ref", "nowhere") == UNKNOWN
    assert declare(client, 1, "ref", "s") == OK


def test_checks_come_in_the_order_of_the_reference(client: LinkRig) -> None:
    for number in range(255):
        client.declare(number, "s")
    client.declare(255, "s", "ref")
    forbid(client, Permission.WRITE)
    # All at once is wrong: the number of publishers counts first.
    assert declare(client, 1, TOO_LONG, "nowhere") == PRECONDITION
    client.tell("delete_publisher", m.DeletePublisher(0))
    # Then the permission, before the id that is in use, and before the stream that is unknown.
    assert declare(client, 1, TOO_LONG, "nowhere") == REFUSED
    assert declare(client, 1, "ref", "nowhere") == REFUSED
    forbid(client)
    # Then the length, the id and the reference, before the stream.
    assert declare(client, 0, TOO_LONG, "nowhere") == PRECONDITION
    assert declare(client, 1, "new", "nowhere") == PRECONDITION
    assert declare(client, 0, "ref", "s") == PRECONDITION
    assert declare(client, 0, "new", "nowhere") == UNKNOWN
    assert declare(client, 0, "new", "s") == OK


def test_a_publisher_that_is_not_there_cannot_be_deleted(client: LinkRig) -> None:
    client.declare(1, "s")

    code = ResponseCode.PUBLISHER_DOES_NOT_EXIST
    assert client.code("delete_publisher", m.DeletePublisher(2)) == code
    assert client.code("delete_publisher", m.DeletePublisher(1)) == OK
    assert client.code("delete_publisher", m.DeletePublisher(1)) == code


def test_the_sequence_of_a_reference_is_its_last_stored_id(client: LinkRig) -> None:
    client.declare(1, "s", "ref")
    client.publish(1, (5, b"a"), (2**64 - 1, b"b"))

    assert sequence(client, "ref") == m.PublisherSequence(OK, 2**64 - 1)
    assert client.confirmed() == [(1, (5, 2**64 - 1))], "it was stored before it was told"


@pytest.mark.parametrize("reference", ["unknown", "", TOO_LONG])
def test_a_reference_that_nobody_used_has_the_sequence_0(client: LinkRig, reference: str) -> None:
    assert sequence(client, reference) == m.PublisherSequence(OK, 0)


def test_a_stream_that_is_unknown_has_no_sequence(client: LinkRig) -> None:
    assert sequence(client, "ref", "nowhere") == m.PublisherSequence(UNKNOWN, 0)
    forbid(client, Permission.READ)
    assert sequence(client, "ref", "nowhere") == m.PublisherSequence(REFUSED, 0)


def test_a_sequence_is_never_that_of_something_not_stored(client: LinkRig) -> None:
    client.declare(1, "s", "ref")
    log = client.broker.log("s")
    client.publish(1, (1, b"a"))
    done = client.start("query_publisher_sequence", m.QueryPublisherSequence("ref", "s"))
    other = client.broker.link()
    other.declare(1, "s", "ref")
    other.publish(1, *((number, bytes(500_000)) for number in range(2, 8)))
    stored_when_answered: list[int] = []
    send = client.ports.send

    def watch(frame: bytes) -> None:
        stored_when_answered.append(log.committed_next_offset)
        send(frame)

    client.ports.send = watch  # type: ignore[method-assign]  # watched
    client.finish(done)

    answer = client.answer_to("query_publisher_sequence")
    assert isinstance(answer, m.PublisherSequence)
    assert answer.sequence <= stored_when_answered[-1]


def test_a_sequence_is_not_answered_from_a_log_that_failed(client: LinkRig) -> None:
    client.declare(1, "s", "ref")
    client.broker.lose_segment("s")
    client.publish(1, (1, b"a"))

    answer = sequence(client, "ref")

    assert answer == m.PublisherSequence(ResponseCode.STREAM_NOT_AVAILABLE, 0)


def test_nobody_declares_a_publisher_while_the_disk_alarm_is_set(client: LinkRig) -> None:
    client.broker.service.set_alarm(ScarceResource.MEMORY)
    assert declare(client, 1, "", "s") == OK
    client.broker.service.set_alarm(ScarceResource.DISK)

    assert declare(client, 2, "", "s") == PRECONDITION
    assert declare(client, 2, "", "nowhere") == PRECONDITION

    client.broker.service.clear_alarm(ScarceResource.DISK)
    assert declare(client, 2, "", "s") == OK
