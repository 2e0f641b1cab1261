"""Administering a real server process from the command line."""

from __future__ import annotations

import os
import socket
import stat
from http import HTTPStatus
from pathlib import Path

import pytest

from gateway.management.ctl.asking import ServerUnreachable, ask
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.client import Client
from tests.http_client import Api
from tests.integration.administrator import (
    FULL,
    IMPATIENT,
    NOBODY,
    can_log_in,
    ctl,
    hutch,
    refusal,
)
from tests.integration.conftest import StartServer
from tests.integration.server import HutchServer


@pytest.fixture(autouse=True)
def no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("HUTCH_"):
            monkeypatch.delenv(name)


def test_users_are_made_and_log_in_and_go(start_server: StartServer) -> None:
    server = start_server(environment=IMPATIENT)
    ctl(server, "add_user", "app", "--tags", "monitoring,management", stdin=b"secret one\n")
    ctl(server, "add_user", "old", "--password-hash", "sha256", stdin=b"secret two\n")
    for user in ("app", "old"):
        ctl(server, "set_permissions", user, ".*", ".*", ".*")

    users = {user["name"]: user for user in ctl(server, "list_users")}
    assert users["app"]["tags"] == ["monitoring", "management"]
    assert [users[name]["password"] for name in ("app", "old")] == ["argon2id", "sha256"]
    assert can_log_in(server, "app", "secret one")
    assert can_log_in(server, "old", "secret two")

    ctl(server, "change_password", "old", stdin=b"secret three")
    assert not can_log_in(server, "old", "secret two")
    assert can_log_in(server, "old", "secret three")
    ctl(server, "delete_user", "app")
    assert not can_log_in(server, "app", "secret one")
    assert [one["user"] for one in ctl(server, "list_permissions")] == ["guest", "old"]
    server.restart()
    assert can_log_in(server, "old", "secret three")
    assert "secret" not in server.logs
    assert "argon2id$" not in server.logs


def test_a_stream_is_made_truncated_and_deleted(server: HutchServer) -> None:
    ctl(server, "add_stream", "log", "-a", "max-age=7D", "-a", "max-length-bytes=5000000")
    with Client.opened(*server.endpoint) as client:
        client.declare(1, "log")
        for number in range(5):
            client.publish(1, {number: b"x" * 1000})
            client.confirmed_ids(1)

    [stream] = ctl(server, "list_streams")
    assert (stream["name"], stream["arguments"]["max-age"]) == ("log", "7D")
    assert ctl(server, "truncate_stream", "log", "--before-offset", "3") == {"first_offset": 3}
    assert ctl(server, "truncate_stream", "log", "--before-time", "1h") == {"first_offset": 3}
    for beyond in (str(2**63), str(2**64 - 1)):
        truncated = ctl(server, "truncate_stream", "log", "--before-offset", beyond)
        assert truncated == {"first_offset": 5}, "an offset is a u64, and the end is the most"
    ctl(server, "delete_stream", "log")
    assert ctl(server, "list_streams") == []


def test_consumers_that_have_read_all_keep_their_place_when_it_is_truncated(
    server: HutchServer,
) -> None:
    ctl(server, "add_stream", "log")
    with Client.opened(*server.endpoint) as client:
        client.declare(1, "log")
        for number in range(5):
            client.publish(1, {number: b"x"})
            client.confirmed_ids(1)
        for reference, offset in (("done", 4), ("behind", 1)):
            client.send_request("store_offset", m.StoreOffset(reference, "log", offset))

    assert ctl(server, "truncate_stream", "log", "--before-offset", "5") == {"first_offset": 5}
    server.restart()

    with Client.opened(*server.endpoint) as client:
        for reference, offset in (("done", 4), ("behind", 1)):
            answer = client.request("query_offset", m.QueryOffset(reference, "log"))
            assert answer == m.StoredOffset(ResponseCode.OK, offset)


