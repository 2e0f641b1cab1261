"""Streams of marks: there as long as their streams are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

import pytest

from gateway.broker.access.model import Right
from gateway.log import names
from gateway.pravega.controller.errors import InvalidRequest, NoSuchStream
from gateway.pravega.controller.records.directory import Directory
from gateway.pravega.controller.records.epochs import StreamSegment
from gateway.pravega.controller.records.model import StreamPolicy, StreamRecord
from gateway.pravega.controller.rounds.marks import MarkRights, Shown, Watermark, _compact, pack
from gateway.pravega.names import MARK, segment_name
from gateway.server.loop.awaiting import awaited
from tests.controller_rig import World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path / "data")
    await awaited((await world.open()).open())
    await awaited(world.controller.streams.create_scope("scope"))
    yield world
    await world.close()


async def make(world: World, segments: int = 1) -> None:
    await awaited(
        world.controller.streams.create("scope", "stream", StreamPolicy(segments=segments))
    )


async def delete(world: World) -> None:
    await awaited(world.controller.seal("scope", "stream"))
    await awaited(world.controller.streams.delete("scope", "stream"))


async def marks(world: World) -> list[str]:
    """Return the names of the segments of a stream's marks, as a client is told them."""
    found = await awaited(world.controller.stream("scope", "_MARKstream"))
    return [found.segment_name(each.identity) for each in found.history.open]


async def there(world: World, scope: str = "scope") -> set[str]:
    async def listed() -> Sequence[str]:
        return await world.controller._segments.beneath(scope)  # what the store has

    return {name.split("/")[1] for name in await awaited(listed())}


async def test_marks_have_a_segment_when_they_are_asked_for(world: World) -> None:
    await make(world)
    assert await there(world) == {"stream"}

    (segment,) = await marks(world)

    assert segment == segment_name("scope", "_MARKstream", 0)
    assert await there(world) == {"stream", "_MARKstream"}
    assert await marks(world) == [segment]


async def test_a_sealed_stream_has_marks_that_are_read_still(world: World) -> None:
    await make(world)
    await awaited(world.controller.seal("scope", "stream"))

    assert len(await marks(world)) == 1


async def test_marks_go_with_their_stream_and_are_others_of_the_next_one(world: World) -> None:
    await make(world, 3)
    await marks(world)

    await delete(world)

    assert await there(world) == set()
    with pytest.raises(NoSuchStream):
        await marks(world)
    await make(world)
    assert await marks(world) == [segment_name("scope", "_MARKstream", 3)]


@pytest.mark.parametrize("depth", [2, 12_000])
async def test_marks_have_no_marks(world: World, depth: int) -> None:
    await make(world)

    with pytest.raises(NoSuchStream):
        await awaited(world.controller.stream("scope", depth * MARK + "stream"))


async def test_marks_are_those_of_a_stream_that_no_controller_made(world: World) -> None:
    await awaited(
        world.controller._segments.create(  # as a client of the wire makes it
            {"scope/wire/0.#epoch.0": 0}, StreamPolicy(), 0
        )
    )

    found = await awaited(world.controller.stream("scope", "_MARKwire"))

    assert [each.identity for each in found.history.open] == [0]
    assert await there(world) == {"wire", "_MARKwire"}


async def test_a_scope_of_which_marks_alone_are_left_is_empty(world: World) -> None:
    segments = world.controller._segments  # as a client of the wire makes it
    await awaited(segments.create({"scope/wire/0.#epoch.0": 0}, StreamPolicy(), 0))
    await awaited(world.controller.stream("scope", "_MARKwire"))
    await awaited(segments.delete(["scope/wire/0.#epoch.0"]))

    await awaited(world.controller.streams.delete_scope("scope"))

    assert await there(world) == set()


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("_MARKmine", StreamPolicy()),
        ("_RGmine", StreamPolicy(segments=2)),
        ("_RGmine", StreamPolicy(scale_type=1)),
    ],
)
async def test_no_client_makes_a_stream_of_the_servers_own(
    world: World, name: str, policy: StreamPolicy
) -> None:
    with pytest.raises(InvalidRequest, match=f"{name}: _MARK… and _RG… are"):
        await awaited(world.controller.streams.create("scope", name, policy))


async def test_a_client_of_old_makes_the_stream_of_its_group(world: World) -> None:
    await awaited(world.controller.streams.create("scope", "_RGmine", StreamPolicy()))


def shown(names: Iterable[str]) -> list[str]:
    directory: Directory[StreamRecord] = Directory()
    for name in names:
        directory[name] = None  # type: ignore[assignment]  # only names count
    listed = Shown(directory)
    found: list[str] = []
    while (following := listed.after(found[-1] if found else "")) is not None:
        found.append(following)
    return found


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], []),
        (["b", "a"], ["_MARKa", "_MARKb", "a", "b"]),
        (["A", "_RGg", "z"], ["A", "_MARKA", "_MARK_RGg", "_MARKz", "_RGg", "z"]),
        (["_RGg"], ["_MARK_RGg", "_RGg"]),
    ],
)
def test_marks_are_listed_in_order_among_streams(names: list[str], expected: list[str]) -> None:
    assert shown(names) == expected


class Some:
    """A caller that may do everything with one stream."""

    name = "some"

    def may(self, _right: Right, scope: str, stream: str) -> bool:
        return (scope, stream) == ("scope", "mine")


@pytest.mark.parametrize(
    ("right", "stream", "expected"),
    [
        (Right.READ, "mine", True),
        (Right.WRITE, "mine", True),
        (Right.READ, "_MARKmine", True),
        (Right.WRITE, "_MARKmine", False),
        (Right.CONFIGURE, "_MARKmine", False),
        (Right.READ, "_MARKother", False),
        (Right.READ, "_MARK_MARKmine", False),
    ],
)
def test_who_reads_a_stream_reads_its_marks_and_no_client_writes_them(
    right: Right, stream: str, *, expected: bool
) -> None:
    reading = MarkRights(Some())

    assert reading.may(right, "scope", stream) is expected
    assert reading.name == "some"


def test_the_marks_of_a_rabbitmq_stream_have_the_name_that_readers_ask_for() -> None:
    data = names.data_segment("/", "orders", 7)

    assert names.marks_segment("/", "orders", 7) == data.replace("/_", f"/{MARK}_")


TWO = {StreamSegment(0.0, 0.5, 0, 0): 0x70, StreamSegment(0.5, 1.0, 1, 0): 0xA8}


def test_a_watermark_has_the_bytes_that_the_java_client_took() -> None:
    """Its readers told the window of 100 and 120 when they came to them."""
    expected = (
        "00000000"
        "00000069"
        "0000010000000061"
        "0000000000000064"
        "0000000000000078"
        "02"
        "0000010000000018"
        "0000000000000000"
        "0000000000000000"
        "3fe0000000000000"
        "0000000000000070"
        "0000010000000018"
        "0000000000000001"
        "3fe0000000000000"
        "3ff0000000000000"
        "00000000000000a8"
    )

    assert pack(Watermark(100, 120, TWO)).hex() == expected


def test_times_may_be_below_zero() -> None:
    packed = pack(Watermark(-(1 << 63), -1, TWO))

    assert packed[16:32].hex() == "8000000000000000ffffffffffffffff"


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, "00"),
        (0x7F, "7f"),
        (0x80, "8080"),
        (0x3FFF, "bfff"),
        (0x4000, "c0004000"),
        (0x3FFFFFFF, "ffffffff"),
    ],
)
def test_numbers_take_as_many_bytes_as_they_need(number: int, expected: str) -> None:
    assert _compact(number).hex() == expected
