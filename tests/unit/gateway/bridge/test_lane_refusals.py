"""A route at work: what it does with messages that are refused."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from gateway.bridge import lane as lanes
from gateway.bridge.ends import Parcel
from gateway.bridge.lane import RouteStopped
from hutch.formats.amqp.message import message_of
from tests.unit.gateway.bridge.bridge_rig import (
    ended,
    ends_of,
    parcel,
    record,
    soon,
)
from tests.unit.gateway.bridge.lane_rig import DEAD, Rig, lines_of


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    for name in ("PAUSE_S", "PAUSE_S_MAX", "LOOK_S"):
        monkeypatch.setattr(lanes, name, 0.001)
    made = Rig()
    with ends_of(made.source, made.target):
        yield made


def refusing(*marks: object) -> Callable[[Parcel], str | None]:
    return lambda each: "too large" if each.mark in marks else None


async def test_a_refused_message_stops_the_route_with_its_place(rig: Rig) -> None:
    rig.answers = refusing(1)
    rig.first = [parcel(0), parcel(1), parcel(2)]

    error = await ended(rig.lane().run(rig.stop))

    assert type(error) is RouteStopped
    assert str(error) == (
        "a message was refused: too large, stream s, offset 1;"
        " `refused` of the route says what to do with such messages"
    )
    assert rig.sources[0].settled == [0]


async def test_a_message_that_never_was_in_a_stream_has_no_place(rig: Rig) -> None:
    rig.answers = refusing(1)
    rig.first = [Parcel(b"", 1)]

    error = await ended(rig.lane().run(rig.stop))

    assert str(error).startswith("a message was refused: too large; ")


async def test_refused_messages_that_are_skipped_are_counted_and_said_once_in_ten_seconds(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lanes.SKIPPED_S == 10
    rig.answers = refusing(0, 1, 3)
    rig.first = [parcel(number) for number in range(3)]
    lane = rig.lane(refused="skip")
    work = asyncio.ensure_future(lane.run(rig.stop))
    await soon(lambda: rig.sources and rig.sources[0].settled == [0, 1, 2])

    monkeypatch.setattr(lanes, "SKIPPED_S", 0.0)
    rig.sources[0].put(parcel(3))
    await soon(lambda: lane.counts.refused == 3)
    rig.stop.set()
    await work

    assert (lane.counts.delivered, lane.counts.refused) == (1, 3)
    assert [line for line in lines_of(caplog) if "refused" in line] == [
        "a message was refused: too large, stream s, offset 0 route=r refused=1",
        "a message was refused: too large, stream s, offset 3 route=r refused=3",
    ]


async def test_refused_messages_are_written_to_their_stream_before_they_are_acknowledged(
    rig: Rig,
) -> None:
    rig.answers = refusing("a")
    rig.dead_answers = None
    place = {"stream": "s", "offset": "7"}
    rig.first = [Parcel(record(b"body"), "a", place), Parcel(record(), "b", place)]
    lane = rig.lane(refused=DEAD)
    work = asyncio.ensure_future(lane.run(rig.stop))
    await soon(lambda: rig.dead and rig.dead[0].sent)
    assert rig.sources[0].settled == []

    (letter,) = rig.dead[0].sent
    rig.dead[0].answer(letter)
    await soon(lambda: rig.sources[0].settled == ["a", "b"])
    rig.stop.set()
    await work

    message = message_of(letter.record)
    assert message is not None
    assert message.body == b"body"
    assert message.message_annotations == {
        "x-routing-key": "k",
        "x-exchange": "e",
        "x-bridge-route": "r",
        "x-bridge-reason": "too large",
        "x-bridge-stream": "s",
        "x-bridge-offset": "7",
    }
    assert letter.place == {}
    assert (lane.counts.delivered, lane.counts.refused) == (1, 1)
    assert rig.dead[0].link.is_closed


async def test_a_message_that_cannot_be_a_record_goes_to_the_stream_of_refused_ones_as_it_is(
    rig: Rig,
) -> None:
    rig.first = [Parcel(b"body", "a", refusal="as a record: a number")]
    lane = rig.lane(refused=DEAD, until_empty=True)

    await lane.run(rig.stop)

    assert rig.targets[0].confirmed == []
    assert rig.sources[0].settled == ["a"]
    assert (lane.counts.delivered, lane.counts.refused) == (0, 1)


async def test_a_stream_of_refused_messages_that_refuses_one_stops_the_route(rig: Rig) -> None:
    rig.answers = refusing(1)
    rig.dead_answers = lambda _: "no rights"
    rig.first = [parcel(0), parcel(1)]

    error = await ended(rig.lane(refused=DEAD).run(rig.stop))

    assert type(error) is RouteStopped
    assert str(error) == "the stream of refused messages refuses one: no rights"
    assert rig.sources[0].settled == [0]


async def test_a_stream_of_refused_messages_that_is_lost_is_connected_anew(rig: Rig) -> None:
    rig.answers = refusing(0)
    rig.dead_answers = None
    rig.first = [parcel(0)]
    lane = rig.lane(refused=DEAD)
    work = asyncio.ensure_future(lane.run(rig.stop))
    await soon(lambda: rig.dead and rig.dead[0].sent)

    rig.dead[0].link.fail(ConnectionError("it broke"))
    await soon(lambda: len(rig.dead) == 2 and rig.dead[1].sent)
    assert len(lane._letters) == 1
    rig.dead[1].answer_all()
    await soon(lambda: rig.sources[1].settled == [0])
    rig.stop.set()
    await work

    assert rig.sources[0].settled == []
