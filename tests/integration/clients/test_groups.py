"""Single active consumers of stock clients, each a process that can be killed or stopped."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final, Self

import pytest

from hutch.stream import messages as m
from tests.client import Client
from tests.integration.clients.loop import run
from tests.integration.clients.rstream_session import producer_of, publish
from tests.integration.conftest import StartServer
from tests.integration.load import stored_offset
from tests.integration.server import REPOSITORY, Endpoint
from tests.waiting import HANG_S

HAND_OVER_S: Final = 30.0
"""No hand-over takes longer whose clients answer."""


class Member:
    """One process in a group."""

    def __init__(self, endpoint: Endpoint, name: str, stream: str, super_stream: str = "") -> None:
        module = "tests.integration.clients.group_member"
        arguments = [endpoint.host, str(endpoint.port), name, stream, super_stream]
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.said: list[dict[str, Any]] = []
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        assert self.process.stdout is not None
        self._reader.join(HANG_S)
        self.process.stdout.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(HANG_S)

    def stop(self) -> None:
        """Let it do nothing more, and keep its connection."""
        self.process.send_signal(signal.SIGSTOP)

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def until(self, condition: Callable[[], bool], seconds: float = HANG_S) -> None:
        """Listen until something holds of what it said."""
        deadline = time.monotonic() + seconds
        while not condition():
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"not within {seconds} s, it said {self.said}") from None
            assert line is not None, f"it ended, having said {self.said}"
            self.said.append(json.loads(line))

    def hear(self) -> None:
        """Take in what it has said by now."""
        while not self._lines.empty():
            line = self._lines.get()
            if line is not None:
                self.said.append(json.loads(line))

    def joins(self) -> Self:
        self.until(lambda: {"joined": True} in self.said)
        return self

    def active(self) -> set[str]:
        """The streams it was told to read, and not told to leave since."""
        told: dict[str, bool] = {e["stream"]: e["active"] for e in self.said if "active" in e}
        return {stream for stream, is_active in told.items() if is_active}

    def read(self) -> list[tuple[str, str]]:
        """Stream and record of all that it read."""
        return [(each["stream"], each["read"]) for each in self.said if "read" in each]


Start = Callable[..., Member]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start members that end with the test."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(Member(*arguments))


def store(endpoint: Endpoint, stream: str, *records: str) -> None:
    """Publish records and see them confirmed."""

    async def scenario() -> None:
        async with producer_of(endpoint) as producer:
            await publish(producer, stream, [record.encode() for record in records])

    run(scenario())


def create(endpoint: Endpoint, stream: str) -> None:
    with Client.opened(*endpoint) as client:
        assert client.code_of("create_stream", m.CreateStream(stream, {})) == 1


def until_stored(endpoint: Endpoint, *members: Member) -> None:
    """Wait for the offsets of all that was read: each is stored behind the line about it."""
    read = {
        (each["stream"], each["offset"])
        for member in members
        for each in member.said
        if "read" in each
    }
    deadline = time.monotonic() + HANG_S
    with Client.opened(*endpoint) as client:
        for stream, offset in read:
            while stored_offset(client, stream, "app") < offset:
                assert time.monotonic() < deadline, (stream, offset)
                time.sleep(0.01)


def test_when_the_one_that_reads_is_killed_the_next_goes_on_behind_it(
    endpoint: Endpoint, stream: str, start: Start
) -> None:
    create(endpoint, stream)
    store(endpoint, stream, "a", "b")
    first = start(endpoint, "app", stream).joins()
    first.until(lambda: len(first.read()) == 2)
    second = start(endpoint, "app", stream).joins()
    third = start(endpoint, "app", stream).joins()
    store(endpoint, stream, "c")
    first.until(lambda: len(first.read()) == 3)
    until_stored(endpoint, first)

    first.kill()
    second.until(lambda: second.active() == {stream}, HAND_OVER_S)
    store(endpoint, stream, "d")
    second.until(lambda: (stream, "d") in second.read())

    assert [record for _, record in first.read()] == ["a", "b", "c"]
    assert [record for _, record in second.read()] == ["d"]
    third.hear()
    assert (third.active(), third.read()) == (set(), [])


def test_who_does_not_answer_loses_its_connection_and_the_next_one_reads(
    start_server: StartServer, start: Start
) -> None:
    limit = {"HUTCH_STREAM__CONSUMER_UPDATE_TIMEOUT_MS": "1000"}
    server = start_server(environment=limit)
    create(server.endpoint, "s")
    store(server.endpoint, "s", "a")
    first = start(server.endpoint, "app", "s").joins()
    first.until(lambda: first.active() == {"s"})
    hung = start(server.endpoint, "app", "s").joins()
    third = start(server.endpoint, "app", "s").joins()
    hung.stop()

    first.kill()
    third.until(lambda: third.active() == {"s"}, 1 + HAND_OVER_S)
    store(server.endpoint, "s", "b")
    third.until(lambda: ("s", "b") in third.read())

    assert "consumer update not answered" in server.stderr


# Over the partitions of a super stream


def create_parts(endpoint: Endpoint, name: str) -> list[str]:
    """Create a super stream of three partitions; return their names."""
    partitions = tuple(f"{name}-{number}" for number in range(3))
    with Client.opened(*endpoint) as client:
        request = m.CreateSuperStream(name, partitions, ("0", "1", "2"), {})
        assert client.code_of("create_super_stream", request) == 1
    return list(partitions)


def delete_parts(endpoint: Endpoint, name: str) -> None:
    with Client.opened(*endpoint) as client:
        assert client.code_of("delete_super_stream", m.DeleteSuperStream(name)) == 1


def test_partitions_are_shared_and_move_when_a_member_is_killed(
    endpoint: Endpoint, stream: str, start: Start
) -> None:
    parts = create_parts(endpoint, stream)
    a = start(endpoint, "app", "", stream).joins()
    a.until(lambda: a.active() == set(parts))
    b = start(endpoint, "app", "", stream).joins()
    b.until(lambda: b.active() == {parts[1]}, HAND_OVER_S)
    c = start(endpoint, "app", "", stream).joins()
    c.until(lambda: c.active() == {parts[2]}, HAND_OVER_S)
    a.until(lambda: a.active() == {parts[0]}, HAND_OVER_S)
    for part in parts:
        store(endpoint, part, f"1 in {part}")
    for member, part in zip((a, b, c), parts, strict=True):
        member.until(lambda m=member, p=part: m.read() == [(p, f"1 in {p}")])  # type: ignore[misc]  # bound at once
    until_stored(endpoint, a, b, c)

    b.kill()
    c.until(lambda: c.active() == {parts[1]}, HAND_OVER_S)
    a.until(lambda: a.active() == {parts[0], parts[2]}, HAND_OVER_S)
    for part in parts:
        store(endpoint, part, f"2 in {part}")
    a.until(lambda: {(p, f"2 in {p}") for p in (parts[0], parts[2])} <= set(a.read()))
    c.until(lambda: (parts[1], f"2 in {parts[1]}") in c.read())
    until_stored(endpoint, a, c)

    a.kill()
    c.until(lambda: c.active() == set(parts), HAND_OVER_S)
    for part in parts:
        store(endpoint, part, f"3 in {part}")
    c.until(lambda: {(p, f"3 in {p}") for p in parts} <= set(c.read()))

    read = a.read() + b.read() + c.read()
    assert sorted(read) == sorted((p, f"{n} in {p}") for n in (1, 2, 3) for p in parts)
    delete_parts(endpoint, stream)


def test_who_hangs_while_it_is_to_step_down_is_followed_all_the_same(
    start_server: StartServer, start: Start
) -> None:
    limit = {"HUTCH_STREAM__CONSUMER_UPDATE_TIMEOUT_MS": "1000"}
    endpoint = start_server(environment=limit).endpoint
    parts = create_parts(endpoint, "p")
    hung = start(endpoint, "app", "", "p").joins()
    hung.until(lambda: hung.active() == set(parts))
    hung.stop()

    other = start(endpoint, "app", "", "p").joins()
    other.until(lambda: other.active() == set(parts), 1 + HAND_OVER_S)
    store(endpoint, parts[1], "x")

    other.until(lambda: other.read() == [(parts[1], "x")])
