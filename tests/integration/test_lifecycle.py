"""How a server starts, refuses to start, and stops.

Tests of the process itself start it as users do; all others take forks of one that has loaded it.
"""

from __future__ import annotations

import json
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.management.ctl.asking import ServerUnreachable, ask
from hutch.stream.offsets import FIRST
from tests.client import Client, PeerGone, Refused
from tests.integration.conftest import StartServer
from tests.integration.load import WINDOW, Publishing, last_id, record_of, records_of
from tests.integration.server import (
    HutchServer,
    ServerDidNotStart,
    run_serve,
    run_to_its_end,
    serve_command,
    server_environment,
)
from tests.waiting import HANG_S, wait_until

as_typed = pytest.mark.parametrize("is_typed", [True], ids=["typed"])


@as_typed
def test_the_ready_line_is_printed_once_and_names_where_clients_connect(
    server: HutchServer,
) -> None:
    lines = [line for line in server.stdout.splitlines() if line.startswith("hutch ready")]
    assert len(lines) == 1
    assert f"127.0.0.1:{server.port}" in lines[0]
    with Client.opened(*server.endpoint) as client:
        assert client.open_properties == {
            "advertised_host": "localhost",
            "advertised_port": str(server.port),
        }


def test_the_advertised_address_is_the_one_that_was_set(start_server: StartServer) -> None:
    server = start_server("--advertised-host", "streams.example", "--advertised-port", "6000")
    with Client.opened(*server.endpoint) as client:
        assert client.open_properties["advertised_host"] == "streams.example"
        assert client.open_properties["advertised_port"] == "6000"


def test_settings_come_from_file_and_environment_too(
    start_server: StartServer, tmp_path: Path
) -> None:
    file = tmp_path / "hutch.toml"
    file.write_text('[stream]\nadvertised_host = "from-file"\nheartbeat_s = 17\n')
    environment = {"HUTCH_STREAM__ADVERTISED_HOST": "from-environment"}
    server = start_server("--config", str(file), environment=environment)
    with Client.opened(*server.endpoint) as client:
        assert client.open_properties["advertised_host"] == "from-environment"
        assert client.tuned.heartbeat_s == 17


@as_typed
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_stops_at_once_with_exit_code_0(
    server: HutchServer, number: signal.Signals
) -> None:
    with Client.opened(*server.endpoint) as client:
        server.process.send_signal(number)
        assert server.process.wait(HANG_S) == 0
        client.wait_until_gone()


_SERVE_SLOWLY = """
import asyncio, importlib.abc, sys, time
from gateway.__main__ import main

def slowly(*arguments, **options):
    print("under way", flush=True)
    for _ in range(6_000):
        time.sleep(0.1)

async def slowly_too(*arguments, **options):
    print("under way", flush=True)
    await asyncio.sleep(600)

class LoadSlowly(importlib.abc.MetaPathFinder):
    def find_spec(self, name, *_):
        if name == "gateway.cli":
            slowly()

directory, step = sys.argv[1:]
match step:
    case "loading the command line":
        sys.meta_path.insert(0, LoadSlowly())
    case "reading the settings":
        from gateway.settings import sources
        sources.load = slowly
    case "opening the store":
        from store.local.store import LocalStore
        LocalStore.open = slowly
    case "opening the streams":
        from gateway.serving.process import Process
        Process.start = slowly_too
sys.argv = ["hutch", "serve", "--port", "0", "--management-port", "0", "--data", directory]
sys.exit(main())
"""


def test_a_hangup_without_files_to_read_again_changes_nothing(start_server: StartServer) -> None:
    server = start_server("--log-level", "info")
    with Client.opened(*server.endpoint) as client:
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_log("there are no tls files to reload")
        client.create("still-here")
    server.terminate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "step",
    [
        "loading the command line",
        "reading the settings",
        "opening the store",
        "opening the streams",
    ],
)
def test_a_server_that_is_still_opening_stops_at_once_with_exit_code_0(
    tmp_path: Path, number: signal.Signals, step: str
) -> None:
    command = [sys.executable, "-c", _SERVE_SLOWLY, str(tmp_path / "data"), step]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=server_environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert process.stdout.readline() == "under way\n"
            process.send_signal(number)
            assert process.wait(HANG_S) == 0
        finally:
            process.kill()
        assert "Traceback" not in process.stderr.read()


