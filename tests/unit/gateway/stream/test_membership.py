"""Single active consumers over links: what they are asked, and what their answers do."""

import logging

import pytest

from gateway.broker.hosts.super_streams import add_partitions
from gateway.broker.streams.streams import Stream
from gateway.log.damage.errors import CorruptChunk
from gateway.log.log import StreamLog
from gateway.log.reading.locations import Start
from gateway.pending import Pending
from gateway.stream.handlers import consumers
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import (
    FIRST,
    LAST,
    NONE,
    OffsetSpec,
    at_offset,
)
from tests.chunks import SubBatch
from tests.rings import no_rings
from tests.unit.gateway.stream.link_rig import Broker, LinkRig

OK = ResponseCode.OK
PRECONDITION = ResponseCode.PRECONDITION_FAILED
SINGLE = {"single-active-consumer": "true", "name": "app"}
OF_PARTITION = SINGLE | {"super-stream": "p"}


@pytest.fixture
def client(broker: Broker) -> LinkRig:
    """A link that is open, with `s`, the partition 1 of `p`, and three chunks of a record in it."""
    client = broker.link()
    client.code("create_super_stream", m.CreateSuperStream("p", ("r", "s"), ("0", "1"), {}))
    client.declare(0, "s")
    for number in range(3):
        store(client, number)
    return client


def store(client: LinkRig, number: int) -> None:
    """Store a record in a chunk that is joined with no other."""
    client.publish(0, (number, SubBatch.of([b"%d" % number])))
    client.broker.settle("s")
    client.confirmed()


def join(
    client: LinkRig,
    subscription_id: int = 1,
    *,
    offset: OffsetSpec = FIRST,
    credit: int = 10,
    properties: dict[str, str] = SINGLE,
) -> int:
    return client.code("subscribe", m.Subscribe(subscription_id, "s", offset, credit, properties))


def asked(client: LinkRig) -> list[tuple[int, int, bool]]:
    """Correlation id, subscription and whether it is to start, of every question not taken yet."""
    frames = [each for each in client.received() if each.command.name == "consumer_update"]
    client.ports.frames = [
        frame
        for frame, decoded in zip(client.ports.frames, client.received(), strict=True)
        if decoded.command.name != "consumer_update"
    ]
    found = []
    for frame in frames:
        assert isinstance(frame.message, m.ConsumerUpdate)
        assert frame.correlation_id is not None
        found.append((frame.correlation_id, frame.message.subscription_id, frame.message.active))
    return found


def answer(
    client: LinkRig, correlation_id: int, offset: OffsetSpec = NONE, code: ResponseCode = OK
) -> None:
    client.answer("consumer_update", m.ConsumerUpdateReply(code, offset), correlation_id)


def chunk_ids(client: LinkRig, subscription_id: int = 1) -> list[int]:
    return [each.chunk.chunk_id for each in client.deliver(subscription_id)]


def credit(client: LinkRig, chunks: int, subscription_id: int = 1) -> list[int]:
    """Give credit; gives the codes of the errors."""
    client.tell("credit", m.Credit(subscription_id, chunks))
    return [each.code for each in client.take("credit")]


# Starting


def test_the_question_follows_the_reply_and_waits_for_its_answer(client: LinkRig) -> None:
    client.tell("subscribe", m.Subscribe(1, "s", FIRST, 10, SINGLE))

    assert [each.command.name for each in client.received()] == ["subscribe", "consumer_update"]
    assert client.ports.frames[1] == bytes.fromhex("0000000a 001a 0001 00000000 01 01")
    assert chunk_ids(client) == []
    assert client.ports.woken == []

    answer(client, 0)

    assert [each.subscription_id for each in client.ports.woken] == [1]
    assert chunk_ids(client) == [0, 1, 2]


@pytest.mark.parametrize(
    ("given", "expected", "word"),
    [(NONE, [1, 2], "subscribe"), (FIRST, [0, 1, 2], "answer"), (LAST, [2], "answer")],
)
def test_the_answer_says_where_to_start_or_leaves_it_to_the_subscription(
    client: LinkRig,
    caplog: pytest.LogCaptureFixture,
    given: OffsetSpec,
    expected: list[int],
    word: str,
) -> None:
    caplog.set_level(logging.INFO)
    join(client, offset=at_offset(1))

    answer(client, 0, given)

    assert chunk_ids(client) == expected
    assert f"given_by={word}" in caplog.text


def test_the_code_of_an_answer_changes_nothing_but_the_log(
    client: LinkRig, caplog: pytest.LogCaptureFixture
) -> None:
    join(client)

    answer(client, 0, LAST, PRECONDITION)

    assert chunk_ids(client) == [2]
    assert "consumer answered with an error" in caplog.text


def test_a_second_answer_changes_nothing(client: LinkRig) -> None:
    join(client)
    answer(client, 0, LAST)
    assert chunk_ids(client) == [2]

    answer(client, 0, FIRST)

    assert chunk_ids(client) == []


