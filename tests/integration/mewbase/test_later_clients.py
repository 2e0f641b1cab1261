"""Requests of a client of 2017: answers that it can take apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.administrator import ctl
from tests.integration.mewbase.conftest import StartMewbase, port_of
from tests.integration.server import HutchServer
from tests.mewbase_client import MewbaseClient

PROJECTION = '[[projections]]\nname = "p"\nchannel = "channel1"\nbinder = "b"\nid = "id"\n'


@pytest.fixture
def server(start_mewbase: StartMewbase, tmp_path: Path) -> HutchServer:
    path = tmp_path / "projections.toml"
    path.write_text(PROJECTION)
    return start_mewbase("--durability", "os", HUTCH_MEWBASE__PROJECTIONS_FILE=str(path))


def test_a_channel_is_made_once_and_can_be_used(client: MewbaseClient) -> None:
    for existed in (False, True):
        answer = client.ask("CREATECHANNEL", name="new", rID=7)
        assert answer == {"rID": 7, "ok": True, "exists": existed}
    client.publish("new", {"n": 1})
    answer = client.ask("CREATECHANNEL", name="channel1", rID=8)
    assert answer == {"rID": 8, "ok": True, "exists": True}


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        ("CREATECHANNEL", "x" * 256, 104),
        ("CREATECHANNEL", "\r\n", 104),
        ("CREATECHANNEL", "", 104),
        ("CREATEBINDER", "x", 104),
    ],
)
def test_a_refusal_says_that_there_is_none_in_words_and_in_exists(
    client: MewbaseClient, kind: str, name: str, code: int
) -> None:
    answer = client.ask(kind, name=name, rID=7)
    words = answer.pop("errMsg")
    assert words
    assert answer == {"rID": 7, "ok": False, "errCode": code, "exists": False}
    client.publish("channel1", {})


def test_a_channel_is_made_by_a_user_with_the_right_to_configure_it(
    server: HutchServer, client: MewbaseClient
) -> None:
    ctl(server, "set_permissions", "mew", "^mine-", ".*", ".*")
    for name, exists in (("channel1", False), ("other", False)):
        answer = client.ask("CREATECHANNEL", name=name, rID=7)
        assert (answer["ok"], answer["errCode"], answer["exists"]) == (False, 2, exists)
    assert client.ask("CREATECHANNEL", name="mine-1", rID=7)["ok"] is True


@pytest.mark.parametrize("key", ["dodID", "docID"])
def test_a_document_is_found_by_its_id(client: MewbaseClient, key: str) -> None:
    client.publish("channel1", {"id": "a", "n": 1})
    answer = client.ask("FINDBYID", binder="b", rID=7, **{key: "a"})
    assert answer == {"rID": 7, "ok": True, "result": {"id": "a", "n": 1}}
    answer = client.ask("FINDBYID", binder="b", rID=8, **{key: "x"})
    assert answer == {"rID": 8, "ok": True, "result": None}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"binder": "nothing", "dodID": "a"}, 103),
        ({"binder": "b"}, 104),
        ({"binder": "b", "dodID": "x" * 1025}, 104),
    ],
)
def test_what_cannot_be_found_is_refused(
    client: MewbaseClient, fields: dict[str, str], code: int
) -> None:
    answer = client.ask("FINDBYID", rID=7, **fields)
    assert (answer["rID"], answer["ok"], answer["errCode"]) == (7, False, code)
    client.publish("channel1", {})


def test_a_document_needs_the_right_to_read_its_binder(server: HutchServer) -> None:
    ctl(server, "set_permissions", "mew", ".*", ".*", "^channel")
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        assert client.ask("FINDBYID", binder="b", dodID="a", rID=7)["errCode"] == 2