@as_typed
def test_a_second_signal_changes_nothing(server: HutchServer) -> None:
    while server.is_running:
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.001)
    assert server.process.wait(HANG_S) == 0


def test_a_stop_does_not_wait_for_clients_that_never_speak_or_never_read(
    server: HutchServer,
) -> None:
    with Client.opened(*server.endpoint) as client:
        client.create("orders")
        client.declare(1, "orders")
        for first in range(1, 20_000, 1_000):
            client.publish(1, {i: bytes(1_000) for i in range(first, first + 1_000)})
        client.confirmed_ids(20_000)
    with (
        Client(*server.endpoint),
        Client(*server.endpoint) as half,
        Client.opened(*server.endpoint) as stuck,
    ):
        half.send(bytes.fromhex("000000ff 0011"))
        stuck.subscribe(1, "orders", FIRST, credit=1_000)
        # More is on its way than all buffers between them take.
        assert select.select([stuck.socket], [], [], HANG_S)[0]
        server.terminate()


@pytest.mark.parametrize("durability", ["disk", "interval", "os"])
def test_a_stop_under_load_loses_nothing_that_was_confirmed(
    start_server: StartServer, durability: str
) -> None:
    server = start_server("--durability", durability)
    with Client.opened(*server.endpoint) as client:
        client.create("orders")
    publishing = Publishing(server.endpoint, "orders", "w")
    publishing.start()
    wait_until(lambda: len(publishing.confirmed) > 2 * WINDOW)
    server.terminate()
    publishing.finish()
    server.restart()
    with Client.opened(*server.endpoint) as client:
        records = records_of(client, "orders")
        assert records == [record_of(i) for i in range(1, len(records) + 1)]
        assert max(publishing.confirmed) <= len(records) < publishing.next_id
        assert last_id(client, "orders", "w") == len(records)


def test_what_has_arrived_when_the_stop_comes_is_stored_and_confirmed(
    server: HutchServer,
) -> None:
    with Client.opened(*server.endpoint) as client:
        client.create("orders")
        client.declare(1, "orders")
        client.publish(1, {i: record_of(i) for i in range(1, 501)})
        # Answered after the Publish before it, on the same connection: that has arrived.
        assert last_id(client, "orders", "") == 0
        server.process.send_signal(signal.SIGTERM)
        assert sorted(client.confirmed_ids(500)) == list(range(1, 501))
        client.wait_until_gone(HANG_S)
    assert server.process.wait(HANG_S) == 0
    server.restart()
    with Client.opened(*server.endpoint) as client:
        assert records_of(client, "orders") == [record_of(i) for i in range(1, 501)]


def test_a_stopping_server_accepts_nobody(server: HutchServer) -> None:
    server.terminate()
    with pytest.raises(ConnectionError), socket.create_connection(server.endpoint, 1):
        pass


def test_a_second_server_on_the_same_data_is_refused_and_told_who_holds_it(
    server: HutchServer,
) -> None:
    done = run_serve(server.data_dir, "--port", "0")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "hutch ready" not in done.stdout
    line = next(line for line in done.stderr.splitlines() if str(server.pid) in line)
    assert str(server.data_dir) in line
    with Client.opened(*server.endpoint) as client:
        client.create("undisturbed")


