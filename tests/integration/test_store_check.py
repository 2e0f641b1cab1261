"""`hutch store` on directories that a real server wrote, sound and damaged."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.integration.administrator import ctl, hutch
from tests.integration.server import HutchServer
from tests.unit.store.local.test_overlay import state_of
from tests.unit.store.local.test_store_check import file_with, flip

BODIES = [b"a record of a customer, number %d" % number for number in range(30)]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a server has left that was stopped, started and killed."""
    data = tmp_path_factory.mktemp("written") / "data"
    server = HutchServer(data)
    try:
        ctl(server, "add_user", "anna", stdin=b"secret")
        with Client.opened(*server.endpoint) as client:
            client.create("orders")
            client.create("other")
            publish(client, 0, "orders", BODIES[:20], 1)
            publish(client, 1, "other", [b"something else"], 1)
        server.terminate()
        server.start()
        with Client.opened(*server.endpoint) as client:
            publish(client, 0, "orders", BODIES[20:], 21)
        server.kill()
    finally:
        server.close()
    return data


def publish(client: Client, publisher: int, stream: str, bodies: list[bytes], first: int) -> None:
    client.declare(publisher, stream, "shop")
    for number, body in enumerate(bodies, first):
        client.publish(publisher, [(number, body)])
        client.confirmed_ids(1)


@pytest.fixture
def data(written: Path, tmp_path: Path) -> Iterator[Path]:
    copy = tmp_path / "data"
    shutil.copytree(written, copy, ignore=shutil.ignore_patterns("*.sock"))
    yield copy
    shutil.rmtree(copy)


def read_all(data: Path, stream: str) -> list[bytes]:
    with HutchServer(data) as server, Client.opened(*server.endpoint) as client:
        client.subscribe(1, stream, FIRST, credit=100)
        bodies: list[bytes] = []
        while len(bodies) < len(BODIES):
            bodies += client.delivery().chunk.records()
    return bodies


def test_a_sound_directory_is_checked_and_not_changed(data: Path) -> None:
    before = state_of(data)

    done = hutch(data, "store", "check")

    assert b"all is sound" in done.stdout
    assert b" 2 streams, 31 chunks with 31 records" in done.stdout
    assert state_of(data) == before