def test_a_super_stream_grows_while_it_is_used(server: HutchServer) -> None:
    made = ctl(server, "add_super_stream", "orders", "--partitions", "2", "-a", "max-age=7D")
    assert made == {"partitions": ["orders-0", "orders-1"]}
    with Client.opened(*server.endpoint) as client:
        client.declare(1, "orders-0")

        ctl(server, "add_partitions", "orders", "--partitions", "2")

        update = client.next_of("metadata_update").message
        assert isinstance(update, m.MetadataUpdate)
        assert update.stream == "orders-0"
        reply = client.ask(m.StreamsReply, "partitions", m.Partitions("orders"))
        assert reply.streams == tuple(f"orders-{number}" for number in range(4))
        assert client.code_of("declare_publisher", m.DeclarePublisher(1, "", "orders-0")) == 1
    [listed] = ctl(server, "list_super_streams")
    assert listed["partitions"] == [f"orders-{number}" for number in range(4)]
    assert {each["arguments"]["max-age"] for each in ctl(server, "list_streams")} == {"7D"}
    ctl(server, "add_super_stream", "regions", "--binding-keys", "emea,amer")
    assert {each["routing_key"] for each in ctl(server, "list_bindings")} >= {"emea", "amer", "3"}
    ctl(server, "delete_super_stream", "orders")
    assert len(ctl(server, "list_streams")) == 2


def partitions_of(server: HutchServer, super_stream: str) -> tuple[str, ...]:
    with Client.opened(*server.endpoint) as client:
        return client.ask(m.StreamsReply, "partitions", m.Partitions(super_stream)).streams


def test_a_partition_is_not_deleted_by_mistake_and_a_hole_is_filled(server: HutchServer) -> None:
    whole = ("orders-0", "orders-1", "orders-2")
    make = ("add_super_stream", "orders", "--partitions", "3")
    ctl(server, *make, "-a", "max-age=7D")

    refused = hutch(server.data_dir, "ctl", "delete_stream", "orders-1", check=False)

    assert refused.returncode == 1
    assert b"is a partition of super stream 'orders'" in refused.stderr
    assert b"--force" in refused.stderr
    assert partitions_of(server, "orders") == whole
    ctl(server, "delete_stream", "orders-0", "--force")
    ctl(server, "delete_stream", "orders-1", "--force")
    ctl(server, "add_stream", "orders-1")
    assert partitions_of(server, "orders") == ("orders-2",)

    assert ctl(server, *make) == {"partitions": list(whole)}

    assert partitions_of(server, "orders") == whole
    ages = {each["name"]: each["arguments"].get("max-age") for each in ctl(server, "list_streams")}
    assert ages == {"orders-0": "7D", "orders-1": None, "orders-2": "7D"}
    keys = {each["routing_key"]: each["destination"] for each in ctl(server, "list_bindings")}
    assert [keys[str(number)] for number in range(3)] == list(whole)
    again = hutch(server.data_dir, "ctl", *make, check=False)
    assert (again.returncode, again.stderr) == (1, b"hutch: there is an exchange 'orders'\n")


def test_a_stream_of_clients_and_over_http_goes_as_in_rabbitmq(server: HutchServer) -> None:
    ctl(server, "add_super_stream", "orders", "--partitions", "2")
    with Client.opened(*server.endpoint) as client:
        client.must("delete_stream", m.DeleteStream("orders-0"))

    assert Api(*server.management).status("DELETE", "queues/%2F/orders-1") == HTTPStatus.NO_CONTENT

    assert partitions_of(server, "orders") == ()


def test_exchanges_bindings_and_policies_are_made_and_removed(server: HutchServer) -> None:
    ctl(server, "add_stream", "log")
    ctl(server, "add_exchange", "events", "--type", "topic")
    ctl(server, "bind", "events", "log", "--routing-key", "order.#")
    ctl(server, "set_policy", "keep", "^l", '{"max-age": "7D"}', "--priority", "3")

    [binding] = ctl(server, "list_bindings")
    assert binding["routing_key"] == "order.#"
    with Client.opened(*server.endpoint) as client:
        assert client.ask(m.StreamsReply, "route", m.Route("order.new", "events")).streams == (
            "log",
        )
    [policy] = ctl(server, "list_policies")
    assert (policy["definition"], policy["priority"]) == ({"max-age": "7D"}, 3)
    ctl(server, "set_operator_policy", "most", "^l", '{"max-length-bytes": 9000}')
    [most] = ctl(server, "list_operator_policies")
    assert (most["definition"], most["apply_to"]) == ({"max-length-bytes": 9000}, "streams")
    server.restart()
    assert ctl(server, "list_bindings") == [binding]
    assert ctl(server, "list_policies") == [policy]
    assert ctl(server, "list_operator_policies") == [most]
    ctl(server, "clear_operator_policy", "most")
    assert ctl(server, "list_operator_policies") == []
    ctl(server, "unbind", "events", "log", "--routing-key", "order.#")
    ctl(server, "delete_exchange", "events")
    ctl(server, "clear_policy", "keep")
    assert ctl(server, "list_bindings") == ctl(server, "list_policies") == []


