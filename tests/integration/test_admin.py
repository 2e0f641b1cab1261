"""Administering a real server process from the command line."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.commands.asking import Unreachable, ask
from gateway.stream.wire import messages as m
from tests.client import Client, Refused
from tests.integration.conftest import StartServer
from tests.integration.server import HutchServer, run_serve, server_environment

DEFINITIONS = Path(__file__).parents[1] / "unit" / "gateway" / "broker" / "definitions"
FULL = DEFINITIONS / "rabbitmq-4.3.json"
ONE_HOST = DEFINITIONS / "rabbitmq-4.3-one-host.json"
COMMAND_SECONDS = 60
NOBODY = 65534


def hutch(
    data: Path, *arguments: str, stdin: bytes = b"", check: bool = True
) -> subprocess.CompletedProcess[bytes]:
    """Run a command of `hutch` on the server of a data directory."""
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *arguments, "--data", str(data)],
        input=stdin,
        capture_output=True,
        timeout=COMMAND_SECONDS,
        env=server_environment(),
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert not check or done.returncode == 0, (done.returncode, done.stderr.decode())
    return done


def ctl(server: HutchServer, *arguments: str, stdin: bytes = b"") -> Any:  # noqa: ANN401  # what JSON holds
    """Run a `hutch ctl` command and return its answer."""
    return json.loads(hutch(server.data_dir, "ctl", *arguments, "--json", stdin=stdin).stdout)


def refusal(server: HutchServer, *arguments: str, stdin: bytes = b"") -> tuple[int, str]:
    done = hutch(server.data_dir, *arguments, stdin=stdin, check=False)
    assert done.stdout == b""
    return done.returncode, done.stderr.decode()


def can_log_in(server: HutchServer, user: str, password: str, virtual_host: str = "/") -> bool:
    try:
        Client.opened(
            *server.endpoint, user=user, password=password, virtual_host=virtual_host
        ).disconnect()
    except Refused:
        return False
    return True


def report(server: HutchServer, *arguments: str, stdin: bytes = b"") -> Any:  # noqa: ANN401  # what JSON holds
    return json.loads(hutch(server.data_dir, "import", *arguments, "--json", stdin=stdin).stdout)


def test_users_are_made_and_log_in_and_go(server: HutchServer) -> None:
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
    ctl(server, "delete_stream", "log")
    assert ctl(server, "list_streams") == []


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
    server.restart()
    assert ctl(server, "list_bindings") == [binding]
    assert ctl(server, "list_policies") == [policy]
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
    assert "nobody is connected" in words


def test_refusals_have_exit_code_1_and_one_line(server: HutchServer) -> None:
    for arguments, words in (
        (("delete_user", "who"), "there is no user 'who'"),
        (("set_permissions", "who", "", "", ""), "there is no user 'who'"),
        (("set_permissions", "-p", "x", "guest", "", "", ""), "there is no virtual host 'x'"),
        (("set_permissions", "guest", "(", "", ""), "cannot be used"),
        (("add_vhost", "/"), "virtual host '/' exists"),
        (("add_user", "guest", "--no-password"), "there is a user 'guest'"),
        (("set_user_limits", "guest", "max-x=1"), "'max-x' is no limit"),
        (("delete_stream", "none"), "there is no stream 'none'"),
        (("add_stream", "s", "-a", "stream-max-segment-size-bytes=1"), "below 9"),
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
        with pytest.raises(Unreachable, match="permission denied; only who runs the server"):
            ask(server.data_dir, "list_users", {})
    finally:
        os.seteuid(0)


def test_a_real_export_is_imported_once_and_given_back(server: HutchServer) -> None:
    dry = report(server, str(FULL), "--dry-run")
    assert len(ctl(server, "list_users")) == 1
    first = report(server, str(FULL))
    again = report(server, str(FULL))

    assert dry["objects"] == first["objects"]
    assert dry["changes"] == first["changes"] == 32
    assert again["changes"] == 0
    assert {row["outcome"] for row in first["objects"]} == {"imported", "adapted", "skipped"}
    ctl(server, "set_permissions", "old", "", "", "")
    assert can_log_in(server, "old", "test12")
    ctl(server, "clear_permissions", "old")
    streams = {stream["name"] for stream in ctl(server, "list_streams", "-p", "orders")}
    assert streams >= {"log", "plain", "invoices-0", "regions-emea"}

    exported = hutch(server.data_dir, "export").stdout
    back = json.loads(exported)
    theirs = json.loads(FULL.read_bytes())
    for section in ("users", "permissions", "policies"):
        assert {json.dumps(entry, sort_keys=True) for entry in back[section]} == {
            json.dumps(entry, sort_keys=True) for entry in theirs[section]
        }
    assert report(server, "-", stdin=exported)["changes"] == 0
    server.restart()
    assert report(server, str(FULL))["changes"] == 0


def test_the_report_is_a_table_for_people(server: HutchServer) -> None:
    text = hutch(server.data_dir, "import", str(FULL), "--dry-run").stdout.decode()

    assert "skipped" in text
    assert "is a classic queue, not a stream" in text
    assert "Nothing was changed" in text


def test_one_virtual_host_goes_where_it_is_sent(server: HutchServer) -> None:
    hutch(server.data_dir, "import", str(ONE_HOST), "--vhost", "copy")

    assert {stream["virtual_host"] for stream in ctl(server, "list_streams")} == {"copy"}
    one = json.loads(hutch(server.data_dir, "export", "--vhost", "copy").stdout)
    assert one["original_vhost_name"] == "copy"
    code, words = refusal(server, "export", "--vhost", "nowhere")
    assert (code, words) == (1, "hutch: there is no virtual host 'nowhere'\n")


def test_a_file_with_a_fault_changes_nothing_and_all_faults_are_told(
    server: HutchServer, tmp_path: Path
) -> None:
    content = json.loads(FULL.read_bytes())
    content["users"][1]["password_hash"] = "?"
    content["permissions"][0]["user"] = "nobody"
    content["queues"][0]["arguments"]["x-max-length-bytes"] = 10**30
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(content))

    code, words = refusal(server, "import", str(file))

    assert code == 1
    assert "password_hash is not base64" in words
    assert "x-max-length-bytes" in words
    assert len(ctl(server, "list_users")) == 1
    assert len(ctl(server, "list_vhosts")) == 1


def test_an_export_to_a_file_is_its_owners_alone_and_warns_of_argon2id(
    server: HutchServer, tmp_path: Path
) -> None:
    ctl(server, "add_user", "app", stdin=b"secret")
    file = tmp_path / "out.json"

    done = hutch(server.data_dir, "export", str(file))

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert b"warning: user 'app'" in done.stderr
    [app] = [user for user in json.loads(file.read_bytes())["users"] if user["name"] == "app"]
    assert app["password_hash"] == ""
    assert report(server, str(file))["changes"] == 0
    ctl(server, "set_permissions", "app", "", "", "")
    assert can_log_in(server, "app", "secret")


def test_definitions_of_the_first_start_are_there_for_the_first_client_and_then_ignored(
    start_server: StartServer, tmp_path: Path
) -> None:
    file = tmp_path / "first.json"
    content = json.loads(FULL.read_bytes())
    content["users"] = [user for user in content["users"] if user["name"] != "guest"]
    content["permissions"] = [one for one in content["permissions"] if one["user"] != "guest"]
    file.write_text(json.dumps(content))
    server = start_server(environment={"HUTCH_DEFINITIONS__FILE": str(file)})

    assert {user["name"] for user in ctl(server, "list_users")} == {"app", "nopass", "old"}
    assert len(ctl(server, "list_streams")) == 7
    ctl(server, "delete_stream", "-p", "orders", "log")
    server.terminate()
    file.write_text("no longer JSON")
    server.start()

    assert len(ctl(server, "list_streams")) == 6
    assert "definitions file is ignored" in server.stderr


def test_wrong_definitions_stop_the_first_start_which_can_be_tried_again(
    start_server: StartServer, tmp_path: Path
) -> None:
    file = tmp_path / "first.json"
    environment = {"HUTCH_DEFINITIONS__FILE": str(file)}
    content = json.loads(FULL.read_bytes())
    content["bindings"][0]["vhost"] = "nowhere"
    data = tmp_path / "data"
    for wrong, words in (("{", "is not JSON"), (json.dumps(content), "'nowhere'")):
        file.write_text(wrong)
        done = run_serve(data, "--port", "0", environment=environment)
        assert done.returncode == 2
        assert words in done.stderr
        assert "first.json" in done.stderr

    file.write_bytes(FULL.read_bytes())
    server = start_server(data=data, environment=environment)

    assert len(ctl(server, "list_vhosts")) == 3


def waits_until(is_true: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.timeout(120)
def test_an_import_whose_server_is_killed_is_finished_by_the_next(
    server: HutchServer, tmp_path: Path
) -> None:
    file = tmp_path / "many.json"
    file.write_text(json.dumps(many(4_000)))
    for delay in (0.3, 0.6, 1.2):
        running = subprocess.Popen(
            [sys.executable, "-m", "gateway", "import", str(file), "--data", str(server.data_dir)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=server_environment(),
        )
        time.sleep(delay)
        server.kill()
        _, words = running.communicate(timeout=COMMAND_SECONDS)
        assert running.returncode in (0, 69), words
        server.start()

    last = report(server, str(file))

    assert {row["outcome"] for row in last["objects"]} == {"imported"}
    assert len(ctl(server, "list_streams")) == 1_000
    assert len(ctl(server, "list_users")) == 1_001
    assert report(server, str(file))["changes"] == 0


def many(count: int, pad: str = "") -> dict[str, Any]:
    """Definitions of so many objects."""
    each = count // 4
    numbers = range(each)
    return {
        "vhosts": [{"name": "/"}],
        "users": [
            {"name": f"user-{number}", "password_hash": "", "tags": [], "pad": pad}
            for number in numbers
        ],
        "permissions": [
            {"user": f"user-{number}", "vhost": "/", "configure": "", "write": ".*", "read": "^a"}
            for number in numbers
        ],
        "queues": [
            {
                "name": f"stream-{number}",
                "vhost": "/",
                "type": "stream",
                "durable": True,
                "arguments": {"x-queue-type": "stream"},
                "pad": pad,
            }
            for number in numbers
        ],
        "exchanges": [{"name": "events", "vhost": "/", "type": "topic"}],
        "bindings": [
            {
                "source": "events",
                "vhost": "/",
                "destination": f"stream-{number}",
                "destination_type": "queue",
                "routing_key": f"key.{number}",
            }
            for number in numbers
        ],
    }


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_fifty_megabytes_of_a_hundred_thousand_objects_take_less_than_a_minute(
    server: HutchServer, tmp_path: Path
) -> None:
    file = tmp_path / "large.json"
    file.write_text(json.dumps(many(100_000, "x" * 800)))
    assert file.stat().st_size > 48_000_000
    before = server.rss_bytes()
    started = time.monotonic()

    result = report(server, str(file))

    took = time.monotonic() - started
    assert took < 60
    assert result["changes"] > 99_990
    assert server.rss_bytes() - before < 1_500_000_000
    with Client.opened(*server.endpoint) as client:  # it serves clients as before
        assert client.code_of("delete_stream", m.DeleteStream("none")) == 2