def test_a_running_server_is_left_alone_and_a_missing_store_is_told(tmp_path: Path) -> None:
    with HutchServer(tmp_path / "data"):
        done = hutch(tmp_path / "data", "store", "check", check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"in use by process" in done.stderr
    assert len(done.stderr.splitlines()) == 1

    done = hutch(tmp_path / "missing", "store", "check", "--repair", check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"holds no store" in done.stderr


def test_a_damaged_chunk_is_named_and_stays_and_the_rest_can_be_read(data: Path) -> None:
    path = file_with(data, BODIES[7])
    flip(path, BODIES[7], 3)
    before = state_of(data)

    done = hutch(data, "store", "check", check=False)

    (line,) = [line for line in done.stdout.decode().splitlines() if "damaged:" in line]
    assert done.returncode == 1
    assert "checksum of a chunk's data" in line
    assert f"file=data/{path.name}" in line
    assert "stream=orders virtual_host=/" in line
    assert state_of(data) == before
    repaired = hutch(data, "store", "check", "--repair", check=False)
    assert repaired.returncode == 1
    assert b"stay damaged" in repaired.stdout
    assert hutch(data, "store", "check", check=False).returncode == 1


@pytest.mark.parametrize(
    ("content", "lost"),
    [(b'"anna"', "user"), (b'"name": "orders"', "stream"), (b'"Default virtual host"', "host")],
)
def test_a_damaged_table_is_written_anew_and_the_server_starts_and_has_all_records(
    data: Path, content: bytes, lost: str
) -> None:
    path = file_with(data, content)
    flip(path, content, 1)
    damaged, before = path.read_bytes(), state_of(data)

    done = hutch(data, "store", "check", check=False)
    assert done.returncode == 1
    assert f"file=data/{path.name} position=".encode() in done.stdout
    assert state_of(data) == before
    repaired = hutch(data, "store", "check", "--repair", check=False)

    assert (repaired.returncode, repaired.stderr) == (0, b""), repaired.stdout.decode()
    assert b"mended: " in repaired.stdout
    assert damaged in [each.read_bytes() for each in (data / "set-aside").rglob("*-*")]
    assert b"all is sound" in hutch(data, "store", "check").stdout
    if lost != "host":
        assert read_all(data, "orders") == BODIES
        with HutchServer(data) as server:
            names = [user["name"] for user in ctl(server, "list_users")]
        assert ("anna" in names) == (lost != "user")


def test_a_server_whose_users_are_all_lost_makes_no_first_user_anew(data: Path) -> None:
    os.truncate(file_with(data, b'"anna"'), 0)
    os.truncate(file_with(data, b'"unclean"'), 0)

    assert hutch(data, "store", "check", "--repair").returncode == 0

    assert b"all is sound" in hutch(data, "store", "check").stdout
    with HutchServer(data) as server:
        assert ctl(server, "list_users") == []
        assert "count of openings was damaged and is rebuilt" in server.logs


@pytest.mark.parametrize("kind", ["-index"])
def test_what_is_derived_is_dropped_and_the_server_makes_it_anew(data: Path, kind: str) -> None:
    named = hutch(data, "store", "inspect").stdout.decode().splitlines()
    rows = [line.split() for line in named if "_orders-" in line and f"{kind}/" in line]
    path = data / rows[0][4]
    stored = bytearray(path.read_bytes())
    stored[5] ^= 1
    path.write_bytes(stored)

    assert hutch(data, "store", "check", check=False).returncode == 1
    assert hutch(data, "store", "check", "--repair").returncode == 0
    assert b"all is sound" in hutch(data, "store", "check").stdout
    assert read_all(data, "orders") == BODIES


def test_what_is_stored_is_shown_readably_and_without_secrets(data: Path) -> None:
    before = state_of(data)

    everything = hutch(data, "store", "inspect").stdout.decode()
    records = hutch(data, "store", "inspect", "orders", "--limit", "3").stdout.decode()
    later = hutch(data, "store", "inspect", "orders", "--offset", "28").stdout.decode()
    users = hutch(data, "store", "inspect", "hutch/_access_kvtable/0.#epoch.0").stdout.decode()
    nothing = hutch(data, "store", "inspect", "nothing", check=False)

    assert "hutch/_access_kvtable" in everything
    assert BODIES[2].decode() in records
    assert BODIES[3].decode() not in records
    assert "publisher=shop id=1" in records
    assert BODIES[27].decode() not in later
    assert BODIES[29].decode() in later
    assert '"name": "anna"' in users
    hashes = [line for line in users.splitlines() if '"password_hash"' in line]
    assert hashes
    assert all('"password_hash": "(not shown)"' in line for line in hashes)
    assert nothing.returncode == 2
    assert b"no stream 'nothing'" in nothing.stderr
    assert state_of(data) == before


@pytest.mark.parametrize("name", ["journal/99", "lock", "token.key"])
def test_a_fifo_in_a_directory_is_told_and_not_waited_for(data: Path, name: str) -> None:
    (data / name).unlink(missing_ok=True)
    os.mkfifo(data / name)
    for command in (("store", "check"), ("store", "check", "--repair"), ("store", "inspect")):
        done = hutch(data, *command, check=False)
        if name != "token.key":  # which a check does not read
            assert done.returncode == 1, command
            assert f"{name.rpartition('/')[2]} is no regular file".encode() in done.stdout


def test_files_behind_links_are_none_of_a_store(data: Path, tmp_path: Path) -> None:
    for path in [*(data / "journal").iterdir(), *(data / "data").iterdir(), data / "checkpoint"]:
        elsewhere = tmp_path / path.name
        path.rename(elsewhere)
        path.symlink_to(elsewhere)
        before = elsewhere.read_bytes()
        done = hutch(data, "store", "check", "--repair", check=False)
        said = done.stdout + done.stderr
        assert f"{path.name} is a link".encode() in said, said
        assert elsewhere.read_bytes() == before
        path.unlink()
        elsewhere.rename(path)
    assert b"all is sound" in hutch(data, "store", "check").stdout


@pytest.mark.parametrize("kind", ["checkpoint", "zeros", "journal"])
def test_a_file_that_only_says_that_it_is_large_is_damage(data: Path, kind: str) -> None:
    journal = max((data / "journal").iterdir(), key=lambda path: int(path.name))
    path = journal if kind == "journal" else data / "checkpoint"
    if kind == "zeros":
        path.write_bytes(b"")
    os.truncate(path, 2**40)
    for command in ("check", "inspect"):
        done = hutch(data, "store", command, check=False)
        assert b"Traceback" not in done.stderr, done.stderr
        if kind != "journal":
            assert done.returncode == 1
            assert b"damaged: the checkpoint is damaged" in done.stdout
