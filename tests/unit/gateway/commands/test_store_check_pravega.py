"""`hutch store check` on what a controller has left: sound, cut short, and damaged in each way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from gateway.pending import start
from gateway.pravega.controller.controller import Controller
from gateway.pravega.controller.records.key_value_tables import TableConfig
from gateway.pravega.controller.records.model import StreamPolicy
from gateway.pravega.names import TABLE
from gateway.server.loop.awaiting import awaited
from store.api import TableEntry
from tests.controller_rig import World
from tests.integration.administrator import run_here
from tests.unit.gateway.pravega.controller.readers.test_group import group
from tests.unit.gateway.pravega.controller.test_cut_short import CHANGES, tried

Change = Callable[[Controller], Coroutine[Any, Any, object]]

EVENTS = b"".join(len(body).to_bytes(8, "big") + body for body in (b"one", b"", b"three"))
OLD, SECOND = "scope/stream/0.#epoch.0", "scope/stream/1.#epoch.0"
NEW = "scope/stream/2.#epoch.1"
"""The lower half of the keys of `OLD`, which a scaling split."""
READERS = group(1, starts={"scope/stream": {}}, ends={"scope/stream": {}}, cuts={})
IN_STREAM, PLACE, GONE = "stream=scope/stream", "place=scope/stream", "stream=scope/gone"
UNDER_WAY = "a change is under way and is finished at the next start"


async def filled(controller: Controller) -> None:
    """Make one of each: a stream that was scaled, a group, a table, and a transaction."""
    await controller.streams.create_scope("scope")
    await controller.streams.create("scope", "stream", StreamPolicy(segments=2))
    await controller.streams.scale("scope", "stream", [0], [(0.0, 0.25), (0.25, 0.5)])
    await controller.groups.create(READERS)
    await controller.tables.create("scope", "table", TableConfig(partitions=2))
    await controller.transactions.create("scope", "stream", 60_000)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path / "data")
    await awaited((await world.open()).open())
    await awaited(filled(world.controller))
    await world.write(NEW, EVENTS)
    yield world
    await world.close()


def transaction(world: World) -> int:
    return next(iter(world.controller.registry.transactions["scope", "stream"]))


def part(world: World, segment: str) -> str:
    return f"{segment}#transaction.{transaction(world):032x}"


async def checked(world: World, *arguments: str) -> tuple[int, list[str], str]:
    """Return the status of a check, what it found, and its last line; open the store again."""
    await world.close()
    code, out, err = run_here("store", "check", "--data", str(world._directory), *arguments)
    assert err == ""
    await world.open()
    *lines, last = out.splitlines()
    return code, lines, last


async def delete(world: World, segment: str) -> None:
    await world.ask(lambda done: world.local.for_removal.delete_segment(segment, done=done))


async def seal(world: World, segment: str) -> None:
    await world.ask(lambda done: world.local.seal_segment(segment, done=done))


async def create(world: World, segment: str) -> None:
    await world.ask(lambda done: world.local.create_segment(segment, done=done))


async def create_table(world: World, segment: str) -> None:
    await world.ask(lambda done: world.local.create_table(segment, done=done))


async def truncate(world: World, segment: str, offset: int) -> None:
    removal = world.local.for_removal
    await world.ask(lambda done: removal.truncate_segment(segment, offset, done=done))


async def put(world: World, key: bytes, value: bytes) -> None:
    rows = [TableEntry(key, value)]
    await world.ask(lambda done: world.local.update_table(TABLE, rows, done=done))


async def remove(world: World, key: bytes) -> None:
    rows = [TableEntry(key, b"")]
    await world.ask(lambda done: world.local.for_removal.remove_keys(TABLE, rows, done=done))


async def rewrite(world: World, key: bytes, old: bytes, new: bytes) -> None:
    (row,) = await world.ask(lambda done: world.local.read_table(TABLE, [key], done=done))
    assert old in row.value
    await put(world, key, row.value.replace(old, new))


async def test_a_sound_directory_is_counted_and_nothing_else_is_said(world: World) -> None:
    code, lines, last = await checked(world)

    assert (code, lines) == (0, [])
    assert (
        " 2 Pravega streams with 3 events, 1 reader groups, 1 key-value tables, 1 transactions,"
        in last
    )
    assert last.endswith(": all is sound")


async def test_a_store_without_a_controller_is_counted_as_before(tmp_path: Path) -> None:
    world = World(tmp_path / "data")
    await world.open()
    await create(world, "scope/stream/0.#epoch.0")

    code, lines, last = await checked(world)
    await world.close()

    assert (code, lines) == (0, [])
    assert last.startswith("1 segments, 0 streams, 0 chunks with 0 records, 0.0 MB in ")


MISSING = "a segment of the stream is missing"
ORPHAN = "a segment belongs to nothing that the controller knows"
UNUSABLE = "is none that a server can use"
IN_TRANSACTION = f"transaction=TRANSACTION {IN_STREAM}"
SHORT = (
    "1 of 3 parts of the open transaction are not there:"
    " its beginning was cut short, or they are lost"
)
GROUP, OF_GROUP = "group=scope/group", "scope/_RGgroup/0.#epoch.0"
PARTITION = "scope/table_kvtable/1.#epoch.0"
STREAMS_ROW, UNKNOWN = b"stream\0scope/stream", b"other\0x"
TIMES = b'{"scope": "scope", "stream": "gone", "writers": {}, "last": null}'


def damaged(what: str, where: str, segment: str = "") -> str:
    return f"damaged: {what} {segment and f'segment={segment} '}{where}"


def note(what: str, where: str, segment: str = "") -> str:
    return f"note: {what} {segment and f'segment={segment} '}{where}"


DAMAGE: dict[str, tuple[Callable[[World], Awaitable[object]], list[str]]] = {
    "open segment": (lambda w: delete(w, NEW), [damaged(MISSING, IN_STREAM, NEW)]),
    "segment with data": (lambda w: delete(w, OLD), [damaged(MISSING, IN_STREAM, OLD)]),
    "sealed": (
        lambda w: seal(w, NEW),
        [damaged("a segment that the stream writes is sealed", IN_STREAM, NEW)],
    ),
    "stream's row": (
        lambda w: put(w, STREAMS_ROW, b"{"),
        [
            damaged(f"the entry {STREAMS_ROW!r} {UNUSABLE}", f"segment={TABLE}"),
            damaged("the stream of a transaction is missing", IN_TRANSACTION),
            note(ORPHAN.replace("a segment belongs", "4 segments belong"), PLACE, OLD),
        ],
    ),
    "row of an unknown kind": (
        lambda w: put(w, UNKNOWN, b"{}"),
        [damaged(f"the entry {UNKNOWN!r} {UNUSABLE}", f"segment={TABLE}")],
    ),
    "scope's row": (
        lambda w: remove(w, b"scope\0scope"),
        [damaged("the scope has streams or tables, and is not there", "scope=scope")],
    ),
    "ranges": (
        lambda w: rewrite(w, STREAMS_ROW, b"0.25, 0.5,", b"0.25, 0.4,"),
        [damaged("its open segments do not have each key once", IN_STREAM)],
    ),
    "cut": (
        lambda w: rewrite(w, STREAMS_ROW, b'"cut": {}', b'"cut": {"1": 9}'),
        [damaged("the stream begins at 9, and the segment ends at 0", IN_STREAM, SECOND)],
    ),
    "group's stream": (
        lambda w: remove(w, b"stream\0scope/_RGgroup"),
        [
            damaged("the group of readers has lost its stream scope/_RGgroup", GROUP),
            note(ORPHAN, "place=scope/_RGgroup", OF_GROUP),
        ],
    ),
    "group's segment": (
        lambda w: delete(w, OF_GROUP),
        [damaged(MISSING, "stream=scope/_RGgroup", OF_GROUP)],
    ),
    "partition": (
        lambda w: delete(w, PARTITION),
        [damaged("a partition of the table is missing", "table=scope/table", PARTITION)],
    ),
    "first part": (
        lambda w: delete(w, part(w, NEW)),
        [
            damaged(
                "a part of the open transaction is missing",
                IN_TRANSACTION,
                f"{NEW}#transaction.TRANSACTION",
            )
        ],
    ),
    "last part": (
        lambda w: delete(w, part(w, SECOND)),
        [note(SHORT, IN_TRANSACTION, f"{SECOND}#transaction.TRANSACTION")],
    ),
    "segment of a client's own": (
        lambda w: create(w, "scope/own/0.#epoch.0"),
        [note(ORPHAN, "place=scope/own", "scope/own/0.#epoch.0")],
    ),
    "segment in a scope of a client's own": (lambda w: create(w, "own/one/0.#epoch.0"), []),
    "segment with marks": (lambda w: create(w, "scope/_MARKstream/0.#epoch.0"), []),
    "place": (
        lambda w: put(w, b"place\0scope/gone/%016d" % 5, b"[5, 0, {}]"),
        [note("places of retention are kept of a stream that is not there", GONE)],
    ),
    "times": (
        lambda w: put(w, b"times\0scope/gone", TIMES),
        [note("times are kept of a stream that is not there", GONE)],
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
async def test_what_is_wrong_is_one_line_that_names_it(name: str, world: World) -> None:
    damage, expected = DAMAGE[name]
    identity = f"{transaction(world):032x}"
    await damage(world)

    code, lines, last = await checked(world)

    assert [line.replace(identity, "TRANSACTION") for line in lines] == expected
    count = len([line for line in expected if line.startswith("damaged: ")])
    assert code == bool(count)
    assert last.endswith(["all is sound", "1 damaged place", "2 damaged places"][count])


async def test_a_segment_that_ended_and_takes_more_is_damage(world: World) -> None:
    await delete(world, OLD)
    await create(world, OLD)

    _, lines, _ = await checked(world)

    assert lines == [f"damaged: a segment that has ended is not sealed segment={OLD} {IN_STREAM}"]


async def test_a_segment_in_the_place_of_a_table_is_damage_and_the_other_way_round(
    world: World,
) -> None:
    partition = "scope/table_kvtable/0.#epoch.0"
    await delete(world, partition)
    await create(world, partition)
    await delete(world, NEW)
    await create_table(world, NEW)

    _, lines, _ = await checked(world)

    assert lines == [
        f"damaged: a segment of the stream is a table segment={NEW} {IN_STREAM}",
        f"damaged: a partition of the table is no table segment={partition} table=scope/table",
    ]


async def test_a_sealed_stream_has_sealed_segments(world: World) -> None:
    await awaited(world.controller.seal("scope", "stream"))
    assert (await checked(world))[:2] == (0, [])
    await delete(world, SECOND)
    await create(world, SECOND)

    _, lines, _ = await checked(world)

    assert lines == [
        f"damaged: a segment that has ended is not sealed segment={SECOND} {IN_STREAM}"
    ]


async def test_a_client_may_truncate_a_segment_further_than_its_stream(world: World) -> None:
    await awaited(
        world.controller.streams.truncate(
            "scope", "stream", {1: 0, 2 + (1 << 32): 11, 3 + (1 << 32): 0}
        )
    )
    assert (await checked(world))[:2] == (0, [])
    await truncate(world, NEW, 19)

    code, lines, last = await checked(world)

    assert code == 0
    assert lines == [
        f"note: the stream begins at 11, and the segment at 19 segment={NEW} {IN_STREAM}"
    ]
    assert " 2 Pravega streams with 1 events," in last


async def test_a_stream_may_be_deleted_under_a_group_that_reads_it(world: World) -> None:
    await awaited(world.controller.seal("scope", "stream"))
    await awaited(world.controller.streams.delete("scope", "stream"))

    code, lines, _ = await checked(world)

    assert code == 0
    assert lines == [note("the group of readers reads scope/stream, which is not there", GROUP)]


async def test_parts_of_a_transaction_that_has_written_are_all_there(world: World) -> None:
    await world.write(part(world, NEW), EVENTS)
    await delete(world, part(world, SECOND))

    code, lines, _ = await checked(world)

    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith(
        f"damaged: a part of the open transaction is missing segment={SECOND}#transaction."
    )


async def test_a_part_of_no_transaction_is_worth_a_note(world: World) -> None:
    identity = transaction(world)
    await awaited(world.controller.transactions.abort("scope", "stream", identity))
    await create(world, f"{NEW}#transaction.{identity:032x}")

    code, lines, _ = await checked(world)

    assert code == 0
    assert lines == [note(ORPHAN, PLACE, f"{NEW}#transaction.{identity:032x}")]


async def test_bytes_that_are_no_events_are_not_counted_and_no_damage(world: World) -> None:
    await world.write(SECOND, EVENTS + b"\0")

    code, lines, last = await checked(world)

    assert (code, lines) == (0, [])
    assert " 2 Pravega streams with 3 events," in last


async def test_a_repair_takes_out_what_no_server_can_use_and_leaves_the_rest(
    world: World,
) -> None:
    await put(world, b"times\0scope/stream", b"{")
    await delete(world, NEW)

    code, lines, _ = await checked(world, "--repair")
    missing = f"a segment of the stream is missing segment={NEW} {IN_STREAM}"

    assert code == 1
    assert f"left: not mended: {missing}" in lines
    assert (await checked(world))[1] == [f"damaged: {missing}"]
    await awaited(world.controller.open())
    assert list(world.controller.registry.streams("scope")) == ["_RGgroup", "stream"]


# Cut short

MORE: dict[str, tuple[Change, Change]] = {
    "begin": (CHANGES["abort"][0], lambda c: c.transactions.create("scope", "stream", 60_000)),
    "fill": (lambda c: c.registry.load(), filled),
    "delete a group": (
        filled,
        lambda c: c.groups.delete("scope", "group", READERS.identity),
    ),
    "delete a table": (filled, lambda c: c.tables.delete("scope", "table")),
    "delete the scope": (filled, lambda c: c.delete_all("scope")),
}


@pytest.mark.parametrize("name", [*CHANGES, *MORE])
async def test_a_change_that_was_cut_short_anywhere_is_no_damage(name: str, tmp_path: Path) -> None:
    before, change = (CHANGES | MORE)[name]
    for changes in count():
        world = World(tmp_path / str(changes))
        await awaited((await world.open()).open())
        await awaited(before(world.controller))
        world.store.changes = changes
        is_done = await tried(world, change)

        code, lines, last = await checked(world)
        await world.close()

        assert code == 0, (changes, lines)
        assert all(line.startswith("note: ") for line in lines)
        assert last.endswith("all is sound")
        if is_done:
            break
    assert changes > 0


async def test_a_change_under_way_is_told(world: World) -> None:
    world.store.changes = 1
    start(world.controller.seal("scope", "_RGgroup"))
    await world.store.stopped.wait()

    code, lines, _ = await checked(world)

    assert code == 0
    assert lines == [note(UNDER_WAY, "stream=scope/_RGgroup")]


async def test_a_commit_under_way_is_told(world: World) -> None:
    identity = transaction(world)
    world.store.changes = 1
    start(world.controller.transactions.commit("scope", "stream", identity))
    await world.store.stopped.wait()

    code, lines, _ = await checked(world)

    assert code == 0
    assert lines == [note(UNDER_WAY, f"transaction={identity:032x} {IN_STREAM}")]
