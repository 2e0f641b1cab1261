"""A disk that is full to the last page, on a real small file system: what is told and taken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from hutch.client.connection import Connection
from hutch.stream import messages as m
from hutch.stream import pipeline as p
from hutch.stream.codes import ResponseCode
from tests.client import Client
from tests.http_client import Api, eventually
from tests.integration.administrator import hutch
from tests.integration.conftest import StartServer
from tests.integration.server import HutchServer
from tests.integration.small_disk import small_disk as disk_of
from tests.integration.test_commits import commit, content, pipeline_client, stage
from tests.waiting import HANG_S

pytestmark = pytest.mark.timeout(180)

DISK_BYTES = 64 * 1024 * 1024
BODY = b"x" * 100_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A link to a directory on a small file system; what lies beside the link is not on it."""
    with disk_of(tmp_path, DISK_BYTES) as place:
        (place / "data").mkdir()
        (tmp_path / "data").symlink_to(place / "data")
        yield tmp_path / "data"


def filled(server: HutchServer, stream: str) -> None:
    """Publish to a new stream until that is refused."""
    with Client.opened(*server.endpoint) as client:
        client.create(stream)
        client.declare(1, stream)
        number = 0
        while number < 2 * DISK_BYTES // len(BODY):
            client.publish(1, {number: BODY})
            number += 1
            told = client.receive().message
            if isinstance(told, m.MetadataUpdate):
                assert told.code == ResponseCode.STREAM_NOT_AVAILABLE
                return
            assert isinstance(told, m.PublishConfirm)
    raise AssertionError("the disk was not full")


def status(server: HutchServer) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(hutch(server.data_dir, "ctl", "status", "--json").stdout)
    return answer


def test_publishes_without_space_are_an_alarm_that_clears_by_itself(
    small_disk: Path, start_server: StartServer
) -> None:
    server = start_server(data=small_disk)
    api = Api(*server.management)
    assert status(server)["alarms"] == []

    filled(server, "big")

    assert status(server)["alarms"] == ["disk"]
    assert status(server)["is_disk_full"]
    assert "publishes find no space" in hutch(server.data_dir, "ctl", "status").stdout.decode()
    assert api.status("GET", "health/checks/alarms") == HTTPStatus.SERVICE_UNAVAILABLE
    assert api.get("nodes")[0]["disk_free_alarm"] is True

    hutch(server.data_dir, "ctl", "delete_stream", "big")

    assert eventually(lambda: status(server)["alarms"] == [], HANG_S)
    assert api.status("GET", "health/checks/alarms") == HTTPStatus.OK
    assert api.get("nodes")[0]["disk_free_alarm"] is False
    with Client.opened(*server.endpoint) as client:
        client.create("next")
        client.declare(1, "next")
        client.publish(1, {1: BODY})
        assert client.confirmed_ids(1) == [1]


def test_staging_without_space_is_an_alarm_and_what_is_discarded_makes_room(
    small_disk: Path, start_server: StartServer
) -> None:
    server = start_server("--durability", "os", data=small_disk)
    with Client.opened(*server.endpoint) as client:
        client.create("s")
    with pipeline_client(server) as client:
        number, reason = staged_until_refused(client)

        assert re.fullmatch(rf"stage {number} of stream 's' is not stored: .*no space.*", reason)
        assert status(server)["alarms"] == ["disk"]
        assert "publishes find no space" in server.logs
        client.must("discard_stages", p.DiscardStages((number,)))
        assert eventually(lambda: status(server)["alarms"] == [], HANG_S)

        commit(client, 0, (stage(client, 0, "s", [b"s 1"]),))
    assert content(server, "s") == [b"s 1"]


def staged_until_refused(client: Connection) -> tuple[int, str]:
    """Fill a stage until the server refuses it; return its number, and the reason."""
    opened = client.ask(p.StageOpened, "open_stage", p.OpenStage("query", 0, "s"))
    data = len(BODY).to_bytes(4) + BODY
    for sequence in range(2 * DISK_BYTES // len(BODY)):
        piece = p.StageRecords(opened.stage, sequence, 1, 1, data)
        filled = client.ask(p.StageFilled, "stage", piece)
        if filled.code != ResponseCode.OK:
            assert filled.code == ResponseCode.INTERNAL_ERROR
            return opened.stage, filled.reason or ""
    raise AssertionError("the disk was not full")


def test_limits_are_taken_on_a_full_disk(small_disk: Path, start_server: StartServer) -> None:
    server = start_server(data=small_disk)
    filled(server, "big")

    limit = '{"max-length-bytes": 1000000}'
    hutch(server.data_dir, "ctl", "set_policy", "less", "^big$", limit)
    hutch(server.data_dir, "ctl", "set_operator_policy", "most", "^big$", limit)
    listed = json.loads(hutch(server.data_dir, "ctl", "list_policies", "--json").stdout)
    assert [policy["name"] for policy in listed] == ["less"]
    hutch(server.data_dir, "ctl", "clear_policy", "less")
