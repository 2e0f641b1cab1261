"""compat/mewbase/serve, the server that test suites of other programs start for each test."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from compat.certificates import make
from tests.integration.server import REPOSITORY, server_environment
from tests.mewbase_client import MewbaseClient
from tests.waiting import HANG_S

SERVE = REPOSITORY / "compat" / "mewbase" / "serve"
Serve = Callable[..., "subprocess.Popen[str]"]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def served(*arguments: str, folder: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """Run it until the block ends."""
    with subprocess.Popen(
        [SERVE, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=server_environment(),
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("hutch ready ")
            yield process
            process.send_signal(signal.SIGTERM)
            begun_s = time.monotonic()
            assert process.wait(HANG_S) == 0
            assert time.monotonic() - begun_s < 10
        finally:
            process.kill()


def test_channels_binders_and_data_outlive_it_and_the_port_is_free_at_once(tmp_path: Path) -> None:
    port = free_port()
    arguments = (
        *("--port", str(port), "--data", str(tmp_path / "data"), "--channel", "channel1,channel2"),
        *("--channels", "empty", "--binder", "spare", "--projection", "channel1:binder1:id"),
    )
    for number in range(2):
        with served(*arguments), MewbaseClient(port) as client:
            client.connect()
            client.publish("channel1", {"id": "a", "n": number})
            client.publish("channel2", {})
            client.subscribe("empty", startPos=0)
            client.subscribe("channel1", startPos=0, durableID="d")
            assert len(client.events(number + 1)) == number + 1
            client.send("SUBCLOSE", subID=1, rID=9)
            assert client.must("RESPONSE")["ok"] is True
            for binder, found in (("binder1", {"id": "a", "n": number}), ("spare", None)):
                client.send("QUERY", queryID=1, rID=5, binder=binder, matcher={})
                assert client.must("QUERYRESULT")["result"] == found


def test_a_client_that_reads_nothing_does_not_delay_the_end() -> None:
    port = free_port()
    with ExitStack() as stack, served("--port", str(port), "--channel", "channel1"):
        # The stack is closed last, so both are connected at the end of the server.
        client, stalled = MewbaseClient(port), MewbaseClient(port)
        stack.push(client)
        stack.push(stalled)
        client.connect()
        for _ in range(12):
            client.publish("channel1", {"data": bytes(900_000)})
        stalled.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stalled.connect()
        for _ in range(20):
            stalled.send("SUBSCRIBE", channel="channel1", rID=1, startPos=0)
        time.sleep(0.5)


def test_paths_are_those_of_the_caller(tmp_path: Path) -> None:
    made, port = make(tmp_path / "certificates"), free_port()
    files = (made.server.certificate, made.server.key)
    certificate, key = (str(each.relative_to(tmp_path)) for each in files)
    arguments = ("--tls-cert", certificate, "--tls-key", key, "--data", "data")
    trusted = ssl.create_default_context(cafile=str(made.ca))
    with (
        served("--port", str(port), "--channel", "channel1", *arguments, folder=tmp_path),
        MewbaseClient(port, trusted) as client,
    ):
        client.connect()
        client.publish("channel1", {})
    assert (tmp_path / "data").is_dir()


def test_without_a_rule_anyone_may_come_in() -> None:
    port = free_port()
    logins: list[dict[str, object]] = [
        {"authInfo": {"username": "x", "password": "y"}},
        {"authInfo": {}},
        {"username": "x"},
    ]
    with served("--port", str(port), "--channel", "channel1"):
        for fields in logins:
            with MewbaseClient(port) as client:
                assert client.ask("CONNECT", version="1.0", **fields)["ok"] is True
                client.publish("channel1", {})


def test_users_may_come_in_by_their_passwords() -> None:
    port = free_port()
    with served("--port", str(port), "--auth", "users"):
        for auth, is_right in (
            ({"username": "mew", "password": "base"}, True),
            ({"username": "base", "password": "mew"}, True),
            ({"username": "mew", "password": "mew"}, False),
            (None, False),
        ):
            with MewbaseClient(port) as client:
                answer = client.ask("CONNECT", version="0.1", authInfo=auth)
                assert answer["ok"] is is_right
                if not is_right:
                    assert (answer["errCode"], answer["errMsg"][:21]) == (
                        1,
                        "Authentication failed",
                    )
                    assert client.is_ended()


def test_the_rule_of_success_lets_in_where_it_is_true() -> None:
    port = free_port()
    with served("--port", str(port), "--auth", "success", "--channel", "channel1"):
        for auth, is_right in (({"success": True}, True), ({"success": False}, False), ({}, False)):
            with MewbaseClient(port) as client:
                answer = client.ask("CONNECT", version="0.1", authInfo=auth)
                assert answer["ok"] is is_right
                if is_right:
                    client.publish("channel1", {})


def test_with_a_certificate_the_port_speaks_tls_alone(tmp_path: Path) -> None:
    made, port = make(tmp_path / "certificates"), free_port()
    files = ("--tls-cert", str(made.server.certificate), "--tls-key", str(made.server.key))
    with served("--port", str(port), "--channel", "channel1", *files):
        with MewbaseClient(port, ssl.create_default_context(cafile=str(made.ca))) as client:
            client.connect()
            client.publish("channel1", {})
        with MewbaseClient(port) as plain:
            plain.send("CONNECT", version="0.1", authInfo=None)
            assert plain.is_ended()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--projection", "a:b"], "is not CHANNEL:BINDER:FIELD"),
        (["--tls-cert", "x.pem"], "go together"),
        (["--auth", "magic"], "invalid choice"),
    ],
)
def test_a_wrong_argument_is_named(arguments: list[str], words: str) -> None:
    done = subprocess.run(
        [SERVE, *arguments], capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 2
    assert words in done.stderr
