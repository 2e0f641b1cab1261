"""Rounds of watermarks, on a real store and with a clock of the test's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.pravega.controller.errors import InvalidRequest, NoSuchWriter
from gateway.pravega.controller.records.model import StreamPolicy
from gateway.pravega.controller.rounds import writers
from gateway.pravega.controller.rounds.marks import Watermark, pack
from gateway.pravega.controller.rounds.writers import Told
from gateway.server.loop.awaiting import awaited
from tests.controller_rig import World

MARKS = "scope/_MARKstream/0.#epoch.0"
TIMEOUT_MS = 5_000


class Rig(World):
    """A stream of one segment with writers."""

    async def tell(self, writer: str, time: int, offset: int = 0) -> Told:
        stream = self.controller.registry.stream("scope", "stream")
        return await awaited(self.controller.times.tell(stream, writer, time, {0: offset}))

    async def end(self, writer: str) -> None:
        stream = self.controller.registry.stream("scope", "stream")
        await awaited(self.controller.times.end(stream, writer))

    async def mark(self) -> None:
        await awaited(self.controller.mark())

    async def reopened(self) -> None:
        await self.close()
        await awaited((await self.open()).open())

    async def marks(self) -> bytes:
        return await self.content(MARKS) if await self.info(MARKS) else b""

    def expected(self, *marks: tuple[int, int, int]) -> bytes:
        (segment,) = self.controller.registry.stream("scope", "stream").history.open
        return b"".join(
            pack(Watermark(lower, upper, {segment: offset})) for lower, upper, offset in marks
        )


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path / "data")
    await awaited((await rig.open()).open())
    await awaited(rig.controller.streams.create_scope("scope"))
    made = rig.controller.streams.create("scope", "stream", StreamPolicy(aggregation_ms=TIMEOUT_MS))
    await awaited(made)
    yield rig
    await rig.close()


async def test_each_round_marks_how_far_the_writers_are(rig: Rig) -> None:
    await rig.mark()
    assert await rig.marks() == b""
    await rig.tell("one", 100, 5)
    await rig.mark()
    await rig.mark()
    await rig.tell("one", 110, 9)
    await rig.mark()

    assert await rig.marks() == rig.expected((100, 100, 5), (110, 110, 9))


async def test_a_restart_forgets_no_writer_and_marks_nothing_twice(rig: Rig) -> None:
    await rig.tell("one", 100, 5)
    await rig.tell("two", 120, 7)
    await rig.mark()

    await rig.reopened()
    await rig.mark()
    await rig.tell("two", 130, 9)
    await rig.mark()
    assert await rig.marks() == rig.expected((100, 120, 7))

    await rig.tell("one", 140, 8)
    await rig.mark()
    assert await rig.marks() == rig.expected((100, 120, 7), (130, 140, 9))


async def test_a_silent_writer_is_waited_for_as_long_as_the_stream_says(rig: Rig) -> None:
    await rig.tell("one", 100, 5)
    await rig.tell("two", 120, 7)
    await rig.mark()
    await rig.tell("two", 130, 9)
    await rig.mark()
    rig.clock.now_ms += TIMEOUT_MS - 1
    await rig.mark()
    assert await rig.marks() == rig.expected((100, 120, 7))

    rig.clock.now_ms += 1
    await rig.mark()

    assert await rig.marks() == rig.expected((100, 120, 7), (130, 130, 9))


async def test_a_writer_that_has_ended_is_not_waited_for(rig: Rig) -> None:
    await rig.tell("one", 100, 5)
    await rig.tell("two", 120, 7)
    await rig.mark()
    await rig.tell("two", 130, 9)
    await rig.end("one")

    await rig.mark()

    assert await rig.marks() == rig.expected((100, 120, 7), (130, 130, 9))
    with pytest.raises(NoSuchWriter):
        await rig.end("one")


async def test_a_time_that_goes_back_is_refused_and_counts_for_nothing(rig: Rig) -> None:
    await rig.tell("one", 100, 5)
    assert await rig.tell("one", 99, 6) is Told.INVALID_TIME
    assert await rig.tell("one", 101, 4) is Told.INVALID_POSITION
    await rig.mark()

    assert await rig.marks() == rig.expected((100, 100, 5))


async def test_too_many_writers_are_refused(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "WRITERS_MAX", 1)
    await rig.tell("one", 100)
    for name in ("two", 256 * "a"):
        with pytest.raises(InvalidRequest, match="at most 1000 writers"):
            await rig.tell(name, 100)


async def test_times_go_with_their_stream(rig: Rig) -> None:
    await rig.tell("one", 100, 5)
    await rig.mark()
    await awaited(rig.controller.delete_all("scope"))
    await rig.mark()
    assert not rig.controller.registry.times

    await rig.reopened()

    assert not rig.controller.registry.times
    assert not [name for name in rig.segments() if "_MARK" in name]
