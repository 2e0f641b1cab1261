"""A server that is busy with passwords never says of a right one that it is wrong.

Many connections guess at two users, over and over with new passwords, from the address from which
these users and others log in. The queue of passwords is one for all ports.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count

import pytest

from hutch.client.errors import ServerBusy
from tests.client import Client, Refused
from tests.http_client import Api, basic
from tests.integration.administrator import IMPATIENT, ctl
from tests.integration.conftest import StartServer
from tests.integration.mewbase.conftest import port_of
from tests.integration.server import Endpoint, HutchServer
from tests.mewbase_client import MewbaseClient
from tests.waiting import wait_until

CONNECTIONS = 140
PAUSE_S = 0.5
"""Time a guesser waits between an answer and its next guess: it shares the test's processors."""
LOGINS = 3
UNHURRIED = {
    "HUTCH_STREAM__HANDSHAKE_STEP_TIMEOUT_MS": "600000",
    "HUTCH_MEWBASE__CONNECT_TIMEOUT_MS": "600000",
}
"""A password waits its turn however slow the machine is."""
KNOWN, GUESSED_AT, OTHER = ("guest", "guest"), ("app", "a password"), ("other", "a password")


class Told(enum.Enum):
    """Answer to a right password."""

    IN = enum.auto()
    BUSY = enum.auto()
    WRONG = enum.auto()


def over_http(server: HutchServer, user: str, password: str) -> Told:
    while True:
        # Of one address, the oldest connection without a login gives way to a new one.
        with suppress(ConnectionError):
            answer = Api(*server.management, (user, password)).ask("GET", "whoami")
            break
    if answer.status == 503:
        assert int(answer.headers["retry-after"]) > 0
        assert "www-authenticate" not in answer.headers
        assert answer.json["error"] == "busy"
        assert "not compared" in answer.json["reason"]
        return Told.BUSY
    return {200: Told.IN, 401: Told.WRONG}[answer.status]


def over_the_stream_protocol(server: HutchServer, user: str, password: str) -> Told:
    try:
        Client.opened(*server.endpoint, user=user, password=password).disconnect()
    except ServerBusy:
        return Told.BUSY
    except Refused:
        return Told.WRONG
    return Told.IN


def over_mewbase(server: HutchServer, user: str, password: str) -> Told:
    with MewbaseClient(port_of(server)) as client:
        answer = client.ask("CONNECT", version="1.0", username=user, password=password)
    if answer["ok"]:
        return Told.IN
    return Told.BUSY if answer["errMsg"].startswith("busy") else Told.WRONG


@asynccontextmanager
async def guessing(endpoint: Endpoint) -> AsyncIterator[None]:
    """Guess at two users over HTTP while the block runs."""
    guesses = (basic((KNOWN, GUESSED_AT)[number % 2][0], str(number)) for number in count())

    async def guess() -> None:
        reader, writer = await asyncio.open_connection(*endpoint)
        try:
            while True:
                head = f"GET /api/whoami HTTP/1.1\r\nHost: h\r\nAuthorization: {next(guesses)}"
                writer.write(f"{head}\r\n\r\n".encode())
                await reader.readuntil(b"}")
                await asyncio.sleep(PAUSE_S)
        finally:
            writer.close()

    async def guess_again() -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                await guess()

    tasks = [asyncio.create_task(guess_again()) for _ in range(CONNECTIONS)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def unread(server: HutchServer) -> int:
    counts = ctl(server, "list_auth_attempts", "--by", "protocol")
    return sum(one["auth_attempts_unread"] for one in counts)


@pytest.mark.parametrize("limit", [0, 100])
@pytest.mark.parametrize("log_in", [over_http, over_the_stream_protocol, over_mewbase])
async def test_a_right_password_is_never_told_to_be_wrong_while_others_guess(
    start_server: StartServer, log_in: Callable[[HutchServer, str, str], Told], limit: int
) -> None:
    settings = {"HUTCH_USERS__FAILED_LOGINS_A_SECOND_MAX": str(limit)}
    server = start_server("--mewbase-port", "0", environment=IMPATIENT | UNHURRIED | settings)
    for user, password in (GUESSED_AT, OTHER):
        ctl(server, "add_user", user, stdin=password.encode())
        ctl(server, "set_user_tags", user, "management")
        ctl(server, "set_permissions", user, ".*", ".*", ".*")
    assert log_in(server, *KNOWN) is Told.IN

    def log_in_often(user: tuple[str, str]) -> list[Told]:
        return [log_in(server, *user) for _ in range(LOGINS)]

    async with guessing(server.management):
        await asyncio.to_thread(wait_until, lambda: unread(server))
        guessed_at, other, known = [
            await asyncio.to_thread(log_in_often, user) for user in (GUESSED_AT, OTHER, KNOWN)
        ]

    assert set(guessed_at + other) <= {Told.IN, Told.BUSY}
    assert known == [Told.IN] * LOGINS
