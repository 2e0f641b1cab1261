"""RabbitMQ's definitions in and out of a real server process."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compat.bench.usage import cpu_seconds
from gateway.broker.access.passwords import Algorithm, PasswordHash
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.client import Client, Refused
from tests.http_client import eventually
from tests.integration.administrator import (
    FULL,
    IMPATIENT,
    ONE_HOST,
    can_log_in,
    ctl,
    hutch,
    many,
    refusal,
    report,
    run_here,
)
from tests.integration.conftest import StartServer
from tests.integration.costs import amount
from tests.integration.server import HutchServer, run_serve, server_environment
from tests.waiting import HANG_S


@pytest.fixture(autouse=True)
def no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("HUTCH_"):
            monkeypatch.delenv(name)


def test_a_real_export_is_imported_once_and_given_back(server: HutchServer) -> None:
    dry = report(server, str(FULL), "--dry-run")
    assert len(ctl(server, "list_users")) == 1
    first = report(server, str(FULL))
    again = report(server, str(FULL))
    table = hutch(server.data_dir, "ctl", "list_users").stdout.decode()

    assert "administrator" in table
    assert dry["objects"] == first["objects"]
    assert dry["changes"] == first["changes"] == 33
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
    limits = [one for one in theirs["parameters"] if one["component"] == "operator_policy"]
    assert [one for one in back["parameters"] if one["component"] == "operator_policy"] == limits
    assert report(server, "-", stdin=exported)["changes"] == 0
    server.restart()
    assert report(server, str(FULL))["changes"] == 1  # the exchange that is not durable


def test_the_report_is_a_table_for_people(server: HutchServer) -> None:
    text = hutch(server.data_dir, "import", str(FULL), "--dry-run").stdout.decode()

    assert "skipped" in text
    assert "is a classic queue, not a stream" in text
    assert "Nothing was changed" in text
    lines = [line.split("  ")[0] for line in text.splitlines()[1:] if "  " in line]
    assert set(lines) == {"would import", "would adapt", "would skip"}
    assert "\nwould be " in text


def test_one_virtual_host_goes_where_it_is_sent(server: HutchServer) -> None:
    hutch(server.data_dir, "import", str(ONE_HOST), "--vhost", "copy")

    assert {stream["virtual_host"] for stream in ctl(server, "list_streams")} == {"copy"}
    one = json.loads(hutch(server.data_dir, "export", "--vhost", "copy").stdout)
    assert one["original_vhost_name"] == "copy"
    code, words = refusal(server, "export", "--vhost", "nowhere")
    assert (code, words) == (1, "hutch: there is no virtual host 'nowhere'\n")


def test_what_would_help_is_named_where_one_virtual_host_is_meant(
    server: HutchServer, tmp_path: Path
) -> None:
    content = json.loads(ONE_HOST.read_bytes())
    del content["original_vhost_name"]
    file = tmp_path / "one.json"
    file.write_text(json.dumps(content))

    assert "say which: name it, by --vhost" in refusal(server, "import", str(file))[1]
    assert "import it without --vhost" in refusal(server, "import", str(FULL), "--vhost", "x")[1]
    for flags in ((), ("--vhost", "x")):
        code, words = refusal(server, "import", "-", *flags)
        assert (code, words) == (2, "hutch: - is empty\n")


def test_a_file_with_a_fault_changes_nothing_and_all_faults_are_told(
    server: HutchServer, tmp_path: Path
) -> None:
    content = json.loads(FULL.read_bytes())
    content["users"][1]["password_hash"] = "?"
    content["permissions"][0]["user"] = "nobody"
    content["queues"][0]["arguments"]["x-max-length-bytes"] = "many"
    content["users"][2] = {"name": "clear", "password": "secret", "tags": ""}
    content["policies"][0]["vhost"] = "nowhere"
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(content))

    code, words = refusal(server, "import", str(file))

    assert code == 1
    assert "password_hash is not base64" in words
    assert "x-max-length-bytes" in words
    assert "password: never in clear" in words
    assert "there is no virtual host 'nowhere'" in words
    assert "there is no user 'nobody'" in words
    assert words.count("there is no user") == 1
    assert {line.split(": ")[1] for line in words.splitlines()} == {str(file)}
    assert len(ctl(server, "list_users")) == 1
    assert len(ctl(server, "list_vhosts")) == 1


def test_names_that_are_not_utf8_are_left_out_of_an_export_and_can_be_deleted(
    server: HutchServer,
) -> None:
    client = Client.opened(*server.endpoint)
    client.create("a\udcffb")
    client.create("aged", {"max-age": "a\udcff"})
    client.create("whole")
    client.request(
        "create_super_stream",
        m.CreateSuperStream("parts", ("parts-0", "parts-1"), ("\udcfe", "k"), {}),
    )
    client.disconnect()

    done = hutch(server.data_dir, "export")

    warnings = done.stderr.decode().splitlines()
    assert [line.partition(" is left out")[0] for line in warnings[-3:]] == [
        "hutch: warning: stream 'aged' in virtual host '/'",
        r"hutch: warning: stream 'a\udcffb' in virtual host '/'",
        "hutch: warning: binding from 'parts' to 'parts-0' in virtual host '/'",
    ]
    assert {queue["name"] for queue in json.loads(done.stdout)["queues"]} == {
        "whole",
        "parts-0",
        "parts-1",
    }
    assert report(server, "-", stdin=done.stdout)["changes"] == 0
    assert r"a\udcffb" in hutch(server.data_dir, "ctl", "list_streams").stdout.decode()
    hutch(server.data_dir, "ctl", "delete_stream", os.fsdecode(b"a\xffb"))
    hutch(server.data_dir, "ctl", "delete_super_stream", "parts")
    assert {stream["name"] for stream in ctl(server, "list_streams")} == {"aged", "whole"}


def test_numbers_of_any_size_come_back_from_an_export(server: HutchServer, tmp_path: Path) -> None:
    client = Client.opened(*server.endpoint)
    client.create("large", {"max-length-bytes": "1" + "0" * 20})
    client.create("larger", {"max-length-bytes": "9" * 900})
    client.disconnect()
    ctl(server, "set_user_limits", "guest", f"max-connections={10**23}")
    ctl(server, "set_vhost_limits", "/", f"max-queues={10**23}")
    ctl(server, "set_policy", "p", "^x", json.dumps({"max-length-bytes": 10**30}))
    exported = hutch(server.data_dir, "export").stdout
    for name in ("large", "larger"):
        ctl(server, "delete_stream", name)
    ctl(server, "clear_policy", "p")
    file = tmp_path / "back.json"
    file.write_bytes(exported)

    assert report(server, str(file))["changes"] == 3
    assert hutch(server.data_dir, "export").stdout == exported


def test_names_cannot_forge_lines_and_no_secret_is_in_the_logs_or_on_the_terminal(
    start_server: StartServer, tmp_path: Path
) -> None:
    secrets = [f"seeded-secret-{number:02}" for number in range(20)]
    server = start_server("--log-level", "debug", environment=IMPATIENT)
    evil = "\r\n2026-01-01T00:00:00.000Z CRITICAL forged \x1b[2J\u202e\u2028"
    for number, secret in enumerate(secrets):
        algorithm = ("argon2id", "sha256", "sha512", "md5")[number % 4]
        user = f"user-{number}{evil}"
        place = ("--data", str(server.data_dir))
        asked = ("ctl", "add_user", user, "--password-hash", algorithm)
        assert run_here(*asked, *place, stdin=secret.encode()) == (0, "", "")
    content = many(8)
    for section in ("users", "queues", "exchanges"):
        for entry in content[section]:
            entry["name"] += evil
    content["permissions"] = content["bindings"] = []
    hashes = [
        str(PasswordHash.of(secret, algorithm))
        for secret in secrets
        for algorithm in (Algorithm.SHA256, Algorithm.MD5)
    ]
    content["users"] += [
        {"name": f"hashed-{number}", "password_hash": text} for number, text in enumerate(hashes)
    ]
    file = tmp_path / "evil.json"
    file.write_text(json.dumps(content))
    shown = hutch(server.data_dir, "import", str(file), check=False)
    for command in ("list_users", "list_streams", "list_exchanges"):
        shown.stdout += hutch(server.data_dir, "ctl", command).stdout
    with pytest.raises(Refused):
        Client.opened(*server.endpoint, user=f"nobody{evil}", password=secrets[0])
    server.terminate()

    terminal = (shown.stdout + shown.stderr).decode()
    for text in (server.logs, terminal):
        assert not [secret for secret in (*secrets, *hashes) if secret in text]
        assert "argon2id$" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert not [line for line in text.splitlines() if line.startswith("2026-01-01")]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"users":' + b"[" * 10_000 + b"]" * 10_000 + b"}", ("users", "nested")),
        (
            b'{"vhosts":[{"name":"v","limits":{"max-queues":' + b"9" * 5_000_000 + b"}}]}",
            ("vhosts[0] 'v'", "a number of 5000000 digits"),
        ),
        (
            b'{"vhosts":[{"name":"v"}],"users":[{"name":"u","name":"w","password_hash":""}]}',
            ("users[0] 'w'", "the key 'name' twice"),
        ),
        (b'{"users":[' + b"{}," * 3_000_000 + b"{}]}", ("more than", "objects")),
        (b'{"users":[' + b"0," * 20_000_000 + b"0]}", ("more than", "values")),
        (b'{"vhosts":[],"users":[' + b"0," * 1_000_000 + b"0]}", ("users[0]", "and 999951 more")),
    ],
    ids=["deep", "huge number", "doubled key", "many objects", "many values", "many faults"],
)
def test_hostile_files_are_refused_in_words_while_clients_are_served(
    server: HutchServer, content: bytes, words: tuple[str, ...]
) -> None:
    before = server.rss_bytes()
    with Client.opened(*server.endpoint) as client:
        started = cpu_seconds([server.pid])
        code, said = refusal(server, "import", "-", stdin=content)
        took = cpu_seconds([server.pid]) - started

        assert client.code_of("delete_stream", m.DeleteStream("none")) == 2
    assert code == 1
    assert all(word in said for word in words), said[:2_000]
    assert len(said) < 20_000
    assert took < 60
    assert server.rss_bytes() - before < 100_000_000
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
    server.restart()
    assert "definitions file is ignored" not in server.logs, "it is the one that was taken"
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


def test_a_first_start_that_failed_leaves_the_usual_users_to_one_without_definitions(
    start_server: StartServer, tmp_path: Path
) -> None:
    file, data = tmp_path / "first.json", tmp_path / "data"
    content = {
        "vhosts": [{"name": "/", "limits": {"max-queues": 1}}],
        "users": [{"name": "app", "password_hash": ""}],
        "queues": [
            {"name": name, "vhost": "/", "type": "stream", "durable": True} for name in "ab"
        ],
    }
    file.write_text(json.dumps(content))
    environment = {"HUTCH_DEFINITIONS__FILE": str(file)}
    done = run_serve(data, "--port", "0", environment=environment)
    assert done.returncode == 2

    server = start_server(data=data)

    assert can_log_in(server, "guest", "guest")
    ctl(server, "delete_user", "guest")
    ctl(server, "add_user", "app", stdin=b"secret")
    server.restart()
    assert [user["name"] for user in ctl(server, "list_users")] == ["app"]


def test_a_dry_run_judges_limits_as_the_import_does(server: HutchServer, tmp_path: Path) -> None:
    content = many(24) | {"vhosts": [{"name": "/", "limits": {"max-queues": 3}}]}
    file = tmp_path / "limited.json"
    file.write_text(json.dumps(content))

    for flags in ((), ("--dry-run",)):
        code, words = refusal(server, "import", str(file), *flags)
        assert code == 1
        assert words == (
            f"hutch: {file}: virtual host '/': 6 streams would be in it;"
            " its limit max-queues is 3\n"
        )
    assert ctl(server, "list_streams") == []
    file.write_text("{}")
    assert report(server, str(file))["changes"] == 0


@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_an_import_whose_server_is_killed_or_stopped_is_finished_by_the_next(
    server: HutchServer, tmp_path: Path, end: str
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
        getattr(server, end)()
        _, words = running.communicate(timeout=HANG_S)
        assert running.returncode in (0, 1, 69), words
        server.start()
        # All of it or nothing, before anybody is served.
        streams, users = len(ctl(server, "list_streams")), len(ctl(server, "list_users"))
        assert (streams, users) in ((0, 1), (1_000, 1_001))

    last = report(server, str(file))

    assert {row["outcome"] for row in last["objects"]} == {"imported"}
    assert len(ctl(server, "list_streams")) == 1_000
    assert len(ctl(server, "list_users")) == 1_001
    assert report(server, str(file))["changes"] == 0


def test_an_import_that_was_cut_off_and_cannot_be_finished_is_taken_back(
    server: HutchServer, tmp_path: Path
) -> None:
    content = many(9_600)
    content["vhosts"] = [{"name": "/", "limits": {"max-queues": 2_400}}, {"name": "other"}]
    del content["users"][20:], content["permissions"][20:]
    file = tmp_path / "many.json"
    file.write_text(json.dumps(content))
    before = hutch(server.data_dir, "export").stdout
    running = subprocess.Popen(
        [sys.executable, "-m", "gateway", "import", str(file), "--data", str(server.data_dir)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=server_environment(),
    )
    with Client.opened(*server.endpoint) as client:
        first = m.StreamStats("stream-20")
        assert eventually(lambda: client.code_of("stream_stats", first) == ResponseCode.OK)
        client.create("in-the-way")  # so there is no room for the last one
    server.kill()
    running.communicate(timeout=HANG_S)
    server.start()

    assert "the import that was cut off is taken back" in server.logs
    assert [stream["name"] for stream in ctl(server, "list_streams")] == ["in-the-way"]
    ctl(server, "delete_stream", "in-the-way")
    assert hutch(server.data_dir, "export").stdout == before


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_fifty_megabytes_of_a_hundred_thousand_objects_take_less_than_a_minute(
    server: HutchServer, tmp_path: Path
) -> None:
    objects = amount(100_000, 20_000)
    share = objects / 100_000
    file = tmp_path / "large.json"
    file.write_text(json.dumps(many(objects, "x" * (95_000_000 // objects))))
    assert file.stat().st_size > 48_000_000
    before = server.rss_bytes()
    started = cpu_seconds([server.pid])

    result = report(server, str(file), within_s=5 * HANG_S)

    took = cpu_seconds([server.pid]) - started
    assert took < 60 * share
    assert result["changes"] > objects - 10
    assert server.rss_bytes() - before < 1_500_000_000 * share
    with Client.opened(*server.endpoint) as client:  # it serves clients as before
        assert client.code_of("delete_stream", m.DeleteStream("none")) == 2
