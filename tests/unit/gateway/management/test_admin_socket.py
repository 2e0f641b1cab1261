import asyncio
import json
import os
import socket
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.management import admin_socket
from gateway.management.admin_socket import AdminSocket
from gateway.management.errors import NotFound
from gateway.management.wire import LINE_BYTES_MAX, address_of
from gateway.settings.errors import ConfigError
from tests.waiting import HANG_S


async def answer(name: str, arguments: Mapping[str, object], body: bytes) -> object:
    match name:
        case "echo":
            return [dict(arguments), len(body)]
        case "missing":
            raise NotFound("there is no such thing")
        case "bug":
            raise RuntimeError("secret detail")
    return name


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def of(cls, directory: Path) -> "Client":
        with address_of(directory) as address:
            return cls(*await asyncio.open_unix_connection(address, limit=2**24))

    async def ask(self, content: bytes) -> dict[str, object]:
        self.writer.write(content)
        return await self.answer()

    async def answer(self) -> dict[str, object]:
        line = await asyncio.wait_for(self.reader.readline(), HANG_S)
        result: dict[str, object] = json.loads(line)
        return result

    async def ended(self) -> bool:
        return await asyncio.wait_for(self.reader.read(), HANG_S) == b""

    def close(self) -> None:
        self.writer.close()


ECHO = b'{"request": "echo", "arguments": {"a": 1}}\n'


@pytest.fixture
async def listening(tmp_path: Path) -> AsyncIterator[AdminSocket]:
    admin = AdminSocket(tmp_path, answer)
    await admin.start()
    yield admin
    await admin.stop()


async def test_requests_are_answered_one_after_the_other(listening: AdminSocket) -> None:
    client = await Client.of(listening.path.parent)

    assert await client.ask(ECHO) == {"result": [{"a": 1}, 0]}
    assert await client.ask(b'{"request": "echo", "body_bytes": 3}\nabc' + ECHO) == {
        "result": [{}, 3]
    }
    assert await client.answer() == {"result": [{"a": 1}, 0]}
    client.close()


async def test_refusals_have_a_code_and_faults_of_the_server_tell_no_details(
    listening: AdminSocket, caplog: pytest.LogCaptureFixture
) -> None:
    client = await Client.of(listening.path.parent)

    assert await client.ask(b'{"request": "missing"}\n') == {
        "error": "there is no such thing",
        "code": "not_found",
    }
    refusal = await client.ask(b'{"request": "bug"}\n')
    assert refusal["code"] == "failed"
    assert "secret" not in str(refusal)
    assert "admin request failed" in caplog.text
    assert await client.ask(ECHO) == {"result": [{"a": 1}, 0]}
    client.close()


async def test_a_body_of_fifty_megabytes_comes_through(listening: AdminSocket) -> None:
    client = await Client.of(listening.path.parent)
    size = 50 * 1024 * 1024

    result = await client.ask(b'{"request": "echo", "body_bytes": %d}\n' % size + bytes(size))

    assert result == {"result": [{}, size]}
    client.close()


@pytest.mark.parametrize("content", [b"hello\n", b"x" * (LINE_BYTES_MAX + 2), b"[]\n"])
async def test_what_is_no_request_ends_the_connection_with_a_word(
    listening: AdminSocket, content: bytes
) -> None:
    client = await Client.of(listening.path.parent)

    assert (await client.ask(content))["code"] == "wrong_request"
    with suppress(ConnectionResetError):  # what was sent in vain may have been lying there
        assert await client.ended()
    client.close()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
async def test_the_socket_is_its_owners_alone_whatever_the_umask(
    tmp_path: Path, umask: int
) -> None:
    admin = AdminSocket(tmp_path, answer)
    before = os.umask(umask)
    try:
        await admin.start()
    finally:
        os.umask(before)

    assert stat.S_IMODE(admin.path.stat().st_mode) == 0o600
    await admin.stop()
    assert not admin.path.exists()


async def test_the_socket_of_a_killed_server_is_replaced(tmp_path: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "admin.sock"))
    left.close()
    admin = AdminSocket(tmp_path, answer)

    await admin.start()

    client = await Client.of(tmp_path)
    assert await client.ask(ECHO) == {"result": [{"a": 1}, 0]}
    client.close()
    await admin.stop()


async def test_a_file_of_that_name_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "admin.sock").write_text("mine")

    with pytest.raises(ConfigError, match=r"admin\.sock is in the way"):
        await AdminSocket(tmp_path, answer).start()

    assert (tmp_path / "admin.sock").read_text() == "mine"


async def test_the_path_may_be_longer_than_an_address_holds(tmp_path: Path) -> None:
    directory = tmp_path.joinpath(*["d" * 100] * 3)
    directory.mkdir(parents=True)
    admin = AdminSocket(directory, answer)
    await admin.start()

    client = await Client.of(directory)
    assert await client.ask(ECHO) == {"result": [{"a": 1}, 0]}
    client.close()
    await admin.stop()
    assert list(directory.iterdir()) == []


async def test_another_servers_socket_is_not_removed_at_the_end(tmp_path: Path) -> None:
    first, second = AdminSocket(tmp_path, answer), AdminSocket(tmp_path, answer)
    await first.start()
    await second.start()

    await first.stop()

    assert second.path.exists()
    await second.stop()


async def test_those_who_say_nothing_make_room_for_those_who_ask(
    listening: AdminSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_socket, "CONNECTIONS_MAX", 3)
    silent = [await Client.of(listening.path.parent) for _ in range(10)]

    client = await Client.of(listening.path.parent)

    assert await client.ask(ECHO) == {"result": [{"a": 1}, 0]}
    assert await silent[0].ended()
    assert await client.ask(ECHO) == {"result": [{"a": 1}, 0]}
    for each in (client, *silent):
        each.close()


async def test_when_all_are_being_served_one_more_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_socket, "CONNECTIONS_MAX", 2)
    served: asyncio.Queue[str] = asyncio.Queue()

    async def answer_never(name: str, _arguments: Mapping[str, object], _body: bytes) -> object:
        served.put_nowait(name)
        return await asyncio.Event().wait()

    admin = AdminSocket(tmp_path, answer_never)
    await admin.start()
    busy = [await Client.of(tmp_path) for _ in range(2)]
    for each in busy:
        each.writer.write(b'{"request": "any"}\n')
        await asyncio.wait_for(served.get(), HANG_S)

    client = await Client.of(tmp_path)

    assert (await client.answer())["code"] == "busy"
    for each in (client, *busy):
        each.close()
    await admin.stop()


async def test_who_is_silent_too_long_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_socket, "IDLE_S", 0.05)
    monkeypatch.setattr(admin_socket, "STALL_S", 0.05)
    admin = AdminSocket(tmp_path, answer)
    await admin.start()
    silent, halting = await Client.of(tmp_path), await Client.of(tmp_path)
    halting.writer.write(b'{"request": "echo", "body_bytes": 10}\nabc')

    assert await silent.ended()
    assert await halting.ended()

    silent.close()
    halting.close()
    await admin.stop()