def test_a_connection_is_listed_and_ended(server: HutchServer) -> None:
    with Client.opened(*server.endpoint) as client:
        [connection] = ctl(server, "list_connections")
        assert (connection["user"], connection["virtual_host"]) == ("guest", "/")

        assert ctl(server, "close_connections", connection["peer"]) == {"closed": 1}

        client.wait_until_gone()
    code, words = refusal(server, "ctl", "close_connections", connection["peer"])
    assert code == 1
    assert "there is no such connection" in words


def test_refusals_have_exit_code_1_and_one_line(server: HutchServer) -> None:
    for arguments, words in (
        (("delete_user", "who"), "there is no user 'who'"),
        (("set_permissions", "who", "", "", ""), "there is no user 'who'"),
        (("set_permissions", "-p", "x", "guest", "", "", ""), "there is no virtual host 'x'"),
        (("set_permissions", "guest", "(", "", ""), "cannot be used"),
        (("add_vhost", "/"), "virtual host '/' exists"),
        (("add_user", "guest", "--no-password"), "there is a user 'guest'"),
        (("set_user_limits", "guest", "max-x=1"), "'max-x' is not a limit"),
        (("delete_stream", "none"), "there is no stream 'none'"),
        (("add_stream", "s", "-a", "stream-max-segment-size-bytes=1"), "below 9"),
        (("add_stream", "s" * 300), "has 300 bytes, more than 255"),
        (("add_exchange", "s" * 300), "has 300 bytes, more than 255"),
        (("add_super_stream", "s" * 254, "--partitions", "1"), "has 256 bytes, more than 255"),
        (("add_super_stream", "s", "--partitions", "1001"), "too many"),
        (("add_partitions", "none", "--partitions", "1"), "there is no exchange 'none'"),
        (("delete_super_stream", "amq.topic"), "is no super stream"),
        (("delete_super_stream", ""), "there is no exchange ''"),
        (("clear_policy", "none"), "there is no policy 'none'"),
        (("set_policy", "p", "(", "{}"), "cannot be used"),
        (("bind", "amq.topic", "none"), "there is no stream 'none'"),
        (("list_streams", "-p", "x"), "there is no virtual host 'x'"),
    ):
        code, said = refusal(server, "ctl", *arguments)
        assert code == 1, said
        assert words in said
        assert said.count("\n") == 1
    for arguments in (
        ("add_stream", "s\1"),
        ("add_stream", "s\n"),
        ("add_exchange", "s\x7f"),
        ("add_super_stream", "s\x1b", "--partitions", "1"),
        ("add_super_stream", "s", "--binding-keys", "a,b\1"),
        ("add_partitions", "s", "--binding-keys", "a\1"),
    ):
        code, said = refusal(server, "ctl", *arguments)
        assert (code, "has control characters" in said) == (2, True), said
    assert refusal(server, "ctl", "add_user", "x", stdin=b"\n") == (
        2,
        "hutch: an empty password can never log in\n",
    )


def test_without_a_server_commands_say_so_with_code_69(tmp_path: Path) -> None:
    missing = hutch(tmp_path / "none", "ctl", "list_users", check=False)
    empty = hutch(tmp_path, "export", check=False)
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "admin.sock"))
    left.close()
    killed = hutch(tmp_path, "import", str(FULL), check=False)

    assert [done.returncode for done in (missing, empty, killed)] == [69] * 3
    assert b"there is no directory" in missing.stderr
    assert b"no server runs on" in empty.stderr
    assert b"was killed has left its socket" in killed.stderr


def test_the_socket_is_the_owners_alone_goes_with_the_server_and_is_replaced_after_a_kill(
    start_server: StartServer,
) -> None:
    server = start_server()
    path = server.data_dir / "admin.sock"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    server.kill()
    assert path.exists()
    server.start()
    assert ctl(server, "list_users")
    server.terminate()

    assert not path.exists()


def test_a_data_directory_may_have_a_long_name(start_server: StartServer, tmp_path: Path) -> None:
    server = start_server(data=tmp_path.joinpath(*["long" * 30] * 3))

    assert [user["name"] for user in ctl(server, "list_users")] == ["guest"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_of_the_machine_is_not_let_in(server: HutchServer) -> None:
    for path in (server.data_dir, *server.data_dir.parents):
        if path == Path("/tmp"):
            break
        path.chmod(0o755)

    os.seteuid(NOBODY)
    try:
        with pytest.raises(ServerUnreachable, match="permission denied; only who runs the server"):
            ask(server.data_dir, "list_users", {})
    finally:
        os.seteuid(0)
