"""The command line of `hutch ctl`: what it takes, asks and shows, without a server."""

import io
import shlex
from pathlib import Path

import pytest

from gateway import cli
from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.management.ctl.asking import ServerRefused, ServerUnreachable
from gateway.management.ctl.ctl import COMMANDS, EXIT_FAILED, EXIT_UNREACHABLE, EXIT_USAGE
from gateway.management.ctl.streams import milliseconds
from tests.unit.gateway.management.ctl.conftest import Server


def ctl_help(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        cli.main(["ctl", *arguments, "--help"])
    assert stop.value.code == 0
    return capsys.readouterr().out


def test_the_help_lists_every_command_with_its_summary(capsys: pytest.CaptureFixture[str]) -> None:
    text = ctl_help(capsys)

    for command in COMMANDS.values():
        assert f"  {command.name}" in text
        assert command.summary in text


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_help_of_a_command_describes_all_it_takes(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = COMMANDS[name]

    text = ctl_help(capsys, name)

    assert command.summary[1:] in text
    assert "--data DIR" in text
    assert "--json" in text
    assert all(line in text for line in command.examples)
    assert all(argument.options.get("help") for argument in command.arguments)


@pytest.mark.parametrize(
    "line", [line for command in COMMANDS.values() for line in command.examples]
)
def test_every_example_works_as_it_stands(
    line: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    server.answer = {"closed": 0, "first_offset": 0, "partitions": []}
    server.answers = {
        "list_connections": [],
        "list_group_consumers": [],
        **{name: [] for name in ("list_consumers", "list_publishers", "list_groups")},
        **{name: [] for name in ("list_scopes", "list_scope_streams", "list_reader_groups")},
        "list_tracking": {"writers": {}, "offsets": {}},
    }
    arguments = shlex.split(line.partition(" < ")[0])

    assert cli.main(arguments[1:]) == 0
    assert server.asked


def test_names_may_be_written_with_dashes(server: Server) -> None:
    assert cli.main(["ctl", "delete-user", "app"]) == 0

    assert server.asked == [(Path("data"), "delete_user", {"name": "app"})]


def test_the_server_is_named_before_or_behind_the_command_or_by_the_settings(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "hutch.toml"
    config.write_text('[store]\ndata_directory = "/from/config"\n')
    server.answer = []

    cli.main(["ctl", "list_users", "--data", "/behind"])
    cli.main(["ctl", "--data", "/before", "list_users"])
    cli.main(["ctl", "list_users", "--config", str(config)])
    monkeypatch.setenv("HUTCH_STORE__DATA_DIRECTORY", "/from/environment")
    cli.main(["ctl", "list_users"])

    assert [str(directory) for directory, _, _ in server.asked] == [
        "/behind",
        "/before",
        "/from/config",
        "/from/environment",
    ]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ServerRefused("no way", "not_found"), EXIT_FAILED),
        (ServerUnreachable("nobody"), EXIT_UNREACHABLE),
    ],
)
def test_what_goes_wrong_is_one_line_and_a_code(
    server: Server, error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = error

    assert cli.main(["ctl", "list_users"]) == code
    assert capsys.readouterr().err == f"hutch: {error}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["set_user_limits", "app", "max-connections"], "is not name=number"),
        (["set_user_limits", "app", "max-connections=x"], "is not name=number"),
        (["add_stream", "s", "-a", "max-age"], "is not name=value"),
        (["add_stream", "s", "-a", "max-agee=1h"], "no argument 'max-agee', but max-length-bytes,"),
        (["add_stream", "s", "-a", "x-queue-type=stream"], "no argument 'x-queue-type'"),
        (["add_stream", "s", "-a", "max-age=1h", "-a", "x-max-age=2h"], "max-age is given twice"),
        (["add_super_stream", "s", "--partitions", "1", "-a", "age=1h"], "no argument 'age'"),
        (["add_super_stream", "s", "--binding-keys", "a,,b"], "one of the keys is empty"),
        (["add_super_stream", "s", "--binding-keys", "a,"], "one of the keys is empty"),
        (["add_super_stream", "s", "--binding-keys", ","], "either --partitions or"),
        (["add_stream", "s", "-a", "max-age=foo"], "max-age is 'foo', which is no age"),
        (["add_stream", "s", "-a", "max-age=5"], "max-age is '5', which is no age"),
        (["add_stream", "s", "-a", "max-age=1x"], "max-age is '1x', which is no age"),
        (["add_stream", "s", "-a", "x-max-age="], "max-age is '', which is no age"),
        (["add_stream", "s", "-a", "max-age=0s"], "max-age is '0s', which is no age above 0"),
        (["add_super_stream", "s", "--partitions", "1", "-a", "max-age=-1D"], "is no age"),
        (["add_user", "app", "x", "--no-password"], "either a password or --no-password"),
        (["add_user", "app", ""], "an empty password"),
        (["list_stream_connections", "conn_name,x"], "no column 'x', but node, conn_name,"),
        (["truncate_stream", "s"], "either --before-offset or --before-time"),
        (["truncate_stream", "s", "--before-time", "soon"], "neither a time"),
        (["truncate_stream", "s", "--before-time", "2026-11-21"], "time zone"),
        (["list_users", "--config", "/no/such/file"], "cannot read"),
    ],
)
def test_wrong_use_has_code_2_and_asks_nobody(
    arguments: list[str], words: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["ctl", *arguments]) == EXIT_USAGE

    assert words in capsys.readouterr().err
    assert not server.asked


