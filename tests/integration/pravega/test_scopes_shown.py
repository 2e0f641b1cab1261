"""Scopes as operators see them: by `hutch ctl`, and over HTTP with the rights of each user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.pravega.controller.rpc import controller_pb2 as pb
from hutch.pravega import messages as m
from tests.client import Client
from tests.controller_client import ControllerClient
from tests.group_states import add, begun, changes, framed, whole
from tests.http_client import Api
from tests.integration.administrator import ctl, hutch, refusal
from tests.integration.pravega.users import (
    BESIDE,
    PASSWORD,
    config,
    controller,
    held,
    of,
    users_of_streams,
)
from tests.integration.server import HutchServer
from tests.pravega_client import WireClient

SCOPES = "x/pravega/scopes"
EVENT = b"\0\0\0\0\0\0\0\5hello"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    """A server with two scopes, a group that has read a part, and a RabbitMQ stream."""
    folder = tmp_path_factory.mktemp("scopes")
    file = users_of_streams(
        folder,
        all=(".*", ".*", ".*"),
        member=("", "^sales/_RGmine$", "^sales/orders$"),
        other=("", "", "^audit/log$"),
        none=("", "", "^nothing$"),
    )
    with HutchServer(folder / "data", *BESIDE, "--users", str(file)) as server:
        for user in ("all", "member", "other", "none"):
            ctl(server, "set_user_tags", user, "management")
        with controller(server, "all") as client:
            fill(client, server)
        with Client.opened(*server.endpoint, user="all", password=PASSWORD) as streams:
            streams.create("orders")
        yield server
        server.terminate()


def fill(client: ControllerClient, server: HutchServer) -> None:
    for scope in ("sales", "audit"):
        client.ask("createScope", pb.ScopeInfo(scope=scope))
    client.ask("createStream", config("audit", "log"))
    orders = config("sales", "orders")
    orders.tags.tag.append("eu")
    client.ask("createStream", orders)
    table = pb.KeyValueTableConfig(
        scope="sales", kvtName="prices", partitionCount=2, primaryKeyLength=8
    )
    client.ask("createKeyValueTable", table)
    token = client.ask("getDelegationToken", of("sales", "orders")).delegationToken
    with WireClient(*server.store, token=token) as wire:
        wire.set_up("sales/orders/0.#epoch.0")
        wire.append(1, 3 * EVENT)
    group = pb.ReaderGroupConfiguration(
        scope="sales",
        readerGroupName="mine",
        retentionType=1,
        startingStreamCuts=[pb.StreamCut(streamInfo=of("sales", "orders"))],
    )
    client.ask("createReaderGroup", group)
    state = begun({"sales/orders/0.#epoch.0": len(EVENT)})
    token = client.ask("getDelegationToken", of("sales", "_RGmine")).delegationToken
    with WireClient(*server.store, token=token) as wire:
        wire.set_up("sales/_RGmine/0.#epoch.0")
        wire.append(1, framed(whole(state), changes(add("second"), add("first"))))


def api(server: HutchServer, user: str = "all") -> Api:
    return Api(*server.management).by(user, PASSWORD)


def names(server: HutchServer, user: str, path: str) -> list[str]:
    return [each["name"] for each in api(server, user).get(path)]


GROUP = {
    "name": "mine",
    "streams": ["sales/orders"],
    "retention": "manual_at_stream_cut",
    "members": ["first", "second"],
    "unread_bytes": 2 * len(EVENT),
}


def test_the_commands_show_scopes_streams_and_groups(server: HutchServer) -> None:
    assert ctl(server, "list_scopes") == [
        {"name": "audit", "streams": 1, "reader_groups": 0, "tables": 0},
        {"name": "sales", "streams": 2, "reader_groups": 1, "tables": 1},
    ]
    assert ctl(server, "list_scope_streams", "sales", "name,tags") == [
        {"name": "_RGmine", "tags": []},
        {"name": "orders", "tags": ["eu"]},
    ]
    assert ctl(server, "list_reader_groups", "sales") == [GROUP]
    shown = hutch(server.data_dir, "ctl", "list_reader_groups", "--formatter", "table", "sales")
    assert shown.stdout.decode().splitlines() == [
        "name\tstreams\tretention\tmembers\tunread_bytes",
        "mine\tsales/orders\tmanual_at_stream_cut\tfirst,second\t26",
    ]


def test_a_scope_that_is_not_there_is_named(server: HutchServer) -> None:
    for command in ("list_scope_streams", "list_reader_groups"):
        code, complaint = refusal(server, "ctl", command, "none")
        assert (code, complaint) == (1, "hutch: there is no scope 'none'\n")


def test_the_api_has_the_same_lists(server: HutchServer) -> None:
    root = api(server)

    assert root.get(SCOPES) == ctl(server, "list_scopes")
    assert root.get(f"{SCOPES}/sales/streams") == ctl(server, "list_scope_streams", "sales")
    assert root.get(f"{SCOPES}/sales/reader-groups") == [GROUP]
    assert root.get(f"{SCOPES}/sales/tables") == [
        {
            "name": "prices",
            "state": "active",
            "partitions": 2,
            "primary_key_bytes": 8,
            "secondary_key_bytes": 0,
        }
    ]
    page = root.get(f"{SCOPES}/sales/streams?page=2&page_size=1&columns=name")
    assert (page["items"], page["total_count"]) == ([{"name": "orders"}], 2)


def test_a_user_sees_what_it_has_rights_on_and_no_other_scope(server: HutchServer) -> None:
    assert names(server, "member", SCOPES) == ["sales"]
    assert names(server, "member", f"{SCOPES}/sales/streams") == ["orders"]
    assert api(server, "member").get(f"{SCOPES}/sales/reader-groups") == [GROUP]
    assert names(server, "member", f"{SCOPES}/sales/tables") == []
    assert names(server, "other", SCOPES) == ["audit"]
    assert names(server, "none", SCOPES) == []
    for user, scope in (("member", "audit"), ("other", "sales"), ("none", "sales"), ("all", "x")):
        for kind in ("streams", "reader-groups", "tables"):
            answer = api(server, user).ask("GET", f"{SCOPES}/{scope}/{kind}")
            assert (answer.status, answer.json["reason"]) == (404, f"there is no scope '{scope}'")


def test_rights_that_are_taken_away_count_at_once(server: HutchServer) -> None:
    ctl(server, "set_permissions", "none", "", "", "^audit/log$")
    assert names(server, "none", SCOPES) == ["audit"]

    ctl(server, "clear_permissions", "none")

    assert names(server, "none", SCOPES) == []


def test_a_stream_has_the_name_by_which_a_client_reads_its_chunks(server: HutchServer) -> None:
    name = f"rmq-.2f/{held(server, 'orders')}"

    assert api(server).get("queues/%2F/orders?columns=pravega_name") == {"pravega_name": name}
    assert api(server).get("queues?columns=pravega_name") == [{"pravega_name": name}]
    assert ctl(server, "stream_status", "orders")[0]["pravega_name"] == name
    scope, stream = name.split("/")
    with controller(server, "all") as client:
        token = client.ask("getDelegationToken", of(scope, stream)).delegationToken
    with WireClient(*server.store, token=token) as wire:
        asked = m.GetStreamSegmentInfo(1, f"{name}/0.#epoch.0", token)
        assert wire.ask(asked, m.StreamSegmentInfo).exists


def test_without_a_controller_the_setting_is_named(tmp_path: Path) -> None:
    words = "the controller's port is off: wire.controller_port opens it"
    with HutchServer(tmp_path / "data") as server:
        for command in (("list_scopes",), ("list_scope_streams", "s"), ("list_reader_groups", "s")):
            assert refusal(server, "ctl", *command) == (1, f"hutch: {words}\n")
        for path in ("", "/s/streams", "/s/reader-groups", "/s/tables"):
            answer = Api(*server.management).ask("GET", SCOPES + path)
            assert (answer.status, answer.json["reason"]) == (404, words)
        server.terminate()