def test_questions_are_numbered_from_0_on_every_connection(client: LinkRig) -> None:
    other = client.broker.link()
    for number in range(3):
        join(client, number, properties=SINGLE | {"name": str(number)})
    join(other, 9, properties=SINGLE | {"name": "other"})

    assert asked(client) == [(0, 0, True), (1, 1, True), (2, 2, True)]
    assert asked(other) == [(0, 9, True)]


def test_credit_before_the_answer_is_an_error_that_counts(client: LinkRig) -> None:
    join(client, credit=0)

    assert credit(client, 3) == [PRECONDITION]
    assert credit(client, -1) == [PRECONDITION]
    answer(client, 0)

    assert chunk_ids(client) == [0, 1]
    assert credit(client, 1) == []
    assert chunk_ids(client) == [2]


def test_nobody_waits_for_the_place_of_a_member_that_waits(client: LinkRig) -> None:
    other = client.broker.link()
    join(client)
    assert join(other, offset=at_offset(2**63)) == OK

    assert asked(other) == []
    assert credit(other, 1) == [PRECONDITION]


# Taking turns


def test_when_the_active_one_unsubscribes_the_next_is_asked(client: LinkRig) -> None:
    other = client.broker.link()
    join(client)
    join(other, credit=1)
    credit(other, 1)

    assert client.code("unsubscribe", m.Unsubscribe(1)) == OK
    assert asked(other) == [(0, 1, True)]
    answer(other, 0)

    assert chunk_ids(other) == [0, 1]


def test_when_the_connection_of_the_active_one_dies_the_next_is_asked(client: LinkRig) -> None:
    other, third = client.broker.link(), client.broker.link()
    join(third, 1)
    join(third, 2)
    join(other, 3)

    third.link.close()

    assert asked(other) == [(0, 3, True)]
    assert asked(third) == [(0, 1, True)]
    assert third.ports.time_limits == {}


def test_who_follows_on_the_same_connection_is_asked_after_the_reply(client: LinkRig) -> None:
    join(client, 1)
    join(client, 2)
    client.ports.frames.clear()

    client.tell("unsubscribe", m.Unsubscribe(1))

    assert [each.command.name for each in client.received()] == ["unsubscribe", "consumer_update"]
    assert asked(client) == [(1, 2, True)]


def hand_over(client: LinkRig) -> LinkRig:
    """Let a second member come, for which the client is asked to step down."""
    join(client, properties=OF_PARTITION)
    answer(client, 0)
    assert chunk_ids(client) == [0, 1, 2]
    other = client.broker.link()
    join(other, properties=OF_PARTITION)
    assert asked(client) == [(0, 1, True), (1, 1, False)]
    return other


def test_nothing_is_delivered_from_the_step_down_on(client: LinkRig) -> None:
    other = hand_over(client)
    store(client, 3)

    assert chunk_ids(client) == []
    assert credit(client, 5) == [PRECONDITION]
    assert asked(other) == []

    answer(client, 1, FIRST, PRECONDITION)
    assert asked(other) == [(0, 1, True)]
    answer(other, 0, LAST)

    assert chunk_ids(client) == []
    assert chunk_ids(other) == [3]


def test_who_starts_again_begins_anew_with_all_its_credit(client: LinkRig) -> None:
    other = hand_over(client)
    credit(client, -5)
    answer(client, 1)

    other.link.close()
    assert asked(client) == [(2, 1, True)]
    answer(client, 2)

    assert chunk_ids(client) == [0, 1]  # 10 - 3 - 5


@pytest.mark.parametrize("dies", [False, True])
def test_who_goes_while_it_steps_down_is_followed_at_once(client: LinkRig, *, dies: bool) -> None:
    other = hand_over(client)

    if dies:
        client.link.close()
    else:
        client.tell("unsubscribe", m.Unsubscribe(1))

    assert asked(other) == [(0, 1, True)]
    assert client.ports.time_limits == {}


def test_a_late_answer_to_the_start_does_not_stand_for_the_step_down(client: LinkRig) -> None:
    join(client, properties=OF_PARTITION)
    other = client.broker.link()
    join(other, properties=OF_PARTITION)

    answer(client, 0, FIRST)
    assert chunk_ids(client) == []
    assert asked(other) == []
    answer(client, 1)

    assert asked(other) == [(0, 1, True)]


def test_a_member_with_another_partition_index_is_refused_and_leaves_nothing(
    client: LinkRig,
) -> None:
    other = client.broker.link()
    join(client, properties=OF_PARTITION)

    assert join(other, properties=SINGLE) == PRECONDITION
    assert join(other, properties=SINGLE | {"super-stream": "q"}) == PRECONDITION

    assert other.link.subscriptions == {}
    assert other.link not in client.broker.stream("s").watchers
    assert join(other, properties=OF_PARTITION) == OK