def test_sinks_are_listed_with_the_time_of_their_last_use(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = [
        {"virtual_host": "/", "name": "q\n", "user": "app", "last_batch": 7, "used_ms": 86_400_999}
    ]

    cli.main(["ctl", "list_sinks", "-p", "/"])

    assert capsys.readouterr().out == (
        "virtual host  name   user  last batch  last use\n"
        "/             q\\x0a  app   7           1970-01-02T00:00:00Z\n"
    )
    assert server.asked == [(Path("data"), "list_sinks", {"virtual_host": "/"})]


def test_the_arguments_of_a_stream_may_be_written_as_those_of_a_queue(server: Server) -> None:
    cli.main(["ctl", "add_stream", "s", "-a", "x-max-age=1h", "-a", "max-length-bytes=5"])

    [(_, _, asked)] = server.asked
    assert asked["arguments"] == {"max-age": "1h", "max-length-bytes": "5"}


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["ctl", "list_users", "x"], "hutch ctl list_users"),
        (["ctl", "delete-user", "app", "x"], "hutch ctl delete-user"),
        (["config", "x"], "hutch config"),
    ],
)
def test_one_argument_too_many_is_answered_with_the_usage_of_its_command(
    arguments: list[str], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)

    assert ended.value.code == EXIT_USAGE
    printed = capsys.readouterr().err
    assert printed.startswith(f"usage: {command} ")
    assert printed.endswith(f"{command}: error: unrecognized arguments: x\n")


def test_a_password_is_read_and_only_its_hash_is_sent(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("seeded secret\nnext line"))

    assert cli.main(["ctl", "add_user", "app", "--tags", "a,b"]) == 0

    [(_, _, arguments)] = server.asked
    assert arguments["hashing_algorithm"] == "hutch_password_hashing_argon2id"
    assert arguments["password_hash"].startswith("$argon2id$")
    assert arguments["tags"] == ["a", "b"]
    assert "seeded secret" not in str(server.asked)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", ["add_user", "change_password"])
def test_a_password_may_be_an_argument_with_a_warning(
    command: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["ctl", command, "app", "seeded secret"]) == 0

    [(_, name, arguments)] = server.asked
    assert (name, arguments["name"]) == (command, "app")
    hashed = PasswordHash.parse(arguments["password_hash"], Algorithm.ARGON2ID)
    assert hashed.matches(b"seeded secret")
    assert "seeded secret" not in str(server.asked)
    said = capsys.readouterr().err
    assert said.startswith("hutch: warning: everybody on this machine can see")
    assert "seeded" not in said


def test_permissions_that_are_not_there_are_cleared_already(server: Server) -> None:
    server.answers = {"list_permissions": []}

    assert cli.main(["ctl", "clear_permissions", "app"]) == 0
    assert [name for _, name, _ in server.asked] == ["list_permissions"]

    server.answers = {"list_permissions": [{"user": "app"}]}
    assert cli.main(["ctl", "clear_permissions", "app"]) == 0
    place = {"user": "app", "virtual_host": "/"}
    assert server.asked[-1] == (Path("data"), "clear_permissions", place)


