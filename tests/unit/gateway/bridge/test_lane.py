"""A route at work: from its start to its end, and what it does when ends are lost."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.bridge import lane as lanes
from gateway.bridge import pump as pumps
from gateway.bridge import routes
from gateway.bridge.amqp import BasicPublisher, QueueMessages
from gateway.bridge.ends import EndUnreachable, TakenOver
from gateway.bridge.lane import SOURCES, TARGETS, Lane, NotOpened, RouteStopped
from gateway.bridge.streams import StreamRecords, StreamTargetEnd
from gateway.bridge.topics import TopicMessages, TopicPublisher
from tests.unit.gateway.bridge.bridge_rig import (
    ended,
    ends_of,
    parcel,
    route,
    soon,
)
from tests.unit.gateway.bridge.lane_rig import Rig, lines_of

KINDS: dict[Any, Any] = SOURCES


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    for name in ("PAUSE_S", "PAUSE_S_MAX", "LOOK_S"):
        monkeypatch.setattr(lanes, name, 0.001)
    made = Rig()
    with ends_of(made.source, made.target):
        yield made


# ---- from the start to the end ---------------------------------------------------------------


def test_each_kind_of_end_has_its_class() -> None:
    assert {kind.__name__: made for kind, made in SOURCES.items()} == {
        "QueueSource": QueueMessages,
        "ExchangeSource": QueueMessages,
        "TopicsSource": TopicMessages,
        "StreamSource": StreamRecords,
        "SuperStreamSource": StreamRecords,
    }
    assert {kind.__name__: made for kind, made in TARGETS.items()} == {
        "QueueTarget": BasicPublisher,
        "ExchangeTarget": BasicPublisher,
        "TopicTarget": TopicPublisher,
        "StreamTarget": StreamTargetEnd,
        "SuperStreamTarget": StreamTargetEnd,
    }


async def test_a_route_carries_until_it_is_told_to_stop(rig: Rig) -> None:
    lane = rig.lane()
    work = asyncio.ensure_future(lane.run(rig.stop))
    await soon(lambda: lane.counts.is_connected)
    rig.sources[0].put(parcel(0), parcel(1))
    await soon(lambda: lane.counts.delivered == 2)

    rig.stop.set()
    await work

    assert rig.sources[0].settled == [0, 1]
    assert rig.sources[0].saved[-1] == 2
    assert rig.sources[0].link.is_closed
    assert rig.targets[0].link.is_closed
    assert not lane.counts.is_connected


async def test_the_place_is_made_lasting_soon_after_the_last_message(rig: Rig) -> None:
    lane = rig.lane()
    work = asyncio.ensure_future(lane.run(rig.stop))
    await soon(lambda: lane.counts.is_connected)

    rig.sources[0].put(parcel(0), parcel(1))
    await soon(lambda: rig.sources[0].saved[-1:] == [2])

    rig.stop.set()
    await work


async def test_a_route_until_empty_ends_when_all_is_acknowledged(rig: Rig) -> None:
    rig.answers = None
    rig.first = [parcel(0), parcel(1)]
    lane = rig.lane(until_empty=True)
    work = asyncio.ensure_future(lane.run(rig.stop))
    await soon(lambda: rig.targets and len(rig.targets[0].sent) == 2)
    await asyncio.sleep(0.05)
    assert not work.done(), "what is under way is not acknowledged"

    rig.targets[0].answer_all()
    await work

    assert rig.sources[0].settled == [0, 1]
    assert lane.counts.waiting == 0


async def test_a_route_until_empty_goes_on_while_messages_wait(rig: Rig) -> None:
    rig.counted = 5
    lane = rig.lane(until_empty=True)
    work = asyncio.ensure_future(lane.run(rig.stop))
    await soon(lambda: lane.counts.waiting == 5)
    await asyncio.sleep(0.05)
    assert not work.done()

    rig.sources[0].counted = 0
    await work


async def test_a_source_that_cannot_tell_is_empty_when_it_has_been_quiet(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pumps.QUIET_S == 2
    rig.counted = None
    lane = rig.lane(until_empty=True)
    work = asyncio.ensure_future(lane.run(rig.stop))
    await soon(lambda: lane.counts.is_connected)
    await asyncio.sleep(0.05)
    assert not work.done()

    monkeypatch.setattr(lanes, "QUIET_S", 0.0)
    await work


# ---- ends that are lost ----------------------------------------------------------------------


@pytest.mark.parametrize("end", ["source_fails", "target_fails"])
async def test_an_end_that_cannot_be_opened_at_the_start_ends_the_route(rig: Rig, end: str) -> None:
    setattr(rig, end, [EndUnreachable("queue 'q' at h: no such queue")])

    error = await ended(rig.lane().run(rig.stop))

    assert isinstance(error, NotOpened)
    assert str(error) == "queue 'q' at h: no such queue"
    assert rig.sources[0].link.is_closed
    assert rig.targets[0].link.is_closed


async def test_a_route_that_waits_tries_again_until_its_ends_are_there(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    rig.target_fails = [EndUnreachable("not yet")] * 5
    rig.source_fails = [None] * 5 + [EndUnreachable("nor this")]
    lane = rig.lane(waits=True)
    work = asyncio.ensure_future(lane.run(rig.stop))

    await soon(lambda: lane.counts.is_connected)
    rig.sources[-1].put(parcel(0))
    await soon(lambda: len(lines_of(caplog)) == 2)
    rig.stop.set()
    await work

    assert len(rig.targets) == 7
    assert all(each.link.is_closed for each in rig.sources)
    assert all(each.link.is_closed for each in rig.targets)
    assert lines_of(caplog) == [
        "an end is lost route=r reason=not yet",
        "the route is back route=r",
    ]


async def test_a_lost_end_is_one_line_and_its_return_another(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(lanes, "SHORT_S", 0.05)
    lane = rig.lane()
    work = asyncio.ensure_future(lane.run(rig.stop))
    await soon(lambda: lane.counts.is_connected)
    rig.source_fails = [EndUnreachable("still away")] * 3

    rig.sources[0].link.fail(ConnectionError("it broke"))
    await soon(lambda: len(rig.sources) == 5 and lane.counts.is_connected)
    rig.sources[-1].put(parcel(0))
    await soon(lambda: len(lines_of(caplog)) == 3)
    rig.stop.set()
    await work

    assert lines_of(caplog) == [
        "carrying route=r",
        "an end is lost route=r reason=stream 'in' at h: it broke",
        "the route is back route=r",
    ]
    assert lane.counts.delivered == 1


async def test_a_target_that_takes_one_message_at_each_return_is_lost_in_one_line(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    lane = rig.lane()
    work = asyncio.ensure_future(lane.run(rig.stop))
    for count in range(1, 5):
        await soon(lambda: len(rig.targets) == count and lane.counts.is_connected)  # noqa: B023
        rig.sources[-1].put(parcel(count))
        await soon(lambda: lane.counts.delivered == count)  # noqa: B023
        await asyncio.sleep(0.05)
        rig.targets[-1].link.fail(ConnectionError("disk full"))
    await soon(lambda: len(rig.targets) == 5 and lane.counts.is_connected)
    rig.stop.set()
    await work

    assert [line.split(" route=")[0] for line in lines_of(caplog)] == ["carrying", "an end is lost"]


async def test_what_was_under_way_comes_again_and_is_counted(rig: Rig) -> None:
    rig.answers = None
    rig.first = [parcel(0), parcel(1)]
    lane = rig.lane()
    work = asyncio.ensure_future(lane.run(rig.stop))
    await soon(lambda: rig.targets and len(rig.targets[0].sent) == 2)

    rig.targets[0].link.fail(ConnectionError("it broke"))
    await soon(lambda: len(rig.targets) == 2 and len(rig.targets[1].sent) == 2)
    rig.targets[1].answer_all()
    await soon(lambda: lane.counts.delivered == 2)
    rig.stop.set()
    await work

    assert rig.sources[0].settled == []
    assert rig.sources[1].settled == [0, 1]
    assert (lane.counts.taken, lane.counts.repeated) == (4, 2)


async def test_a_lost_end_shows_at_once_and_is_closed_before_the_next_try(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "PAUSE_S", 1_000.0)
    lane = rig.lane()
    work = asyncio.ensure_future(lane.run(rig.stop))
    await soon(lambda: lane.counts.is_connected)

    rig.targets[0].link.fail(ConnectionError("it broke"))
    await soon(lambda: not lane.counts.is_connected)
    await soon(lambda: rig.sources[0].link.is_closed)
    assert len(rig.targets) == 1
    rig.stop.set()  # also while it waits

    await asyncio.wait_for(work, 20)


async def test_tries_are_ever_further_apart_up_to_half_a_minute(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Lane(route(), waits=True, until_empty=False)._pause_s == 0.001
    monkeypatch.undo()
    assert (lanes.PAUSE_S, lanes.PAUSE_S_MAX) == (1.0, 30.0)
    pauses: list[float] = []

    class Passed:
        """A time limit that has passed."""

        def __init__(self, pause_s: float) -> None:
            pauses.append(pause_s)
            if len(pauses) == 7:
                rig.stop.set()

        async def __aenter__(self) -> None:
            raise TimeoutError

        async def __aexit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(asyncio, "timeout", Passed)
    rig.target_fails = [EndUnreachable("away")] * 9
    with ends_of(rig.source, rig.target):
        await rig.lane(waits=True).run(rig.stop)

    assert pauses == [1, 2, 4, 8, 16, 30, 30]


async def test_a_session_that_another_bridge_takes_ends_the_route(rig: Rig) -> None:
    lane = rig.lane()
    work = asyncio.ensure_future(lane.run(rig.stop))
    await soon(lambda: lane.counts.is_connected)

    rig.sources[0].link.fail(TakenOver("topics ['a'] at h: Session taken over"))

    error = await ended(work)
    assert type(error) is RouteStopped
    assert str(error) == (
        "another bridge takes the messages: topics ['a'] at h: Session taken over"
    )


async def test_an_old_broker_that_ends_a_session_again_and_again_has_another_client(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lanes.SHORT_S == 2
    topics = routes.TopicsSource(uri="mqtt://h", topics=["a"], version="3.1.1")
    lane = rig.lane(source=topics)
    monkeypatch.setitem(KINDS, routes.TopicsSource, rig.source)
    monkeypatch.setattr(lanes, "SHORT_S", 100.0)
    work = asyncio.ensure_future(lane.run(rig.stop))
    for count in range(1, lanes.SHORT_MAX + 1):
        await soon(lambda: len(rig.sources) == count and lane.counts.is_connected)  # noqa: B023
        assert not work.done()
        rig.sources[-1].link.fail(ConnectionError("closed"))
    error = await ended(work)

    assert type(error) is RouteStopped
    assert str(error).startswith("another bridge takes the messages")


async def test_a_target_that_is_lost_again_and_again_takes_no_session(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = routes.TopicsSource(uri="mqtt://h", topics=["a"], version="3.1.1")
    lane = rig.lane(source=topics)
    monkeypatch.setitem(KINDS, routes.TopicsSource, rig.source)
    monkeypatch.setattr(lanes, "SHORT_S", 100.0)
    work = asyncio.ensure_future(lane.run(rig.stop))
    for count in range(1, lanes.SHORT_MAX + 3):
        await soon(lambda: len(rig.targets) == count and lane.counts.is_connected)  # noqa: B023
        rig.targets[-1].link.fail(ConnectionError("closed"))
    await soon(lambda: lane.counts.is_connected)

    rig.stop.set()
    await work


async def test_a_session_that_lasted_a_while_was_not_taken(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = routes.TopicsSource(uri="mqtt://h", topics=["a"], version="3.1.1")
    lane = rig.lane(source=topics)
    monkeypatch.setitem(KINDS, routes.TopicsSource, rig.source)
    work = asyncio.ensure_future(lane.run(rig.stop))
    for count, short_s in enumerate((100.0, 100.0, 0.0, 100.0, 100.0), 1):
        await soon(lambda: len(rig.sources) == count and lane.counts.is_connected)  # noqa: B023
        monkeypatch.setattr(lanes, "SHORT_S", short_s)
        rig.sources[-1].link.fail(ConnectionError("closed"))
    await soon(lambda: lane.counts.is_connected)

    rig.stop.set()
    await work


async def test_the_pause_is_short_again_when_a_route_was_back(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "PAUSE_S_MAX", 0.004)
    rig.target_fails = [EndUnreachable("away")] * 4
    lane = rig.lane(waits=True)
    work = asyncio.ensure_future(lane.run(rig.stop))
    await soon(lambda: lane._pause_s == 0.004)

    await soon(lambda: lane.counts.is_connected)
    assert lane._pause_s == 0.004
    rig.sources[-1].put(parcel(0))

    await soon(lambda: lane._pause_s == 0.001)
    rig.stop.set()
    await work


async def test_a_stream_whose_end_is_lost_again_and_again_is_tried_for_ever(rig: Rig) -> None:
    lane = rig.lane()
    work = asyncio.ensure_future(lane.run(rig.stop))
    for count in range(1, lanes.SHORT_MAX + 3):
        await soon(lambda: len(rig.sources) == count and lane.counts.is_connected)  # noqa: B023
        rig.sources[-1].link.fail(ConnectionError("closed"))
    await soon(lambda: lane.counts.is_connected)

    rig.stop.set()
    await work


async def test_an_error_of_ours_ends_the_route_and_closes_its_ends(rig: Rig) -> None:
    rig.source_fails = [KeyError("a mistake of ours")]

    assert isinstance(await ended(rig.lane(waits=True).run(rig.stop)), KeyError)
    assert rig.targets[0].link.is_closed
