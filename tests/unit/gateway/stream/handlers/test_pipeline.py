"""Many streams in one request: what is said of them, and to which users."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.broker.access.model import Permission
from gateway.stream.wire import messages as m
from gateway.stream.wire import pipeline_messages as p
from gateway.stream.wire.codes import ResponseCode
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
    may = Permission(user="guest", virtual_host="/", configure=".*", write="", read=pattern)
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
