"""What is removed on a full disk gives its space back: truncation, limits of age and of size."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from hutch.stream import messages as m
from hutch.stream.offsets import FIRST
from store.local.recovery.holes import SOON_BYTES
from tests.client import Client
from tests.integration.administrator import ctl
from tests.integration.conftest import StartServer
from tests.integration.load import last_id
from tests.integration.server import HutchServer
from tests.integration.small_disk import small_disk
from tests.integration.test_retention import statistics
from tests.waiting import HANG_S

pytestmark = pytest.mark.timeout(240)

DISK_BYTES: Final = 64 * 1024 * 1024
BODY: Final = bytes(range(256)) * 400
LEFT_BYTES: Final = 4 * 1024 * 1024
"""What may be kept of a stream's file before its first record."""
LEFT_LATER_BYTES: Final = SOON_BYTES + 6 * 1024 * 1024
"""What is kept by the limits, and what waits for the next checkpoint once there is some room."""
EACH_SECOND: Final = {"HUTCH_STREAMS__RETENTION_INTERVAL_S": "1"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path, DISK_BYTES) as place:
        yield place


def is_published(client: Client, number: int) -> bool:
    """Whether a message is confirmed; if not, the stream must be declared anew."""
    client.publish(1, {number: BODY})
    return isinstance(client.receive().message, m.PublishConfirm)


def fill(server: HutchServer, stream: str, reference: str = "") -> int:
    """Publish until that is refused; gives how many messages are confirmed."""
    with Client.opened(*server.endpoint) as client:
        client.declare(1, stream, reference)
        for number in range(1, 2 * DISK_BYTES // len(BODY)):
            if not is_published(client, number):
                return number - 1
    raise AssertionError("the disk is not full")


def create(server: HutchServer, stream: str, limits: dict[str, str] | None = None) -> None:
    with Client.opened(*server.endpoint) as client:
        client.create(stream, limits)


def free_bytes(disk: Path) -> int:
    told = os.statvfs(disk)
    return told.f_bfree * told.f_frsize


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + HANG_S
    while not holds():
        assert time.monotonic() < deadline, "not within the limit"
        time.sleep(0.1)


def can_publish(server: HutchServer, stream: str, first: int, reference: str = "") -> bool:
    with Client.opened(*server.endpoint) as client:
        client.declare(1, stream, reference)
        return is_published(client, first)


def test_a_truncation_gives_its_space_back_and_publishing_goes_on(
    disk: Path, start_server: StartServer
) -> None:
    server = start_server(data=disk)
    create(server, "big")
    count = fill(server, "big", "w")
    before = free_bytes(disk)
    kept = 100
    assert count > 2 * kept

    told = ctl(server, "truncate_stream", "big", "--before-offset", str(count - kept))

    first = told["first_offset"]
    assert count - kept - 10 < first <= count - kept
    eventually(lambda: free_bytes(disk) - before > first * len(BODY) - LEFT_BYTES)
    eventually(lambda: can_publish(server, "big", count + 1, "w"))
    server.kill()
    server.restart()
    with Client.opened(*server.endpoint) as client:
        assert statistics(client, "big") == (first, count)
        assert last_id(client, "big", "w") == count + 1
    assert "snapshot not stored" not in server.logs


def test_publishers_whose_chunks_were_removed_on_a_full_disk_are_remembered(
    disk: Path, start_server: StartServer
) -> None:
    server = start_server("--durability", "os", data=disk)
    create(server, "big")
    with Client.opened(*server.endpoint) as client:
        for number in range(200):
            client.declare(2, "big", f"early {number}")
            client.publish(2, {700 + number: b"early"})
            client.confirmed_ids(1)
            client.must("delete_publisher", m.DeletePublisher(2))
    count = 200 + fill(server, "big")
    ctl(server, "truncate_stream", "big", "--before-offset", str(count))
    server.kill()
    server.restart()
    with Client.opened(*server.endpoint) as client:
        assert [last_id(client, "big", f"early {number}") for number in (0, 199)] == [700, 899]


@pytest.mark.parametrize(
    "limit", [{"max-age": "3s"}, {"max-length-bytes": "5000000"}], ids=["age", "size"]
)
def test_what_is_too_old_or_too_much_goes_when_the_disk_is_full(
    disk: Path, start_server: StartServer, limit: dict[str, str]
) -> None:
    server = start_server(data=disk, environment=EACH_SECOND)
    create(server, "other")
    create(server, "big")
    filled = fill(server, "big") * len(BODY)
    before = free_bytes(disk)
    name, value = next(iter(limit.items()))
    number = value if value.isdecimal() else f'"{value}"'

    policy = f'{{"{name}": {number}, "stream-max-segment-size-bytes": 1000000}}'
    ctl(server, "set_policy", "less", "^big$", policy)

    eventually(lambda: free_bytes(disk) - before > filled - LEFT_LATER_BYTES)
    eventually(lambda: can_publish(server, "other", 1))


def test_with_room_the_space_is_given_back_soon_as_well(
    tmp_path: Path, start_server: StartServer
) -> None:
    with small_disk(tmp_path, 4 * DISK_BYTES) as disk:
        given_back_with_room(disk, start_server("--durability", "os", data=disk))


def given_back_with_room(disk: Path, server: HutchServer) -> None:
    create(server, "big")
    with Client.opened(*server.endpoint) as client:
        client.declare(1, "big")
        for number in range(300):
            assert is_published(client, number)
    before = free_bytes(disk)
    ctl(server, "truncate_stream", "big", "--before-offset", "290")
    eventually(lambda: free_bytes(disk) - before > 290 * len(BODY) - LEFT_BYTES)
    with Client.opened(*server.endpoint) as client:
        client.subscribe(1, "big", FIRST)
        found = client.records(10, subscription_id=1)
        assert found == [(offset, BODY) for offset in range(290, 300)]
