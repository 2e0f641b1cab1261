"""RabbitMQ's tools, as client suites call them, asked about a real server process."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.integration.administrator import can_log_in, ctl, run_here
from tests.integration.server import HutchServer, server_environment
from tests.integration.tools import (
    FAILED,
    NO_SUCH_THING,
    NO_SUCH_USER,
    REFUSED,
    UNREACHABLE,
    USAGE,
    run,
    said,
    started,
)
from tests.waiting import HANG_S

ADMINISTRATION = Path(__file__).parents[2] / "docs" / "administration.md"
LISTING = ("rabbitmqctl", "list_stream_connections", "-q", "--formatter", "table")
FORGED = 'x\n127.0.0.1:1 -> 127.0.0.1:2\t<rabbit@localhost.1.5.0>\t[{"a","b"}]\x1b[31m\x01\\'


@pytest.fixture
def group(server: HutchServer) -> Iterator[None]:
    """Two single active consumers and another one, and a message."""
    with Client.opened(*server.endpoint) as first, Client.opened(*server.endpoint) as second:
        first.create("s")
        single = {"single-active-consumer": "true", "name": "app"}
        first.subscribe(3, "s", FIRST, properties=single)
        first.answer_consumer_update()
        second.subscribe(4, "s", FIRST, properties=single)
        second.subscribe(5, "s", FIRST)
        second.declare(1, "s", "writer")
        second.publish(1, [(7, b"m")])
        assert second.confirmed_ids(1) == [7]
        yield


def test_what_a_client_says_of_itself_stays_in_its_row(
    server: HutchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = {"connection_name": FORGED, "e": "", 'k"\x1b': "v"}
    monkeypatch.setattr("tests.client.CLIENT_PROPERTIES", properties)
    with Client.opened(*server.endpoint):
        text = said(server, *LISTING, "conn_name,pid,client_properties")

        title, row = text.splitlines()
        assert title.split("\t") == ["conn_name", "pid", "client_properties"]
        _, pid, shown = row.split("\t")
        assert pid.endswith(".1.1.0>")
        assert shown == (
            r'[{"connection_name","x\n127.0.0.1:1 -> 127.0.0.1:2\t<rabbit@localhost.1.5.0>\t'
            r'[{\"a\",\"b\"}]\e[31m\x{1}\\"},{"k\"\e","v"}]'
        )
        assert {character for character in text if not character.isprintable()} == {"\n", "\t"}
        json_text = said(server, *LISTING[:-1], "json", "client_properties")
        assert ["connection_name", "longstr", FORGED] in json.loads(json_text)[0][
            "client_properties"
        ]


def test_users_and_hosts_are_listed_without_a_character_that_moves_anything(
    server: HutchServer,
) -> None:
    ctl(server, "add_user", "a\tb\x1b", "--no-password", "--tags", "x,y")
    ctl(server, "add_vhost", "h\n2")

    users = said(server, "rabbitmqctl", "list_users")
    assert users.splitlines()[:2] == ["Listing users ...", "user\ttags"]
    assert sorted(users.splitlines()[2:]) == ["a\\tb\\e\t[x, y]", "guest\t[administrator]"]
    hosts = said(server, "rabbitmqctl", "list_vhosts", "-s", "name", "tags")
    assert sorted(hosts.splitlines()) == ["/\t[]", "h\\n2\t[]"]
    as_json = json.loads(said(server, "rabbitmqctl", "list_vhosts", "--formatter", "json"))
    assert {"name": "h\n2"} in as_json


def test_killing_who_has_gone_is_done_already(server: HutchServer) -> None:
    gone = 'exit(rabbit_misc:string_to_pid("<rabbit@localhost.1.9999.0>"), kill).'
    assert said(server, "rabbitmqctl", "eval", gone) == "true\n"


def test_what_cannot_be_done_has_rabbitmqs_code_and_words(server: HutchServer) -> None:
    for arguments, code in (
        (("set_policy", "N", "^a", "{x"), REFUSED),
        (("set_policy", "N", "^a", "[1]"), REFUSED),
        (("set_policy", "N", "^a", "[" * 100_000), REFUSED),
        (("set_policy", "N", "^a", '{"max-age": NaN}'), REFUSED),
        (("set_policy", "N", "(", '{"max-age": "1h"}'), REFUSED),
        (("set_policy", "N", "^a", "{}", "--apply-to", "x"), REFUSED),
        (("set_policy", "N", "^a", "{}", "--priority", "x"), USAGE),
        (("set_policy", "N", "^a", "{}", "--priority=1.5"), USAGE),
        (("set_policy", "N", "^a", "{}", "--priority"), USAGE),
        (("set_policy", "N", "^a"), USAGE),
        (("clear_policy", "none"), REFUSED),
        (("add_user", "a", "b", "c"), USAGE),
        (("add_user", "a", "b", "--nonsense"), USAGE),
        (("add_user", "a", "b", "--priority", "1"), USAGE),
        (("add_user", "guest", "x"), FAILED),
        (("add_user", "nopassword"), NO_SUCH_THING),
        (("change_password", "none", "x"), NO_SUCH_USER),
        (("set_permissions", "none", "a", "b", "c"), NO_SUCH_USER),
        (("set_permissions", "guest", "(", "b", "c"), REFUSED),
        (("delete_vhost", "none"), NO_SUCH_THING),
        (("ping", "x"), USAGE),
        (("list_users", "--formatter", "csv"), USAGE),
        (("eval", "halt()."), USAGE),
        (("eval", f'exit(rabbit_misc:string_to_pid("<a.1.{"9" * 5000}.0>"), kill).'), USAGE),
        (("nonsense",), USAGE),
        ((), USAGE),
    ):
        done = run(server, "rabbitmqctl", *arguments)
        assert (done.returncode, done.stdout) == (code, ""), (arguments[:4], done.stderr[:500])
        assert done.stderr.startswith("Error: ")
        assert "Traceback" not in done.stderr


def test_what_is_wanted_already_is_no_error(server: HutchServer) -> None:
    for arguments in (
        ("clear_permissions", "none"),
        ("clear_permissions", "-p", "none", "guest"),
        ("delete_user", "none"),
        ("add_vhost", "/"),
    ):
        said(server, "rabbitmqctl", *arguments)


def test_words_that_look_like_options_are_names_behind_two_dashes(server: HutchServer) -> None:
    said(server, "rabbitmqctl", "add_user", "--", "zz1", "-q")
    said(server, "rabbitmqctl", "add_user", "zz2", "--", "-s")
    assert said(server, "rabbitmqctl", "-q", "set_permissions", "zz1", ".*", "-1", ".*") == ""

    assert {user["name"] for user in ctl(server, "list_users")} == {"guest", "zz1", "zz2"}
    assert can_log_in(server, "zz1", "-q")
    assert run(server, "rabbitmqctl", "add_user", "zz3", "-q").returncode == NO_SUCH_THING


@pytest.mark.usefixtures("group")
def test_a_stream_and_its_group_are_shown_as_rabbitmq_shows_them(server: HutchServer) -> None:
    title, values = said(
        server, "rabbitmq-streams", "stream_status", "-q", "--formatter", "table", "s"
    ).splitlines()
    assert title == (
        "role\tnode\tepoch\toffset\tcommitted_offset\tcommitted_chunk_id\tfirst_offset"
        "\treaders\tsegments"
    )
    assert values == "writer\trabbit@localhost\t1\t0\t0\t0\t0\t2\t1"
    tracking = said(server, "rabbitmq-streams", "stream_status", "s", "--tracking")
    assert tracking.splitlines()[1:] == ["type\treference\tvalue", "sequence\twriter\t7"]

    group = ("list_stream_group_consumers", "-q", "--stream", "s", "--reference", "app")
    columns = ("--formatter", "table", "subscription_id,state")
    assert said(server, "rabbitmq-streams", *group, *columns) == (
        'subscription_id\tstate\n3\t"active (connected)"\n4\t"waiting (connected)"\n'
    )
    title, *rows = said(server, "rabbitmqctl", *group, "--vhost", "/").splitlines()
    assert title == "subscription_id\tconnection_name\tstate"
    assert [" -> " in row for row in rows] == [True, True]


@pytest.mark.usefixtures("group")
def test_the_same_commands_are_those_of_the_server_itself(server: HutchServer) -> None:
    [status] = ctl(server, "stream_status", "s")
    assert (status["committed_offset"], status["readers"]) == (0, 2)
    tracked = ctl(server, "stream_status", "s", "--tracking")
    assert tracked == [{"type": "sequence", "reference": "writer", "value": 7}]
    group = ("list_stream_group_consumers", "--stream", "s", "--reference", "app")
    states = [each["state"] for each in ctl(server, *group, "state")]
    assert states == ["active (connected)", "waiting (connected)"]
    first, second = ctl(server, "list_stream_connections", "pid")
    _, _, number, _ = first["pid"].split(".")
    assert ctl(server, "close_connections", "--number", number) == {"closed": 1}
    assert ctl(server, "list_stream_connections", "pid") == [second]
    ctl(server, "ping")


def test_what_cannot_be_done_to_streams_has_rabbitmqs_code(server: HutchServer) -> None:
    for arguments, code in (
        (("stream_status", "none"), NO_SUCH_THING),
        (("restart_stream", "none"), NO_SUCH_THING),
        (("list_stream_group_consumers", "--stream", "none", "--reference", "r"), REFUSED),
        (("list_stream_group_consumers", "--stream", "s"), USAGE),
        (("list_stream_group_consumers", "--stream", "s", "--reference", "r", "x"), USAGE),
        (("add_super_stream", "s", "--partitions", "x"), USAGE),
        (("add_super_stream", "s", "--partitions", "0"), USAGE),
        (("delete_super_stream", "none"), FAILED),
    ):
        done = run(server, "rabbitmq-streams", *arguments)
        assert (done.returncode, done.stdout) == (code, ""), (arguments, done.stderr)
        assert "Traceback" not in done.stderr


def test_a_super_stream_is_made_and_deleted(server: HutchServer) -> None:
    assert said(server, "rabbitmq-streams", "-q", "add_super_stream", "o", "--partitions", "2")
    assert len(ctl(server, "list_streams")) == 2
    said(server, "rabbitmq-streams", "delete_super_stream", "o")
    assert ctl(server, "list_streams") == []


def test_the_help_lists_commands_and_what_each_takes(server: HutchServer) -> None:
    text = said(server, "rabbitmqctl", "--help")
    assert "list_stream_group_consumers --stream S" in text
    assert "restart_stream" not in text
    assert "restart_stream" in said(server, "rabbitmq-streams", "help")
    one = said(server, "rabbitmqctl", "add_user", "--help")
    assert "add_user USER [PASSWORD]" in one
    assert "delete_user" not in one


def test_a_ping_is_answered_by_a_server_that_is_there(server: HutchServer) -> None:
    assert said(server, "rabbitmqctl", "-q", "ping") == "Ping succeeded\n"
    server.terminate()
    assert run(server, "rabbitmqctl", "ping").returncode == UNREACHABLE


def test_a_listing_that_nobody_reads_ends_quietly(server: HutchServer) -> None:
    with started(server, "rabbitmqctl", "list_users") as process:
        assert process.stdout is not None
        process.stdout.close()
        _, complaint = process.communicate(timeout=HANG_S)
    assert (process.returncode, complaint) == (141, "")
    with open("/dev/full", "w") as full:  # noqa: PTH123  # a device
        done = run(server, "rabbitmqctl", "list_users", stdout=full)
    assert (done.returncode, done.stderr) == (
        FAILED,
        "Error: cannot write: No space left on device\n",
    )


def test_what_the_servers_own_commands_print_may_be_read_by_nobody(server: HutchServer) -> None:
    for words in (("ctl", "list_users"), ("ctl", "list_users", "--json"), ("export",)):
        command = [sys.executable, "-m", "gateway", *words, "--data", str(server.data_dir)]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=server_environment(),
        )
        with process:
            assert process.stdout is not None
            process.stdout.close()
            _, complaint = process.communicate(timeout=HANG_S)
        assert (process.returncode, complaint) == (141, ""), words

        with open("/dev/full", "w") as full:  # noqa: PTH123  # a device
            done = subprocess.run(
                command,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=HANG_S,
                env=server_environment(),
                check=False,
            )
        assert done.returncode in {1, 2}, words
        assert done.stderr.startswith("hutch: cannot write"), words
        assert done.stderr.count("\n") == 1, done.stderr


def test_the_page_on_administration_runs_as_printed(
    server: HutchServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("password-file").write_text("secret\n")
    lines = re.findall(r"^    (hutch ctl .*)$", ADMINISTRATION.read_text(), re.MULTILINE)
    commands = [re.split(r"   +", line)[0] for line in lines if "$'" not in line]
    assert len(commands) > 20
    with ExitStack() as clients:
        for command in commands:
            words, _, file = command.partition(" < ")
            stdin = Path(file or "password-file").read_bytes()
            code, _, complaint = run_here(
                *shlex.split(words)[1:], "--data", str(server.data_dir), stdin=stdin
            )
            assert (code, complaint) == (0, ""), command
            if command.startswith("hutch ctl restart_stream"):  # now connections are not ended
                opened = [clients.enter_context(Client.opened(*server.endpoint)) for _ in range(7)]
                single = {"single-active-consumer": "true", "name": "app"}
                opened[0].subscribe(1, "orders-0", properties=single)
