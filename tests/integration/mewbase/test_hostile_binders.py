"""Events that are expensive to fold: no turn of the server's loop takes long."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.integration.mewbase.conftest import StartMewbase
from tests.integration.server import HutchServer
from tests.integration.turns import Turns
from tests.machine import is_within
from tests.mewbase_client import MewbaseClient, frame
from tests.waiting import wait_until

TURN_S_MAX: Final = 0.05
LARGE: Final = 900_000
PROJECTIONS: Final = """
[[projections]]
name = "merge"
channel = "channel1"
binder = "merged"
id = "id"
mode = "merge"

[[projections]]
name = "add"
channel = "channel2"
binder = "sums"
id = "id"
mode = "add"
path = "of.{kind}"
quantity = "n"

[[projections]]
name = "replace"
channel = "channel3"
binder = "sums"
id = "id"
"""


@pytest.fixture
def server(start_mewbase: StartMewbase, tmp_path: Path) -> HutchServer:
    path = tmp_path / "projections.toml"
    path.write_text(PROJECTIONS)
    return start_mewbase(
        "--durability",
        "os",
        HUTCH_MEWBASE__PROJECTIONS_FILE=str(path),
        HUTCH_MEWBASE__CHANNELS="channel1, channel2, channel3",
    )


def document(client: MewbaseClient, binder: str, name: str) -> dict[str, Any]:
    """Return a document; an empty one if there is none."""
    client.send("QUERY", queryID=1, binder=binder, docID=name)
    return client.must("QUERYRESULT")["result"] or {}


def publish(client: MewbaseClient, channel: str, *events: dict[str, Any]) -> None:
    """Publish events, all at once."""
    frames = [
        frame("PUB", {"channel": channel, "event": event, "rID": number})
        for number, event in enumerate(events)
    ]
    client.socket.sendall(b"".join(frames))
    for number in range(len(events)):
        assert client.must("RESPONSE") == {"rID": number, "ok": True}


def fields(count: int) -> dict[str, None]:
    return dict.fromkeys(f"{number:04x}" for number in range(count))


def test_small_events_are_merged_into_a_large_document_without_long_turns(
    server: HutchServer, client: MewbaseClient
) -> None:
    events: list[dict[str, Any]] = [{"id": "x"} | fields(9_000), {"id": "x", "d": bytes(LARGE)}]
    with Turns(server) as turns:
        publish(client, "channel1", *events, *({"id": "x", "z": n} for n in range(200)))
        wait_until(lambda: document(client, "merged", "x").get("z") == 199)
        assert is_within(turns.longest_s, TURN_S_MAX)


def test_events_that_make_too_many_fields_are_passed_over(
    server: HutchServer, client: MewbaseClient
) -> None:
    with Turns(server) as turns:
        large = {"id": "x"} | fields(110_000)
        publish(client, "channel1", large, *({"id": "x", "z": n} for n in range(32)))
        wait_until(lambda: document(client, "merged", "x") == {"id": "x", "z": 31})
        assert is_within(turns.longest_s, TURN_S_MAX)
    assert "events=1 first=0 reason=the document would have more than 10000 fields" in server.stderr


def test_small_events_are_added_to_a_large_document_without_long_turns(
    server: HutchServer, client: MewbaseClient
) -> None:
    of = fields(115_000)
    with Turns(server) as turns:
        client.publish("channel3", {"id": "x", "of": of})
        wait_until(lambda: document(client, "sums", "x"))
        publish(client, "channel2", *[{"id": "x", "kind": "1c137", "n": 1}] * 100)
        wait_until(lambda: document(client, "sums", "x")["of"].get("1c137") == 100)
        assert is_within(turns.longest_s, TURN_S_MAX)


def test_many_large_documents_are_changed_at_once_without_long_turns(
    server: HutchServer, client: MewbaseClient
) -> None:
    names = [f"{number:02}" for number in range(40)]
    for name in names:
        client.publish("channel1", {"id": name, "d": bytes(LARGE)})
    wait_until(lambda: document(client, "merged", names[-1]))
    with Turns(server) as turns:
        publish(client, "channel1", *({"id": name, "n": n} for n, name in enumerate(names)))
        wait_until(lambda: document(client, "merged", names[-1]).get("n") == 39)
        assert is_within(turns.longest_s, TURN_S_MAX)
