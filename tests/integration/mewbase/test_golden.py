"""Case 78: what the client of 2016 sent to its own server, sent to this one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import bson

from tests.integration.mewbase.conftest import StartMewbase, port_of
from tests.integration.server import REPOSITORY
from tests.mewbase_client import MewbaseClient

CAPTURED: Final = REPOSITORY / "tests" / "golden" / "mewbase" / "2016.jsonl"
PROJECTION: Final = """
[[projections]]
name = "p"
channel = "channel1"
binder = "binder1"
id = "id"
"""
IGNORED_MATCHER: Final = 9
"""A query whose matcher no document matches; the server of 2016 ignored matchers."""


def shape_of(kind: str, fields: dict[str, Any]) -> tuple[str, tuple[tuple[str, object], ...]]:
    """Return a frame without what differs between servers: position, time, `ok` of a result."""
    left_out = {"pos", "timestamp"} | ({"ok"} if kind == "QUERYRESULT" else set())
    return kind, tuple(sorted((key, str(fields[key])) for key in fields.keys() - left_out))


def test_case_78_the_captured_client_gets_what_its_own_server_answered(
    start_mewbase: StartMewbase, tmp_path: Path
) -> None:
    path = tmp_path / "projections.toml"
    path.write_text(PROJECTION)
    server = start_mewbase(HUTCH_MEWBASE__PROJECTIONS_FILE=str(path))
    lines = [json.loads(line) for line in CAPTURED.read_text().splitlines()]
    sent = [bytes.fromhex(line["hex"]) for line in lines if line["from"] == "client"]
    answers = [
        bson.decode(bytes.fromhex(line["hex"])) for line in lines if line["from"] == "server"
    ]
    wanted = [
        shape_of(answer["type"], answer["frame"])
        for answer in answers
        if answer["frame"].get("queryID") != IGNORED_MATCHER
    ]
    wanted.append(shape_of("QUERYRESULT", {"queryID": 9, "result": None, "last": True}))

    with MewbaseClient(port_of(server)) as client:
        for frame in sent:
            client.socket.sendall(frame)
        found = [shape_of(*client.receive()) for _ in wanted]
        assert client.is_silent()

    # An event and the answer to its PUB may come in any order, and so may answers to two requests.
    assert sorted(found) == sorted(wanted)
    assert found[0] == wanted[0]
    subscribed = [index for index, shape in enumerate(found) if shape[0] == "SUBRESPONSE"]
    received = [index for index, shape in enumerate(found) if shape[0] == "RECEV"]
    assert subscribed[0] < received[0]
