"""Many streams in one request: what is said of them, and to which users."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.broker.access.model import UserPermission
from gateway.broker.streams import retention_holds as holds
from hutch.stream import messages as m
from hutch.stream import pipeline as p
from hutch.stream.codes import ResponseCode
from tests.unit.gateway.stream.link_rig import Broker, LinkRig

OK = ResponseCode.OK


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path / "data")
    yield broker
    broker.close()


@pytest.fixture
def client(broker: Broker) -> LinkRig:
    """A client of pipelines, with the streams `orders` and `s`."""
    client = broker.link(has_pipeline=True)
    client.create("orders", "s")
    return client


def allow_to_read(broker: Broker, pattern: str) -> None:
    may = UserPermission(user="guest", virtual_host="/", configure=".*", write="", read=pattern)
    broker.store_rig.run(broker.access.put_permission(may))


def describe(client: LinkRig, *names: str, pattern: str | None = None) -> p.StreamsDescribed:
    request = p.DescribeStreams(names, pattern)
    return client.ask(p.StreamsDescribed, "describe_streams", request)


def publish(client: LinkRig, stream: str, count: int) -> None:
    client.declare(1, stream)
    for number in range(count):
        client.publish(1, (number, bytes(100)))
        client.broker.settle(stream)
    client.tell("delete_publisher", m.DeletePublisher(1))


# Describing


def test_streams_are_described_in_the_order_of_their_names_in_the_request(client: LinkRig) -> None:
    publish(client, "orders", 3)

    answer = describe(client, "s", "orders", "s")

    assert (answer.code, answer.reason) == (OK, None)
    assert [each.name for each in answer.streams] == ["s", "orders", "s"]
    empty, orders, _ = answer.streams
    log = client.broker.log("orders")
    assert orders == p.StreamDescription(
        "orders",
        OK,
        client.broker.stream("orders").entry.generation,
        0,
        3,
        log.committed_length,
        None,
        0,
    )
    assert (empty.first_offset, empty.next_offset, empty.size_bytes) == (0, 0, 0)
    assert empty.generation != orders.generation


def test_a_pattern_describes_what_it_matches_by_name(client: LinkRig) -> None:
    client.create("orders-2")

    assert [each.name for each in describe(client, pattern="^ord").streams] == [
        "orders",
        "orders-2",
    ]
    assert [each.name for each in describe(client, pattern="").streams] == [
        "orders",
        "orders-2",
        "s",
    ]
    assert describe(client, pattern="^none$").streams == ()


def test_a_stream_that_may_not_be_read_is_left_out_of_a_pattern_and_refused_by_name(
    client: LinkRig,
) -> None:
    allow_to_read(client.broker, "^s$")

    by_pattern = describe(client, pattern=".*")
    by_name = describe(client, "orders", "s", "nowhere")

    assert [each.name for each in by_pattern.streams] == ["s"]
    assert by_pattern.reason is None
    codes = [each.code for each in by_name.streams]
    assert codes == [ResponseCode.ACCESS_REFUSED, OK, ResponseCode.ACCESS_REFUSED]
    assert by_name.streams[0] == p.StreamDescription("orders", 16, 0, 0, 0, 0, None, 0)
    assert (by_name.code, by_name.reason) == (OK, "no read on 'orders'")


def test_a_stream_that_is_not_there_has_its_code_and_the_first_reason_is_told(
    client: LinkRig,
) -> None:
    answer = describe(client, "s", "nowhere", "neither")

    assert [each.code for each in answer.streams] == [OK, 2, 2]
    assert (answer.code, answer.reason) == (OK, "stream 'nowhere' does not exist")


def test_a_stream_made_again_has_another_generation(client: LinkRig) -> None:
    [before] = describe(client, "s").streams
    client.request("delete_stream", m.DeleteStream("s"))
    client.create("s")

    [after] = describe(client, "s").streams

    assert after.generation > before.generation


def test_a_partition_is_described_with_its_super_stream_and_its_place(client: LinkRig) -> None:
    partitions = ("p-b", "p-a", "p-c")
    create = m.CreateSuperStream("p", partitions, ("0", "1", "2"), {})
    assert client.code("create_super_stream", create) == OK

    answer = describe(client, *partitions, "s")

    places = [(each.super_stream, each.partition) for each in answer.streams]
    assert places == [("p", 0), ("p", 1), ("p", 2), (None, 0)]


@pytest.mark.parametrize(
    ("names", "pattern", "reason"),
    [
        (("s",), "s", "give either names or a pattern"),
        ((), "(", "the pattern '(' cannot be used: "),
        ((), "x" * 1_025, "the pattern must not exceed 1024 bytes"),
        ((), "(*LIMIT_MATCH=1)s", "sets a limit of PCRE2"),
    ],
)
def test_a_wrong_question_is_refused_with_a_reason(
    client: LinkRig, names: tuple[str, ...], pattern: str, reason: str
) -> None:
    answer = describe(client, *names, pattern=pattern)

    assert answer.code == ResponseCode.PRECONDITION_FAILED
    assert reason in (answer.reason or "")
    assert answer.streams == ()


def test_a_pattern_that_matches_too_many_streams_is_refused(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(p, "STREAMS_MAX", 2)
    assert describe(client, pattern="").code == OK
    client.create("t")

    answer = describe(client, pattern="")

    assert answer.code == ResponseCode.PRECONDITION_FAILED
    assert answer.reason == "the pattern matches 3 streams, more than 2"


def test_a_thousand_closed_streams_are_described_in_one_call_and_stay_closed(
    client: LinkRig, tmp_path: Path
) -> None:
    names = [f"t{number:03}" for number in range(1_000)]
    client.create(*names)
    publish(client, "t007", 2)
    client.broker.stop()
    again = Broker(client.broker.store_rig.crash_copy(tmp_path / "again"))

    answer = describe(again.link(has_pipeline=True), pattern="^t[0-9]+$")

    assert [each.name for each in answer.streams] == names
    ends = {each.name: each.next_offset for each in answer.streams if each.next_offset}
    assert ends == {"t007": 2}
    assert all(stream.log is None for stream in again.streams)
    again.close()


def test_others_have_turns_while_many_streams_are_described(client: LinkRig) -> None:
    done = client.start("describe_streams", p.DescribeStreams(("s",) * 1_100, None))

    client.broker.loop.run_until(lambda: bool(client.ports.turns))
    assert not done
    client.finish(done)


# Planning


def wanted(
    client: LinkRig, name: str, first: int = 0, end: int = 1_000, span: int = 1, *, later: int = 0
) -> p.RangeToPlan:
    generation = client.broker.stream(name).entry.generation + later
    return p.RangeToPlan(name, generation, first, end, span)


def plan(client: LinkRig, *ranges: p.RangeToPlan) -> p.StreamsPlanned:
    return client.ask(p.StreamsPlanned, "plan_streams", p.PlanStreams(ranges))


def test_a_plan_has_the_borders_of_each_range_in_order(client: LinkRig) -> None:
    client.request("delete_stream", m.DeleteStream("orders"))
    arguments = {"stream-max-segment-size-bytes": "1024"}  # so close are the entries of the index
    assert client.code("create_stream", m.CreateStream("orders", arguments)) == OK
    publish(client, "orders", 20)

    answer = plan(client, wanted(client, "s"), wanted(client, "orders", 1, 19))

    assert (answer.code, answer.reason) == (OK, None)
    empty, orders = answer.streams
    assert empty == p.StreamPlan("s", OK, (p.RangeBorder(0, 0),))
    log = client.broker.log("orders")
    between = list(zip(log.index.offsets[1:], log.index.positions[1:], strict=True))
    assert len(between) == 2
    size = log.committed_length // 20
    assert orders.borders == (
        p.RangeBorder(1, 0),
        *(p.RangeBorder(offset, position - size) for offset, position in between),
        p.RangeBorder(19, 18 * size),
    )


def test_an_empty_range_has_no_borders(client: LinkRig) -> None:
    publish(client, "s", 3)

    [planned] = plan(client, wanted(client, "s", 2, 2)).streams

    assert planned == p.StreamPlan("s", OK, ())


@pytest.mark.parametrize(
    ("first", "end", "span", "later", "reason"),
    [
        (0, 5, 1, 1, "stream 's' was deleted and made again: its generation is "),
        (5, 4, 1, 0, "range of stream 's' ends before it begins"),
        (0, 5, 0, 0, "span_bytes of stream 's' is 0"),
    ],
)
def test_a_range_that_cannot_be_planned_is_refused_alone(  # its fields
    client: LinkRig, first: int, end: int, span: int, later: int, reason: str
) -> None:
    answer = plan(
        client, wanted(client, "s", first, end, span, later=later), wanted(client, "orders")
    )

    assert answer.code == OK
    assert (answer.reason or "").startswith(reason)
    assert [each.code for each in answer.streams] == [ResponseCode.PRECONDITION_FAILED, OK]
    assert answer.streams[0].borders == ()


def test_a_stream_that_is_not_there_or_may_not_be_read_is_refused_alone(client: LinkRig) -> None:
    orders, s = wanted(client, "orders"), wanted(client, "s")
    nowhere = p.RangeToPlan("s-2", 1, 0, 1, 1)
    allow_to_read(client.broker, "^s")

    answer = plan(client, s, orders, nowhere)

    assert [each.code for each in answer.streams] == [
        OK,
        ResponseCode.ACCESS_REFUSED,
        ResponseCode.STREAM_DOES_NOT_EXIST,
    ]
    assert answer.reason == "no read on 'orders'"


def test_a_stream_that_cannot_be_opened_is_refused_alone(client: LinkRig) -> None:
    ranges = wanted(client, "s"), wanted(client, "orders")
    client.broker.lose_segment("s")

    answer = plan(client, *ranges)

    assert [each.code for each in answer.streams] == [ResponseCode.STREAM_NOT_AVAILABLE, OK]
    assert answer.reason == "stream 's' is not available now; the server's log says why"


@pytest.mark.parametrize("count", [2, 3])
def test_an_answer_has_so_many_borders_and_no_more(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(p, "BORDERS_MAX", 4)
    publish(client, "s", 1)

    answer = plan(client, *[wanted(client, "s")] * count)

    assert answer.code == (OK if count == 2 else ResponseCode.PRECONDITION_FAILED)
    if count == 3:
        assert answer.reason is not None
        assert answer.reason.startswith("the plan has more than 4 borders, up to stream 's'")


def test_a_thousand_streams_are_planned_in_one_call_and_others_have_turns(client: LinkRig) -> None:
    names = [f"t{number:03}" for number in range(1_000)]
    client.create(*names)
    publish(client, "t007", 2)

    done = client.start("plan_streams", p.PlanStreams(tuple(wanted(client, n) for n in names)))
    client.broker.loop.run_until(lambda: bool(client.ports.turns))
    assert not done
    client.finish(done)

    answer = client.answer_to("plan_streams")
    assert isinstance(answer, p.StreamsPlanned)
    assert [each.name for each in answer.streams] == names
    assert {each.name for each in answer.streams if len(each.borders) > 1} == {"t007"}


def test_a_user_with_too_many_plans_is_refused_with_a_reason(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holds, "HOLDS_MAX", 1)
    publish(client, "s", 1)
    assert plan(client, wanted(client, "s")).code == OK

    answer = plan(client.broker.link(has_pipeline=True), wanted(client, "s"))

    assert answer.code == ResponseCode.PRECONDITION_FAILED
    assert (answer.reason or "").startswith("user 'guest' has 1 plans that keep records already")
    assert plan(client, wanted(client, "s")).code == OK
