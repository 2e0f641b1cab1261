"""The parts put together; that a whole server works is shown by the integration tests."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Self

import pytest

from gateway.broker.streams.stream_logs import StreamLogs
from gateway.network.listening import bind
from gateway.pending import Pending
from gateway.server.port import Port
from gateway.serving.backend import PORTS, Backend, server, sockets_max
from gateway.serving.process import Process
from gateway.settings.errors import ConfigError
from gateway.settings.model import Settings
from gateway.stream.port import StreamPort, clients_max
from hutch.stream import messages as m
from store.api import Durability
from store.errors import StoreError
from tests.client import Client
from tests.waiting import HANG_S


def settings_of(directory: Path) -> Settings:
    settings = Settings()
    return settings.model_copy(
        update={
            "store": settings.store.model_copy(
                update={"data_directory": directory, "durability": Durability.OS}
            ),
            "stream": settings.stream.model_copy(update={"port": 0}),
            "management": settings.management.model_copy(update={"port": 0}),
        }
    )


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[Process[Backend]]:
    started = made(settings_of(directory))
    await started.open()
    await started.start()
    yield started
    await started.stop()


def made(settings: Settings) -> Process[Backend]:
    return server(settings, asyncio.Event())


def address_of(process: Process[Backend]) -> tuple[str, int]:
    port = process.backend.context.port(StreamPort)
    assert port is not None
    return port.address


async def in_thread(function: Callable[[int], None], process: Process[Backend]) -> None:
    """Let a client that blocks speak to a server on this loop."""
    await asyncio.wait_for(asyncio.to_thread(function, address_of(process)[1]), HANG_S)


async def test_what_was_stored_is_there_after_a_stop_and_a_start(tmp_path: Path) -> None:
    def write(port: int) -> None:
        with Client.opened("127.0.0.1", port) as client:
            client.must("create_stream", m.CreateStream("s", {}))
            client.declare(1, "s", "ref")
            client.publish(1, {5: b"kept"})
            assert client.confirmed() == (1, (5,))

    def read(port: int) -> None:
        with Client.opened("127.0.0.1", port) as client:
            request = m.QueryPublisherSequence("ref", "s")
            answer = client.ask(m.PublisherSequence, "query_publisher_sequence", request)
            assert answer.sequence == 5

    for function in (write, read):
        async with running(tmp_path) as process:
            await in_thread(function, process)


async def test_a_port_that_is_taken_is_an_error_of_the_settings(tmp_path: Path) -> None:
    async with running(tmp_path) as process:
        settings = settings_of(tmp_path / "other")
        stream = settings.stream.model_copy(update={"port": address_of(process)[1]})
        other = made(settings.model_copy(update={"stream": stream}))
        await other.open()
        with pytest.raises(ConfigError, match="cannot listen on"):
            await other.start()
        await other.abandon()
    assert list((tmp_path / "other").glob("*")) == []


async def test_a_port_that_another_process_listens_on_once_it_is_taken_is_an_error_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = made(settings_of(tmp_path))
    await late.open()
    port = late.backend.context.port(StreamPort)
    assert port is not None
    with ExitStack() as open_sockets:

        def bind_and_be_late() -> None:
            take()
            open_sockets.enter_context(bind(*port.address)).listen()

        take = port.bind
        monkeypatch.setattr(port, "bind", bind_and_be_late)
        with pytest.raises(ConfigError, match="cannot listen on"):
            await late.start()
    await late.abandon()


async def test_a_later_start_that_fails_ends_as_cleanly_as_a_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path):
        pass
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        settings = settings_of(tmp_path)
        stream = settings.stream.model_copy(update={"port": taken.getsockname()[1]})
        settings = settings.model_copy(update={"stream": stream})
        failing = made(settings)
        await failing.open()
        with pytest.raises(ConfigError, match="cannot listen on"):
            await failing.start()
        await failing.abandon()
    with caplog.at_level("INFO"):
        async with running(tmp_path):
            pass
    assert "store opened" in caplog.text
    assert "journal replayed" not in caplog.text


async def test_a_bug_of_ours_in_a_stop_does_not_keep_the_store_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    process = made(settings_of(tmp_path))
    await process.open()
    await process.start()

    def fail(_: StreamLogs) -> None:
        raise KeyError("our bug")

    monkeypatch.setattr(StreamLogs, "close", fail)
    assert not await process.stop()
    monkeypatch.undo()

    assert "our bug" in caplog.text
    async with running(tmp_path):
        pass  # the data directory is free


class FailingPort(Port[Backend]):
    """A port whose clients have sent what cannot be stored."""

    @classmethod
    def configured(cls, settings: Settings) -> Self:  # noqa: ARG003 - it has none
        return cls([])

    async def serve(self, backend: Backend) -> None:
        pass

    async def settle(self) -> None:
        raise StoreError("full")

    @property
    def ready(self) -> str:
        return ""


async def test_a_port_that_fails_in_a_stop_does_not_keep_the_streams_from_being_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    closed: list[StreamLogs] = []
    close = StreamLogs.close

    def noted(logs: StreamLogs) -> Coroutine[Pending[Any], None, None]:
        closed.append(logs)
        return close(logs)

    monkeypatch.setattr(StreamLogs, "close", noted)
    ports: list[type[Port[Backend]]] = [FailingPort, *PORTS]
    process = Process(settings_of(tmp_path), ports, Backend, asyncio.Event())
    await process.open()
    await process.start()

    assert not await process.stop()

    assert closed
    assert caplog.text.count("stop is not clean, the next start recovers") == 1


@pytest.mark.parametrize(
    ("connections_max", "descriptors", "sockets"),
    [(100, 1_000_000, 356), (65_536, 1024, 459), (65_536, 20_000, 13_110), (65_536, 16, 4)],
)
def test_clients_leave_the_store_its_share_of_the_descriptors(
    connections_max: int, descriptors: int, sockets: int
) -> None:
    assert sockets_max(connections_max, descriptors) == sockets


@pytest.mark.parametrize(
    ("connections_max", "sockets", "clients"),
    [
        (50, 306, 50),
        (65_536, 306, 268),
        (65_536, 65_792, 65_536),
        (65_536, 10_000, 9_744),
        (9, 1, 1),
    ],
)
def test_clients_leave_strangers_their_share_of_the_sockets(
    connections_max: int, sockets: int, clients: int
) -> None:
    assert clients_max(connections_max, sockets) == clients
