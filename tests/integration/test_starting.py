"""Which directory a server takes for its data, and what a start that fails leaves there."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from tests.client import Client
from tests.integration.conftest import StartServer
from tests.integration.server import HutchServer, run_serve
from tests.unit.gateway.log.log_rig import LogRig

ANY_PORTS = ("--port", "0", "--management-port", "0")
MUST_EXIST = {"HUTCH_STORE__MUST_EXIST": "true"}


def test_the_log_tells_a_new_store_from_one_that_was_there(start_server: StartServer) -> None:
    server = start_server("--log-level", "info")
    assert f"a new store is begun directory={server.data_dir}" in server.stderr
    server.terminate()

    server.start()

    assert f"store opened directory={server.data_dir}" in server.stderr
    assert "a new store" not in server.stderr


def test_a_directory_with_other_files_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    directory = tmp_path / "etc"
    directory.mkdir()
    (directory / "passwd").write_text("root")

    done = run_serve(directory, *ANY_PORTS)

    assert done.returncode == 2
    assert f"hutch: --data: {directory}: holds other files and is no store" in done.stderr
    assert [path.name for path in directory.iterdir()] == ["passwd"]


def test_the_root_of_a_new_file_system_will_do(start_server: StartServer, tmp_path: Path) -> None:
    (tmp_path / "data" / "lost+found").mkdir(parents=True)

    server = start_server()

    with Client.opened(*server.endpoint) as client:
        client.create("stream")


def test_a_store_is_never_refused_for_what_lies_beside_it(start_server: StartServer) -> None:
    server = start_server()
    with Client.opened(*server.endpoint) as client:
        client.create("stream")
    server.terminate()
    (server.data_dir / "notes.txt").write_text("mine")
    server.environment = MUST_EXIST

    server.start()

    with Client.opened(*server.endpoint) as client:
        client.declare(1, "stream")


@pytest.mark.parametrize("names", [(), ("lost+found",)])
def test_no_store_is_begun_where_one_must_exist(tmp_path: Path, names: tuple[str, ...]) -> None:
    directory = tmp_path / "unmounted"
    for name in names:
        (directory / name).mkdir(parents=True)

    done = run_serve(directory, *ANY_PORTS, environment=MUST_EXIST)

    assert done.returncode == 2
    assert f"hutch: --data: {directory}: there is no store" in done.stderr
    assert directory.exists() is bool(names)
    assert [path.name for path in directory.glob("*")] == list(names)


def failing(folder: Path, case: str) -> dict[str, str]:
    """Return settings with which a first start fails after its store is begun."""
    if case == "no users file":
        return {"HUTCH_USERS__FILE": str(folder / "missing")}
    definitions = folder / "definitions.json"
    permission = {"user": "no", "vhost": "/", "configure": "", "write": "", "read": ""}
    content = {"vhosts": [{"name": "/"}], "users": [], "permissions": [permission]}
    definitions.write_text(json.dumps(content))
    return {"HUTCH_DEFINITIONS__FILE": str(definitions)}


@pytest.mark.parametrize("case", ["no users file", "definitions that name no user"])
@pytest.mark.parametrize("is_there", [False, True])
def test_a_first_start_that_fails_leaves_no_store(
    tmp_path: Path, case: str, *, is_there: bool
) -> None:
    directory = tmp_path / "data"
    if is_there:
        (directory / "lost+found").mkdir(parents=True)

    done = run_serve(directory, *ANY_PORTS, environment=failing(tmp_path, case))

    assert done.returncode == 2
    assert "hutch: HUTCH_" in done.stderr
    assert "not clean" not in done.stderr
    assert directory.exists() is is_there
    assert [path.name for path in directory.glob("*")] == (["lost+found"] if is_there else [])


def test_a_later_start_that_fails_leaves_the_store(
    start_server: StartServer,
) -> None:
    server = start_server()
    with Client.opened(*server.endpoint) as client:
        client.create("stream")
    server.terminate()
    (server.data_dir / "admin.sock").mkdir()

    assert run_serve(server.data_dir, *ANY_PORTS).returncode == 2

    (server.data_dir / "admin.sock").rmdir()
    server.start()
    with Client.opened(*server.endpoint) as client:
        client.declare(1, "stream")


def test_a_second_server_on_a_directory_takes_nothing_away(start_server: StartServer) -> None:
    server = start_server()

    done = run_serve(server.data_dir, *ANY_PORTS)

    assert done.returncode == 1
    assert f"in use by process {server.pid}" in done.stderr
    with Client.opened(*server.endpoint) as client:
        client.create("stream")


@pytest.mark.parametrize("wrong", [("--users", "/nowhere/at/all"), ("--interval-ms", "-1")])
def test_to_machines_the_reason_of_a_failed_start_is_a_record_too(
    tmp_path: Path, wrong: tuple[str, str]
) -> None:
    done = run_serve(tmp_path / "data", *ANY_PORTS, "--log-format", "json", *wrong)

    records = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.returncode == 2
    assert records[-1]["level"] == "critical"
    assert records[-1]["message"] == "the server does not start"
    assert records[-1]["reason"].startswith(wrong[0])


def test_the_ready_line_has_the_whole_path(tmp_path: Path, start_server: StartServer) -> None:
    server = start_server(data=Path(os.path.relpath(tmp_path / "data")))

    assert f" data={tmp_path / 'data'} " in server.ready_line


def test_a_store_that_has_lost_its_users_gets_no_first_user(tmp_path: Path) -> None:
    """A checkpoint from before them, for instance: whatever was set aside says so at each start."""
    directory = tmp_path / "data"
    LogRig(directory).close()
    (directory / "set-aside" / "1").mkdir(parents=True)

    for _ in range(2):
        done = run_serve(directory, *ANY_PORTS)

        assert done.returncode == 1
        assert "the store was damaged and has no users: restore a backup" in done.stderr
        assert "Traceback" not in done.stderr


def test_settings_may_come_by_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "config"
    os.mkfifo(pipe)
    content = '[mewbase]\nport = 0\nchannels = ["orders"]\n'
    writer = threading.Thread(target=pipe.write_text, args=(content,), daemon=True)
    writer.start()
    with HutchServer(tmp_path / "data", "--config", str(pipe), "--durability", "os") as server:
        assert " mewbase=" in server.ready_line
        with Client.opened(*server.endpoint) as client:
            client.declare(1, "orders")
        server.terminate()
    writer.join()
