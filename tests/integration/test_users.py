"""Users of a running server: where they come from, how long they stay, how fast they lose a right.

What is taken away is taken while messages flow; delivery must have stopped within a second.
"""

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.bench.usage import cpu_seconds
from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.management.ctl.asking import ask
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import NEXT
from tests.client import Client, PeerGone, Refused
from tests.integration.server import HutchServer, run_serve

FELT_S = 10.0
PASSWORD = "secret"
HASH = PasswordHash.of(PASSWORD, Algorithm.ARGON2ID)

Change = Callable[..., object]


@pytest.fixture
def server(tmp_path: Path) -> HutchServer:
    return HutchServer(tmp_path / "data")


def changing(server: HutchServer) -> Change:
    def change(request: str, /, **arguments: object) -> object:
        return ask(server.data_dir, request, arguments)

    return change


def make_reader(change: Change, virtual_host: str = "v") -> None:
    """Make a user who may only read, in a virtual host with which guest may do everything."""
    change("add_vhost", name=virtual_host)
    change("add_user", name="reader", password_hash=HASH.text)
    for user, rights in (("guest", ".*"), ("reader", "")):
        change(
            "set_permissions",
            user=user,
            virtual_host=virtual_host,
            configure=rights,
            write=rights,
            read=".*",
        )


@pytest.mark.parametrize(
    ("request_", "arguments", "ends"),
    [
        ("delete_user", {"name": "reader"}, True),
        ("clear_permissions", {"user": "reader", "virtual_host": "v"}, False),
        ("delete_vhost", {"name": "v"}, True),
    ],
)
def test_what_is_taken_away_is_felt_at_once(
    server: HutchServer, request_: str, arguments: dict[str, str], *, ends: bool
) -> None:
    change = changing(server)
    with server:
        make_reader(change)
        writer = Client.opened(server.host, server.port, virtual_host="v")
        reader = Client.opened(
            server.host, server.port, user="reader", password=PASSWORD, virtual_host="v"
        )
        with writer, reader:
            writer.create("s")
            writer.declare(1, "s")
            reader.must("subscribe", m.Subscribe(1, "s", NEXT, 30_000, {}))
            for number in range(50):
                writer.publish(1, {number: b"x"})
            assert reader.delivery().chunk.records()

            began_s = time.monotonic()
            change(request_, **arguments)
            told = reader.next_of("metadata_update").message

            assert time.monotonic() - began_s < FELT_S
            assert told == m.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, "s")
            if ends:
                with pytest.raises(PeerGone):
                    reader.receive_frame(FELT_S)
                assert time.monotonic() - began_s < FELT_S
            else:
                reader.inbox.clear()  # what came before the update
                writer.publish(1, {99: b"not for the reader"})
                assert reader.is_silent(0.3)
        server.terminate()


def test_users_and_virtual_hosts_survive_a_crash(server: HutchServer) -> None:
    with server:
        make_reader(changing(server))
        changing(server)("delete_user", name="guest")
        server.restart()

        with Client.opened(
            server.host, server.port, user="reader", password=PASSWORD, virtual_host="v"
        ) as reader:
            assert reader.code_of("create_stream", m.CreateStream("s", {})) == 16
        with pytest.raises(Refused):
            Client.opened(server.host, server.port)


def test_a_users_file_is_read_once_and_warned_of_when_it_is_another(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text(f'[[users]]\nname = "app"\npassword_hash = "{PasswordHash.of("first")}"\n')
    with HutchServer(tmp_path / "data", "--users", str(users)) as server:
        assert "users file is ignored" not in server.logs
        Client.opened(server.host, server.port, user="app", password="first").close()
        server.restart()
        server.restart()
        assert "users file is ignored" not in server.logs, "it is the one that was taken"
        server.terminate()
        users.write_text("nothing that could be read")
        server.start()

        Client.opened(server.host, server.port, user="app", password="first").close()

        assert "users file is ignored" in server.logs
        server.terminate()
        users.unlink()
        server.start()
        assert server.logs.count("users file is ignored") == 2
        server.terminate()


def test_a_wrong_users_file_stops_the_first_start_and_leaves_it_the_first(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text("users = 1")
    ended = run_serve(tmp_path / "data", "--users", str(users))
    assert ended.returncode == 2
    assert "users" in ended.stderr

    users.write_text(f'[[users]]\nname = "app"\npassword_hash = "{PasswordHash.of("second")}"\n')
    with HutchServer(tmp_path / "data", "--users", str(users)) as server:
        Client.opened(server.host, server.port, user="app", password="second").close()


PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
PRINTED_BEFORE = "Ot7iiVZXYHRsswWgP7nbcSp8Dz0VXU5d6Ax+TS7gZsdAhgac"
"""A hash of `secret`, which the page had in an earlier version."""


@pytest.mark.parametrize("before", [None, PRINTED_BEFORE])
def test_the_users_file_of_the_page_is_refused_until_its_hashes_are_replaced(
    tmp_path: Path, before: str | None
) -> None:
    (example,) = re.findall(r"```toml\n(\[\[users\]\].+?)```", PAGE.read_text(), re.DOTALL)
    (placeholder,) = set(re.findall(r'password_hash = "(.+)"', example))
    users = tmp_path / "users.toml"
    users.write_text(example.replace(placeholder, before or placeholder))

    ended = run_serve(tmp_path / "data", "--users", str(users))

    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-2:] == [
        f"hutch: --users: {users}: users[{index}].password_hash: is that of the documentation: "
        "replace it by one of your own; `hutch hash-password` prints one"
        for index in range(2)
    ]
    users.write_text(example.replace(placeholder, str(PasswordHash.of("mine"))))
    with HutchServer(tmp_path / "data", "--users", str(users)) as server:
        Client.opened(server.host, server.port, user="admin", password="mine").close()


def test_many_clients_who_log_in_at_once_cost_one_hash_and_hold_nobody_up(
    server: HutchServer,
) -> None:
    """Fifty argon2id would take more than a second; what others do goes on meanwhile."""
    with server:
        make_reader(changing(server))
        clients = [Client(server.host, server.port) for _ in range(50)]
        for client in clients:
            client.must("peer_properties", m.PeerProperties({}))
            client.must("sasl_handshake", m.SaslHandshake())
        request = m.SaslAuthenticate("PLAIN", b"\0reader\0" + PASSWORD.encode())
        began_s = cpu_seconds([server.pid])
        for client in clients:
            client.send_request("sasl_authenticate", request)
        for client in clients:
            client.next_of("tune")
            client.disconnect()
        assert cpu_seconds([server.pid]) - began_s < 1
