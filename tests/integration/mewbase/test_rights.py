"""Rights that are taken away while clients of mewbase are connected: those of now count."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.http_client import Api
from tests.integration.administrator import ctl, report
from tests.integration.mewbase.conftest import StartMewbase, port_of
from tests.integration.server import HutchServer
from tests.mewbase_client import MewbaseClient

NOT_AUTHORISED: Final = 2
NOTHING: Final = {"configure": "", "write": "", "read": ""}
PROJECTION = """
[[projections]]
name = "projection1"
channel = "channel2"
binder = "binder1"
id = "id"
"""
Connect = Callable[[], MewbaseClient]


@pytest.fixture
def server(start_mewbase: StartMewbase, tmp_path: Path) -> HutchServer:
    """A server whose binder1 has the events of channel2, with the user app, who may do all."""
    path = tmp_path / "projections.toml"
    path.write_text(PROJECTION)
    server = start_mewbase("--durability", "os", HUTCH_MEWBASE__PROJECTIONS_FILE=str(path))
    ctl(server, "add_user", "app", stdin=b"secret\n")
    ctl(server, "set_permissions", "app", ".*", ".*", ".*")
    return server


@pytest.fixture
def connect(server: HutchServer, request: pytest.FixtureRequest) -> Connect:
    """Connects clients of app."""

    def connected() -> MewbaseClient:
        client = MewbaseClient(port_of(server))
        request.addfinalizer(client.socket.close)
        client.connect(authInfo={"username": "app", "password": "secret"})
        return client

    return connected


def by_http(server: HutchServer) -> None:
    api = Api(*server.management, user=("mew", "base"))
    assert api.status("PUT", "permissions/%2F/app", NOTHING) == 204


def by_import(server: HutchServer) -> None:
    path = server.data_dir.parent / "narrowed.json"
    path.write_text(json.dumps({"permissions": [{"user": "app", "vhost": "/"} | NOTHING]}))
    report(server, str(path))


def by_ctl(server: HutchServer) -> None:
    answer = ctl(server, "set_permissions", "app", "", "", "")
    assert (answer["outdated_publishers"], answer["outdated_consumers"]) == (0, 0)


def by_deleted_permission(server: HutchServer) -> None:
    ctl(server, "clear_permissions", "app")


def by_deleted_user(server: HutchServer) -> None:
    ctl(server, "delete_user", "app")


WAYS: Final = [by_http, by_import, by_ctl, by_deleted_permission, by_deleted_user]
ways = pytest.mark.parametrize("take_away", WAYS)


def publish(client: MewbaseClient, session: int = -1) -> int:
    """Publish an event; return the number of the error, 0 if there is none."""
    answer = client.ask("PUB", channel="channel1", sessID=session, event={}, rID=1)
    return 0 if answer["ok"] else int(answer["errCode"])


@ways
def test_who_may_not_read_any_more_gets_nothing_more(
    server: HutchServer, client: MewbaseClient, connect: Connect, take_away: Callable[..., None]
) -> None:
    reader = connect()
    reader.subscribe("channel1")
    client.publish("channel1", {"n": 1})
    assert reader.events(1)[0]["event"] == {"n": 1}

    take_away(server)
    client.publish("channel1", {"n": 2})

    with pytest.raises(EOFError):
        reader.receive()


@ways
def test_who_may_not_write_any_more_stores_nothing_more(
    server: HutchServer, connect: Connect, take_away: Callable[..., None]
) -> None:
    writer = connect()
    assert publish(writer) == 0
    assert writer.ask("STARTTX", sessID=1, rID=1)["ok"] is True
    assert publish(writer, session=1) == 0

    take_away(server)

    if take_away is by_deleted_user:
        assert writer.is_ended()
    else:
        assert publish(writer) == NOT_AUTHORISED
        assert publish(writer, session=1) == NOT_AUTHORISED
        assert writer.ask("COMMITTX", sessID=1, rID=1)["errCode"] == NOT_AUTHORISED
        assert publish(writer) == NOT_AUTHORISED


@ways
def test_a_query_of_who_may_not_read_any_more_ends(
    server: HutchServer, client: MewbaseClient, connect: Connect, take_away: Callable[..., None]
) -> None:
    for number in range(20):
        client.publish("channel2", {"id": str(number), "data": bytes(500_000)})
    asking = connect()
    asking.send("QUERY", queryID=3, binder="binder1", matcher={})
    first = [asking.must("QUERYRESULT") for _ in range(9)]  # more are sent when these are taken
    assert all(each["ok"] for each in first)

    take_away(server)

    last = asking.must("QUERYRESULT")
    assert (last["queryID"], last["ok"], last["last"]) == (3, False, True)
    assert last["errCode"] == NOT_AUTHORISED
    if take_away is by_deleted_user:
        assert asking.is_ended()
        return
    asking.send("QUERY", queryID=3, binder="binder1", matcher={})
    assert asking.must("QUERYRESULT")["errCode"] == NOT_AUTHORISED


def test_what_is_still_allowed_goes_on(
    server: HutchServer, client: MewbaseClient, connect: Connect
) -> None:
    reader, writer = connect(), connect()
    reader.subscribe("channel1")
    for channel in ("channel1", "channel2"):
        writer.publish(channel, {"n": 1})

    ctl(server, "set_permissions", "app", "", "^channel2$", "^channel1$")

    assert publish(writer) == NOT_AUTHORISED
    writer.publish("channel2", {"n": 2})
    (shown,) = Api(*server.management, user=("mew", "base")).get("stream/publishers")
    assert (shown["queue"]["name"], shown["published"]) == ("channel2", 2)
    client.publish("channel1", {"n": 3})
    assert [each["event"] for each in reader.events(2)] == [{"n": 1}, {"n": 3}]


def test_a_right_that_is_given_again_counts_at_once(server: HutchServer, connect: Connect) -> None:
    writer = connect()
    assert publish(writer) == 0
    by_ctl(server)
    assert publish(writer) == NOT_AUTHORISED
    ctl(server, "set_permissions", "app", "", ".*", "")
    assert publish(writer) == 0
