"""PyPI's client of Pravega, as it is, with events, groups of readers and transactions."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hutch.pravega import messages as m
from tests.integration.pravega.conftest import StartStore, controller_port
from tests.integration.server import StoreProcess
from tests.pravega_client import WireClient
from tests.waiting import HANG_S

Manager = Any  # the client has no types
Reader = Any

LARGE = 9 << 20
EVENTS = 20_000
EVENT_BYTES = 8 + 5
BATCH = 500
KILLS = 5

pytestmark = pytest.mark.timeout(150)


async def take(reader: Reader, is_enough: Callable[[], bool], found: list[bytes]) -> None:
    """Read until there is enough; what was read is given back to the group."""
    while not is_enough():
        part = await reader.get_segment_slice_async()
        if part is None:
            continue
        found.extend(bytes(event.data()) for event in part)
        reader.release_segment(part)


def read(manager: Manager, stream: str, count: int, group: str = "group") -> list[bytes]:
    """Read so many events by a new group with one reader."""
    found: list[bytes] = []
    reader = manager.create_reader_group(group, "scope", stream).create_reader("reader")
    asyncio.run(asyncio.wait_for(take(reader, lambda: len(found) >= count, found), HANG_S))
    reader.reader_offline()
    return found


def test_events_are_read_in_the_order_of_their_routing_keys(manager: Manager) -> None:
    manager.create_stream("scope", "stream", 2)
    writer = manager.create_writer("scope", "stream")
    for number in range(60):
        writer.write_event(f"{number % 3}:{number:02}", routing_key=str(number % 3))
    writer.flush()

    found = read(manager, "stream", 60)

    assert sorted(found) == sorted(b"%d:%02d" % (n % 3, n) for n in range(60))
    for key in (b"0", b"1", b"2"):
        of_key = [event for event in found if event.startswith(key)]
        assert of_key == sorted(of_key)


def test_a_reader_that_comes_back_goes_on_and_two_readers_share(manager: Manager) -> None:
    manager.create_stream("scope", "stream", 2)
    writer = manager.create_writer("scope", "stream")
    names: list[bytes] = []
    group = manager.create_reader_group("group", "scope", "stream")

    def write(count: int) -> None:
        for _ in range(count):
            names.append(b"%06d" % len(names))
            writer.write_event_bytes(names[-1], routing_key=names[-1].decode())
        writer.flush()

    async def scenario() -> None:
        write(100)
        before: list[bytes] = []
        first = group.create_reader("first")
        await take(first, lambda: len(before) >= 100, before)
        first.reader_offline()
        shares: tuple[list[bytes], list[bytes]] = [], []

        def is_enough() -> bool:
            return all(shares) and sum(map(len, shares)) >= len(names) - 100

        readers = [group.create_reader("first"), group.create_reader("second")]
        tasks = [
            asyncio.create_task(take(reader, is_enough, share))
            for reader, share in zip(readers, shares, strict=True)
        ]
        while not all(shares):  # the first has both segments until it sees the second
            write(20)
            await asyncio.sleep(0.05)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        assert sorted(before + shares[0] + shares[1]) == names

    asyncio.run(asyncio.wait_for(scenario(), HANG_S))


def test_a_group_of_readers_goes_on_with_a_stream_that_was_deleted_and_made_again(
    manager: Manager,
) -> None:
    manager.create_stream("scope", "stream", 1)
    group = manager.create_reader_group("group", "scope", "stream")

    def write(count: int, size: int) -> list[bytes]:
        writer = manager.create_writer("scope", "stream")
        events = [b"%0*d" % (size, number) for number in range(count)]
        for event in events:
            writer.write_event_bytes(event)
        writer.flush()
        return events

    def read_on(name: str, count: int) -> list[bytes]:
        found: list[bytes] = []
        reader = group.create_reader(name)
        asyncio.run(asyncio.wait_for(take(reader, lambda: len(found) >= count, found), HANG_S))
        reader.reader_offline()
        return found

    events = write(20, 10)
    assert read_on("first", 20) == events
    manager.seal_stream("scope", "stream")
    manager.delete_stream("scope", "stream")
    manager.create_stream("scope", "stream", 1)

    events = write(60, 33)
    assert read_on("second", 60) == events


def test_a_transaction_is_there_when_it_is_committed_and_never_when_it_is_not(
    manager: Manager,
) -> None:
    manager.create_stream("scope", "stream", 1)
    writer = manager.create_transaction_writer("scope", "stream", 7)
    aborted = writer.begin_txn()
    aborted.write_event("never")
    aborted.abort()
    committed = writer.begin_txn()
    committed.write_event("one")
    committed.write_event("two")
    committed.commit()

    assert read(manager, "stream", 2) == [b"one", b"two"]


def test_an_event_of_nine_mebibytes_is_read_back(manager: Manager) -> None:
    manager.create_stream("scope", "stream", 1)
    writer = manager.create_writer("scope", "stream")
    large = bytes(range(256)) * (LARGE // 256)
    writer.write_event_bytes(large)
    writer.write_event("behind it")
    writer.flush()

    assert read(manager, "stream", 2) == [large, b"behind it"]


def test_each_acknowledged_event_is_there_once_and_in_order_after_kills(
    start_store: StartStore,
    pravega: Any,  # noqa: ANN401
) -> None:
    server = start_store("--durability", "disk")
    manager = pravega.StreamManager(f"tcp://127.0.0.1:{controller_port(server)}")
    manager.create_scope("scope")
    manager.create_stream("scope", "stream", 1)
    kills = [EVENTS * (number + 1) // (KILLS + 1) for number in range(KILLS)]
    stored = 0
    while stored < EVENTS:
        acknowledged = write(server, stored, kills)
        stored = stored_count(server)  # more than that, where the client has given up
        assert stored >= acknowledged

    found = read(manager, "stream", EVENTS)
    assert found == [b"%05d" % number for number in range(EVENTS)]
    assert kills == []


def stored_count(server: StoreProcess) -> int:
    with WireClient(*server.store) as client:
        request = m.GetStreamSegmentInfo(1, "scope/stream/0.#epoch.0", "")
        return client.ask(request, m.StreamSegmentInfo).write_offset // EVENT_BYTES


def write(server: StoreProcess, first: int, kills: list[int]) -> int:
    """Write events from a number on, and kill the server when so many are acknowledged.

    Kills that have happened are taken off the list.

    Returns:
        The number behind the last event that was acknowledged.
    """
    numbers = map(str, (controller_port(server), "scope", "stream", first, EVENTS, BATCH))
    command = [sys.executable, "-m", "tests.integration.pravega.event_writer", *numbers]
    acknowledged = first
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        giving_up = threading.Timer(HANG_S, writer.kill)
        giving_up.start()
        try:
            for line in writer.stdout:
                acknowledged = int(line)
                if kills and acknowledged >= kills[0]:
                    server.restart()
                    del kills[0]
        finally:
            giving_up.cancel()
    return acknowledged
