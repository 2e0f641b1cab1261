"""Ends of all protocols share how messages arrive and how connections are lost."""

import asyncio
import gc

import pytest

from gateway.bridge.ends import Arrivals, EndUnreachable, Parcel, RouteSource, TakenOver, first_lost
from gateway.bridge.routes import QueueSource
from tests.unit.gateway.bridge.bridge_rig import MemoryLink, MemorySource, ended, soon

END = QueueSource(uri="amqp://u:secret@h:7", queue="q")


async def test_arrivals_are_taken_all_at_once_and_only_once() -> None:
    arrivals: Arrivals[int] = Arrivals()
    arrivals.put(1)
    arrivals.put(2)

    assert len(arrivals) == 2
    assert await arrivals.take([]) == [1, 2]
    assert len(arrivals) == 0


async def test_arrivals_are_waited_for() -> None:
    arrivals: Arrivals[int] = Arrivals()
    taken = asyncio.ensure_future(arrivals.take([MemoryLink(END)]))
    await asyncio.sleep(0)
    assert not taken.done()

    arrivals.put(1)

    assert await taken == [1]
    again = asyncio.ensure_future(arrivals.take([]))
    await asyncio.sleep(0.01)
    assert not again.done()
    arrivals.put(2)
    assert await again == [2]


async def test_waiting_for_arrivals_ends_when_any_connection_is_lost() -> None:
    links = [MemoryLink(END), MemoryLink(END)]
    arrivals: Arrivals[int] = Arrivals()
    taken = asyncio.ensure_future(arrivals.take(links))
    await asyncio.sleep(0)

    links[1].fail(ConnectionError("it broke"))

    with pytest.raises(EndUnreachable, match=r"^queue 'q' at h:7: it broke$"):
        await taken
    with pytest.raises(EndUnreachable, match="it broke"):
        await arrivals.take(links)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_had_come_before_is_kept_when_taking_is_given_up() -> None:
    arrivals: Arrivals[int] = Arrivals()
    taken = asyncio.ensure_future(arrivals.take([]))
    await asyncio.sleep(0)

    taken.cancel()
    await asyncio.gather(taken, return_exceptions=True)
    arrivals.put(1)

    assert await arrivals.take([]) == [1]


async def test_a_connection_is_lost_once_and_its_first_reason_stays() -> None:
    link = MemoryLink(END)

    link.fail(ConnectionError("first"))
    link.fail(ConnectionError("second"))

    assert "first" in str(await ended(first_lost([link])))


async def test_a_lost_connection_that_is_not_waited_for_is_no_error() -> None:
    complaints: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: complaints.append(context))

    MemoryLink(END).fail(ConnectionError("never asked for"))
    await asyncio.sleep(0)
    gc.collect()

    assert complaints == []


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConnectionError("it broke"), "queue 'q' at h:7: it broke"),
        (TimeoutError(), "queue 'q' at h:7: TimeoutError"),
        (EndUnreachable("said before"), "said before"),
    ],
)
async def test_an_error_is_said_with_the_end_and_never_with_a_password(
    error: Exception, text: str
) -> None:
    found = MemoryLink(END).unreachable(error)

    assert str(found) == text
    assert "secret" not in str(found)


async def test_an_end_that_was_taken_away_is_told_as_that() -> None:
    link = MemoryLink(END)

    link.fail(TakenOver("another one"))

    assert isinstance(await ended(first_lost([link])), TakenOver)


async def test_waiting_ends_with_the_other_thing_too() -> None:
    other: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = asyncio.ensure_future(first_lost([MemoryLink(END)], other))
    await asyncio.sleep(0)
    assert not waiting.done()

    other.set_result(None)

    await waiting


async def test_an_end_closes_all_its_connections_the_last_first() -> None:
    source = MemorySource()
    second = MemoryLink(END)
    source.links.append(second)

    await source.close()

    assert source.links == []
    assert source.link.is_closed
    assert second.is_closed


async def test_a_source_may_leave_out_what_it_does_not_have() -> None:
    source = MemorySource()

    assert await RouteSource.waiting(source) is None
    await RouteSource.pause(source)
    await RouteSource.save(source)
    assert (source.is_paused, source.saved, RouteSource.unsaved) == (False, [], 0)


def test_parcels_are_equal_to_none_but_themselves() -> None:
    first, second = Parcel(b"a", 1), Parcel(b"a", 1)

    assert first != second
    assert len({first, second}) == 2
    assert (first.is_done, first.is_repeated, first.refusal, dict(first.place)) == (
        *(False, False, None),
        {},
    )


async def test_soon_ends_when_nothing_comes() -> None:
    with pytest.raises(AssertionError):
        await soon(lambda: False, within_s=0)