def test_connections_are_listed_as_by_rabbitmqs_tools(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = [
        {
            "name": "1.2.3.4:5 -> 6.7.8.9:10",
            "number": 7,
            "user": "app\t",
            "virtual_host": "/",
            "client_properties": {"connection_name": 'a"\n\x1b', "empty": ""},
        }
    ]

    asked = ("list_stream_connections", "-q", "--formatter", "table")
    cli.main(["ctl", *asked, "conn_name,pid,client_properties", "user"])
    cli.main(["ctl", "list_stream_connections", "--formatter", "json", "pid"])

    text, as_json = capsys.readouterr().out.split("\n[", 1)
    assert text.splitlines() == [
        "conn_name\tpid\tclient_properties\tuser",
        "1.2.3.4:5 -> 6.7.8.9:10\t<rabbit@localhost.1.7.0>\t"
        r'[{"connection_name","a\"\n\u001b"}]' + "\tapp\\x09",
    ]
    assert '"pid": "<rabbit@localhost.1.7.0>"' in as_json


def test_a_group_and_a_stream_are_shown_as_by_rabbitmqs_tools(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers = {
        "list_group_consumers": [
            {"subscription_id": 0, "connection_name": "a -> b", "is_active": True}
        ],
        "status_of_stream": {"offset": 4, "readers": 1},
    }
    group = ("list_stream_group_consumers", "--stream", "s", "--reference", "r")

    cli.main(["ctl", *group, "subscription_id,state"])
    cli.main(["ctl", "stream_status", "s"])

    assert capsys.readouterr().out.splitlines() == [
        "subscription_id\tstate",
        '0\t"active (connected)"',
        "role\toffset\treaders",
        "writer\t4\t1",
    ]
    wanted = {"virtual_host": "/", "stream": "s", "reference": "r"}
    assert server.asked[0][1:] == ("list_group_consumers", wanted)


def test_what_a_stream_keeps_of_its_clients_is_shown_as_by_rabbitmqs_tools(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers = {"list_tracking": {"writers": {"w": 7}, "offsets": {"app": 41}}}

    cli.main(["ctl", "stream_status", "-p", "v", "s", "--tracking"])

    assert capsys.readouterr().out.splitlines() == [
        "type\treference\tvalue",
        "sequence\tw\t7",
        "offset\tapp\t41",
    ]
    assert server.asked[0][1:] == ("list_tracking", {"virtual_host": "v", "name": "s"})


def test_a_password_of_rabbitmqs_form_or_none_can_be_asked_for(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))

    cli.main(["ctl", "change_password", "app", "--password-hash", "sha256"])
    cli.main(["ctl", "change_password", "app", "--no-password"])

    assert server.asked[0][2]["hashing_algorithm"] == "rabbit_password_hashing_sha256"
    assert server.asked[1][2] == {"name": "app", "password_hash": ""}


@pytest.mark.parametrize(
    ("typed", "words"),
    [(["a", "b"], "differ"), (["", ""], "empty"), (["\udcff", "\udcff"], "not UTF-8")],
)
def test_a_password_is_typed_twice_the_same(
    typed: list[str],
    words: str,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    answers = iter(typed)
    monkeypatch.setattr("getpass.getpass", lambda _prompt: next(answers))

    assert cli.main(["ctl", "add_user", "app"]) == EXIT_USAGE

    assert words in capsys.readouterr().err
    assert not server.asked


def test_answers_are_shown_as_a_table_or_as_json(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = [
        {"name": "a\x1b[2J", "tags": ["x", "y"], "password": "none", "limits": {"m": 1}},
    ]

    cli.main(["ctl", "list_users"])
    cli.main(["ctl", "list_users", "--json"])

    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert text.splitlines()[1].split() == ["a\\x1b[2J", "x,", "y", "none", "m=1"]
    assert '"name": "a\\u001b[2J"' in text


def test_a_time_is_a_moment_or_an_age() -> None:
    assert milliseconds("2026-11-21T13:00:00+01:00") == milliseconds("2026-11-21T12:00:00Z")
    assert milliseconds("1970-01-02T00:00:00Z") == 86_400_000
    assert 6_900 < milliseconds("0s") - milliseconds("7s") <= 7_000


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["list_strems"], "no command 'list_strems'; did you mean list_streams"),
        (["list-vhost"], "no command 'list-vhost'; did you mean list_vhosts"),
        (["--data", "list_users", "ad_user", "x"], "no command 'ad_user'; did you mean add_user"),
        (["0"], "no command '0'; `hutch ctl --help` lists them"),
    ],
)
def test_a_command_that_is_none_is_answered_with_those_that_may_be_meant(
    words: list[str], told: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["ctl", *words])

    assert stop.value.code == EXIT_USAGE
    assert told in capsys.readouterr().err
    assert not server.asked


def test_the_status_says_what_runs_where_and_on_what_disk(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = {
        "listeners": [],
        "is_stopped": False,
        "is_draining": False,
        "alarms": ["disk"],
        "ended": ["projection 'a': no\ngood"],
        "connections": 2,
        "product_name": "Hutch",
        "product_version": "0.1.0",
        "uptime": 93_784,
        "data_directory": "/var/lib/hutch",
        "disk_free": 1_500_000_000,
        "disk_total": 64_000_000_000,
        "is_disk_full": True,
        "members": [],
    }

    cli.main(["ctl", "status"])

    assert capsys.readouterr().out.splitlines()[1:] == [
        "alarms       disk",
        "ended        projection 'a': no\\x0agood",
        "connections  2",
        "version      Hutch 0.1.0",
        "uptime       1 day, 2:03:04",
        "data         /var/lib/hutch",
        "disk         1.50 GB free of 64.00 GB; publishes find no space",
    ]
