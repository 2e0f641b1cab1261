"""One flipped bit in a table: no other value is ever told, and the log names the place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hutch.stream import messages as m
from tests.client import Client
from tests.integration.administrator import ctl
from tests.integration.server import HutchServer, run_serve

REPAIR = "run `hutch store check --data DIR --repair`"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory, closed."""
    directory = tmp_path_factory.mktemp("sound") / "data"
    with HutchServer(directory, "--durability", "disk") as server:
        ctl(server, "add_user", "anna", stdin=b"secret of anna")
        ctl(server, "set_permissions", "anna", "a.*", "b.*", "c.*")
        ctl(server, "set_policy", "short", "^orders$", '{"max-age": "7D"}')
        ctl(server, "add_super_stream", "parts", "--partitions", "2")
        with Client.opened(*server.endpoint) as client:
            client.create("orders", {"max-length-bytes": "50000000"})
            client.declare(1, "orders", "app")
            client.publish(1, [(1_059, b"x")])
            assert client.confirmed_ids(1) == [1_059]
            client.send_request("store_offset", m.StoreOffset("reader", "orders", 41))
            query = m.QueryOffset("reader", "orders")
            assert client.ask(m.StoredOffset, "query_offset", query).offset == 41
        server.terminate()
    return directory


@pytest.fixture
def harmed(sound: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    directory = tmp_path / "data"
    shutil.copytree(sound, directory, ignore=shutil.ignore_patterns("lock", "admin.sock"))
    return directory


def flip(directory: Path, written: bytes, at: int, bit: int, beside: bytes = b"") -> str:
    """Flip a bit of what was written last, in the one file that also has `beside`; name it."""
    contents = {path: path.read_bytes() for path in (directory / "data").iterdir()}
    (path,) = (each for each in contents if written in contents[each] and beside in contents[each])
    content = bytearray(contents[path])
    content[content.rindex(written) + at] ^= 1 << bit
    path.write_bytes(content)
    return f"data/{path.name}"


@pytest.mark.parametrize(
    ("written", "at", "bit"),
    [
        (b'"max-length-bytes": "50000000"', 21, 2),  # 10000000
        (b'"max-length-bytes": "50000000"', 24, 1),
        (b"anna", 3, 1),
        (b'"b.*"', 1, 0),
        (b"short", 0, 0),
        (b'"7D"', 1, 1),
        (b"parts-1", 6, 0),
    ],
)
def test_no_limit_right_or_name_that_was_never_given_is_served(
    harmed: Path, written: bytes, at: int, bit: int
) -> None:
    file = flip(harmed, written, at, bit)

    done = run_serve(harmed, "--port", "0", "--management-port", "0")

    assert done.returncode == 1
    assert "hutch ready" not in done.stdout
    assert "Traceback" not in done.stderr
    assert f" file={file} " in done.stderr
    last_line = done.stderr.splitlines()[-1]
    assert "damaged" in last_line
    assert REPAIR in last_line


def test_no_offset_that_was_never_stored_is_answered(harmed: Path) -> None:
    stored = b"reader" + (41).to_bytes(8, "big")
    file = flip(harmed, stored, len(stored) - 2, 3)  # 2089

    with HutchServer(harmed) as server, Client.opened(*server.endpoint) as client:
        answer = client.request("query_offset", m.QueryOffset("reader", "orders"))
        assert answer == m.StoredOffset(19, 0)
        assert f" file={file} " in server.stderr
        client.send_request("store_offset", m.StoreOffset("reader", "orders", 42))
        answer = client.request("query_offset", m.QueryOffset("reader", "orders"))
        assert answer == m.StoredOffset(1, 42)


def test_no_publishing_id_that_was_never_given_is_answered(harmed: Path) -> None:
    stored = b"app" + (1_059).to_bytes(8, "big")
    file = flip(harmed, stored, len(stored) - 3, 2, beside=b"reader")  # 263203

    with HutchServer(harmed) as server, Client.opened(*server.endpoint) as client:
        query = m.QueryPublisherSequence("app", "orders")
        answer = client.request("query_publisher_sequence", query)
        assert answer == m.PublisherSequence(1, 1_059)
        assert f" file={file} " in server.stderr