def test_a_damaged_catalogue_stops_the_start_instead_of_hiding_the_streams(
    server: HutchServer,
) -> None:
    with Client.opened(*server.endpoint) as client:
        client.create("orders")
    server.terminate()
    (catalogue,) = (
        path
        for path in (server.data_dir / "data").iterdir()
        if b'"generation"' in path.read_bytes()
    )
    sound = catalogue.read_bytes()
    for position in (3, sound.index(b"orders"), sound.index(b'"name"')):
        damaged = bytearray(sound)
        damaged[position] ^= 0x55
        catalogue.write_bytes(damaged)
        done = run_serve(server.data_dir, "--port", "0")
        assert done.returncode == 1
        assert "hutch ready" not in done.stdout
        assert "Traceback" not in done.stderr
        last_line = done.stderr.splitlines()[-1]
        assert str(server.data_dir) in last_line
        assert "damaged" in last_line
    catalogue.write_bytes(sound)
    server.restart()
    with Client.opened(*server.endpoint) as client:
        client.declare(1, "orders")


def test_the_data_is_free_again_after_a_kill(server: HutchServer) -> None:
    server.kill()
    with HutchServer(server.data_dir) as another:
        assert another.is_running


@pytest.mark.parametrize(
    ("arguments", "environment", "named"),
    [
        (["--durability", "banana"], {}, "--durability"),
        (["--port", "99999"], {}, "--port"),
        (["--port", "http"], {}, "--port"),
        (["--interval-ms", "0"], {}, "--interval-ms"),
        (["--advertised-port", "0"], {}, "--advertised-port"),
        (["--config", "/nowhere/hutch.toml"], {}, "/nowhere/hutch.toml"),
        (["--no-such-flag"], {}, "--no-such-flag"),
        (["--data", ""], {}, "--data"),
        (["--advertised-host", ""], {}, "--advertised-host"),
        (["--advertised-host", "a\nb"], {}, "--advertised-host"),
        ([], {"HUTCH_STREAM__ADVERTISED_HOST": " "}, "HUTCH_STREAM__ADVERTISED_HOST"),
        (["--port", "0"], {"HUTCH_STREAM__PORT": "zz"}, "HUTCH_STREAM__PORT"),
        (["--interval-ms", "1_0"], {}, "--interval-ms"),
        (["--interval-ms", " 5"], {}, "--interval-ms"),
        (["--interval-ms", "٣"], {}, "--interval-ms"),
        ([], {"HUTCH_stream__heartbeat_s": "x"}, "HUTCH_stream__heartbeat_s"),
        ([], {"HUTCH_STREAM__FRAME_BYTES_MAX": "lots"}, "HUTCH_STREAM__FRAME_BYTES_MAX"),
        ([], {"HUTCH_STREAM__NO_SUCH_SETTING": "1"}, "HUTCH_STREAM__NO_SUCH_SETTING"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_a_line_that_names_it(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], named: str
) -> None:
    done = run_serve(tmp_path / "data", *arguments, environment=environment)
    assert done.returncode == 2
    assert any(named in line for line in done.stderr.splitlines()), done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists(), "nothing is touched before the settings are right"


@pytest.mark.parametrize(
    ("setting", "file"),
    [
        ("--users", "nowhere.toml"),
        ("--users", "/dev/null"),
        ("HUTCH_USERS__FILE", "/dev/null"),
        ("HUTCH_DEFINITIONS__FILE", "nowhere.json"),
        ("HUTCH_DEFINITIONS__FILE", "/dev/null"),
    ],
)
def test_what_is_wrong_in_a_file_names_the_setting_and_the_file(
    tmp_path: Path, setting: str, file: str
) -> None:
    is_flag = setting.startswith("-")
    done = run_serve(
        tmp_path / "data",
        *((setting, file) if is_flag else ()),
        "--port=0",
        "--management-port=0",
        environment={} if is_flag else {setting: file},
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"hutch: {setting}: {file}: ")


def test_a_variable_in_small_letters_is_somebody_else_s(start_server: StartServer) -> None:
    server = start_server(environment={"hutch_stream__heartbeat_s": "17"})
    with Client.opened(*server.endpoint) as client:
        assert client.tuned.heartbeat_s == 60


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_server_without_standard_descriptors_serves_and_stops_in_good_order(
    tmp_path: Path, closed: str
) -> None:
    command = shlex.join(serve_command(tmp_path / "data", "--port=0", "--management-port=0"))
    process = subprocess.Popen(["sh", "-c", f"exec {command} {closed}"], env=server_environment())

    def serves() -> bool:
        assert process.poll() is None
        try:
            return bool(ask(tmp_path / "data", "list_users", {}))
        except ServerUnreachable:
            return False

    try:
        wait_until(serves)
        process.terminate()
        assert process.wait(HANG_S) == 0
    finally:
        process.kill()
        process.wait(HANG_S)


def test_all_wrong_settings_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "hutch.toml"
    file.write_text('[stream]\nport = "http"\nheartbeats = 5\n[store]\ndurability = "paper"\n')
    done = run_serve(tmp_path / "data", "--config", str(file))
    assert done.returncode == 2
    for setting in ("stream.port", "stream.heartbeats", "store.durability"):
        assert any(setting in line for line in done.stderr.splitlines()), done.stderr


def test_a_taken_port_stops_the_start_with_a_line_that_names_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_serve(tmp_path / "data", "--port", str(port))
    assert done.returncode == 2
    assert any(re.search(rf"\b{port}\b", line) for line in done.stderr.splitlines()), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("directory", ["file", "file/below", "/proc/hutch", "x" * 300])
def test_data_that_cannot_be_kept_there_stops_the_start_with_a_line_that_names_the_setting(
    tmp_path: Path, directory: str
) -> None:
    (tmp_path / "file").write_text("not a directory")
    path = tmp_path / directory
    done = run_serve(path, "--port", "0", "--management-port", "0")
    assert done.returncode == 2
    assert f"hutch: --data: cannot keep data in {path}: " in done.stderr
    assert "Traceback" not in done.stderr


def test_the_host_is_blamed_where_it_is_no_address_of_this_machine_and_named_as_it_was_written(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    file = tmp_path / "hutch.toml"
    file.write_text('[management]\nhost = "nosuch.invalid"\n')
    ports = ("--port", "0", "--management-port", "0")
    label = "a" * 64
    variable = {"HUTCH_STREAM__HOST": "192.0.2.1"}
    for done, named in (
        (run_serve(data, *ports, "--host", label), f"--host: cannot listen on {label}:0: "),
        (
            run_serve(data, *ports, environment=variable),
            "HUTCH_STREAM__HOST: cannot listen on 192.0.2.1:0: ",
        ),
        (
            run_serve(data, *ports, "--config", str(file)),
            f"{file}: management.host: cannot listen on nosuch.invalid:0: ",
        ),
    ):
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].startswith(f"hutch: {named}")
        assert "Traceback" not in done.stderr


def test_a_taken_port_is_named_as_it_was_written(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "gateway", "serve", "--data", str(tmp_path / "data")]
        variables = {"HUTCH_STREAM__PORT": port, "HUTCH_MANAGEMENT__PORT": "0"}
        done = run_to_its_end(command, variables)
    assert done.returncode == 2
    named = f"hutch: HUTCH_STREAM__PORT: cannot listen on 127.0.0.1:{port}: "
    assert named in done.stderr.decode()


def test_the_harness_tells_why_a_server_did_not_start(tmp_path: Path) -> None:
    with pytest.raises(ServerDidNotStart, match="--durability") as failure:
        HutchServer(tmp_path / "data", "--durability", "banana")
    assert failure.value.exit_code == 2


def test_logs_are_json_where_that_is_asked_for(start_server: StartServer) -> None:
    server = start_server("--log-format", "json")
    with Client.opened(*server.endpoint) as client:
        client.create("orders")
    server.terminate()
    lines = server.stderr.splitlines()
    assert lines
    assert all(isinstance(json.loads(line), dict) for line in lines)


def test_guest_is_let_in_from_this_machine_and_nobody_else_is(server: HutchServer) -> None:
    started = time.monotonic()
    with Client(*server.endpoint) as client, pytest.raises((Refused, PeerGone)):
        client.handshake(user="guest", password="wrong")
    assert time.monotonic() - started >= 2.5, "guessing passwords is slow"