def test_a_question_that_is_answered_after_the_step_down_was_asked_starts_nothing(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is there, but its place is still looked for when the next member comes."""
    found: Pending[Start] = Pending()

    async def locate_slowly(_log: StreamLog, _spec: OffsetSpec) -> Start:
        return await found

    monkeypatch.setattr(consumers, "locate_spec", locate_slowly)
    join(client, properties=OF_PARTITION)
    done = client.start_answer("consumer_update", m.ConsumerUpdateReply(OK, FIRST), 0)
    other = client.broker.link()
    join(other, properties=OF_PARTITION)

    found.settle(Start(0, 0))

    client.finish(done)
    assert chunk_ids(client) == []
    answer(client, 1)
    assert asked(other) == [(0, 1, True)]


def test_who_cannot_start_loses_the_stream_and_the_next_is_asked(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object) -> Pending[Start]:
        failed: Pending[Start] = Pending()
        failed.settle(CorruptChunk("s", 0, "damaged"))
        return failed

    monkeypatch.setattr("gateway.stream.handlers.streams.locate", damaged)
    other = client.broker.link()
    join(client)
    join(other)

    answer(client, 0, at_offset(1))

    assert client.take("metadata_update") == [m.MetadataUpdate(6, "s")]
    assert client.link.subscriptions == {}
    assert asked(other) == [(0, 1, True)]


# Time limits


def test_who_does_not_answer_in_time_loses_its_connection_and_the_group_goes_on(
    client: LinkRig, caplog: pytest.LogCaptureFixture
) -> None:
    other = hand_over(client)
    (time_is_up,) = client.ports.time_limits.values()

    time_is_up()

    assert client.ports.is_stopped
    assert client.received() == []
    assert asked(other) == [(0, 1, True)]
    assert "consumer update not answered" in caplog.text


def test_an_answer_in_time_stops_the_clock(client: LinkRig) -> None:
    join(client)
    assert len(client.ports.time_limits) == 1

    answer(client, 0)

    assert client.ports.time_limits == {}


def test_a_member_has_one_open_question_at_a_time(client: LinkRig) -> None:
    join(client, properties=OF_PARTITION)
    for number in range(20):
        other = client.broker.link()
        join(other, properties=OF_PARTITION)
        answer(client, 2 * number + 1)
        other.link.close()

    assert asked(client)[-1] == (40, 1, True)
    assert len(client.link.questions) == len(client.ports.time_limits) == 1


# Streams that go


def delete(client: LinkRig) -> None:
    client.tell("delete_stream", m.DeleteStream("s"))


def test_when_the_stream_goes_nobody_is_asked_to_follow(client: LinkRig) -> None:
    others = [client.broker.link() for _ in range(3)]
    for each in others:
        join(each)

    delete(client)

    for each in others:
        assert each.take("metadata_update") == [m.MetadataUpdate(6, "s")]
        assert each.ports.time_limits == {}
    assert [len(asked(each)) for each in others] == [1, 0, 0]
    assert list(client.broker.virtual_host.groups) == []


def test_when_the_stream_fails_nobody_is_asked_to_follow(client: LinkRig) -> None:
    others = [client.broker.link() for _ in range(2)]
    for each in others:
        join(each)
    answer(others[0], 0)
    log = client.broker.log("s")
    client.broker.lose_segment("s")

    client.publish(0, (9, b"x"))
    client.broker.loop.run_until(lambda: log.failure is not None)

    for each in others:
        assert each.take("metadata_update") == [m.MetadataUpdate(6, "s")]
        assert each.link.subscriptions == {}
    assert [len(asked(each)) for each in others] == [1, 0]
    assert list(client.broker.virtual_host.groups) == []


def test_when_partitions_are_added_the_groups_begin_anew(client: LinkRig) -> None:
    other = hand_over(client)
    virtual_host = client.broker.virtual_host

    client.broker.store_rig.run(add_partitions(virtual_host, "p", ["t"], ["2"]))

    for each in (client, other):
        assert each.take("metadata_update") == [m.MetadataUpdate(6, "s")]
        assert asked(each) == []
        assert each.ports.time_limits == {}
    assert join(other, properties=OF_PARTITION) == OK
    assert asked(other) == [(0, 1, True)]


def test_consumers_of_a_partition_that_name_no_super_stream_are_warned_of_once(
    client: LinkRig, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        join(client.broker.link())
    client.create("plain")
    for _ in range(2):
        request = m.Subscribe(1, "plain", FIRST, 1, SINGLE)
        client.broker.link().tell("subscribe", request)

    assert caplog.text.count("name no super stream") == 1


def test_an_answer_after_the_stream_is_gone_is_ignored(client: LinkRig) -> None:
    join(client)
    delete(client)
    client.ports.frames.clear()

    answer(client, 0)

    assert client.received() == []


def test_who_loses_the_stream_alone_is_followed(client: LinkRig) -> None:
    other = client.broker.link()
    join(client)
    join(other)
    stream: Stream = client.broker.stream("s")

    client.link.lose(stream)

    assert client.take("metadata_update") == [m.MetadataUpdate(6, "s")]
    assert client.link not in stream.watchers
    assert asked(other) == [(0, 1, True)]


@pytest.mark.usefixtures("client")
def test_a_link_that_is_closed_goes_without_the_collector(broker: Broker) -> None:
    with no_rings():
        member = broker.link()
        join(member)
        member.link.close()
        del member
