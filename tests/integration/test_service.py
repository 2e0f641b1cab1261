"""Alarms, maintenance and kills asked of a real server process, as its clients feel them."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.integration.administrator import can_log_in, ctl, refusal
from tests.integration.server import HutchServer
from tests.integration.tools import FAILED, TOOLS, UNREACHABLE, USAGE, run, said
from tests.waiting import HANG_S

LEADER_KILLED = (
    'case rabbit_stream_manager:lookup_leader(<<"/">>, <<"s">>) of'
    " {ok, Pid} -> exit(Pid, kill); Pid -> exit(Pid, kill) end."
)


@pytest.fixture(autouse=True)
def no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("HUTCH_"):
            monkeypatch.delenv(name)


def evaluated(server: HutchServer, expression: str) -> str:
    return said(server, "rabbitmqctl", "eval", expression).strip()


def killed(server: HutchServer, pid: str) -> str:
    return evaluated(server, f'exit(rabbit_misc:string_to_pid("{pid}"), kill).')


def is_refused(server: HutchServer) -> bool:
    try:
        socket.create_connection(server.endpoint, HANG_S).close()
    except ConnectionRefusedError:
        return True
    return False


def test_the_disk_alarm_stops_publishers_and_nobody_else(server: HutchServer) -> None:
    with Client.opened(*server.endpoint) as writer, Client.opened(*server.endpoint) as reader:
        writer.create("s")
        writer.declare(1, "s")
        reader.subscribe(1, "s", credit=10)
        ctl(server, "set_alarm", "disk")
        assert ctl(server, "status")["alarms"] == ["disk"]

        writer.publish(1, [(1, b"held")])
        assert writer.is_silent(0.3)
        declared = reader.code_of("declare_publisher", m.DeclarePublisher(1, "", "s"))
        assert declared == ResponseCode.PRECONDITION_FAILED

        ctl(server, "clear_alarm", "disk")
        assert writer.confirmed_ids(1) == [1]
        assert reader.records(1, subscription_id=1) == [(0, b"held")]


def test_a_drained_server_lets_nobody_in_and_names_no_leader(server: HutchServer) -> None:
    with Client.opened(*server.endpoint) as inside:
        inside.create("s")
        ctl(server, "drain")
        assert is_refused(server)
        answer = inside.ask(m.MetadataReply, "metadata", m.Metadata(("s",)))
        assert (answer.brokers, answer.streams[0].leader) == ((), 0xFFFF)

        ctl(server, "revive")
        answer = inside.ask(m.MetadataReply, "metadata", m.Metadata(("s",)))
        assert answer.streams[0].leader == 0
    assert can_log_in(server, "guest", "guest")


def test_a_stopped_server_keeps_all_and_serves_again(server: HutchServer) -> None:
    with Client.opened(*server.endpoint) as inside:
        inside.create("s")
        inside.declare(1, "s")
        inside.publish(1, [(1, b"kept")])
        assert inside.confirmed_ids(1) == [1]

        assert said(server, "rabbitmqctl", "stop_app")
        inside.wait_until_gone()
    assert is_refused(server)
    assert said(server, "rabbitmqctl", "start_app")

    with Client.opened(*server.endpoint) as client:
        client.subscribe(1, "s", FIRST, credit=10)
        assert client.records(1, subscription_id=1) == [(0, b"kept")]


@pytest.mark.parametrize(
    "arguments",
    [
        ("rabbitmq-streams", "restart_stream", "s"),
        (
            "rabbitmqctl",
            "eval",
            LEADER_KILLED,
        ),
    ],
    ids=["restarted", "leader killed"],
)
def test_clients_of_a_stream_that_restarts_are_told_and_come_back(
    server: HutchServer, arguments: tuple[str, ...]
) -> None:
    with Client.opened(*server.endpoint) as client:
        client.create("s")
        client.declare(1, "s")
        said(server, *arguments)

        update = client.next_of("metadata_update").message

        assert update == m.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, "s")
        client.declare(1, "s")
        client.publish(1, [(1, b"after")])
        assert client.confirmed_ids(1) == [1]


def test_connections_are_listed_as_suites_read_them_and_killed_one_by_one(
    server: HutchServer,
) -> None:
    with Client.opened(*server.endpoint) as first, Client.opened(*server.endpoint) as second:
        head, *rows = said(
            server,
            "rabbitmqctl",
            *("list_stream_connections", "-q", "--formatter", "table"),
            "conn_name,pid,client_properties",
        ).splitlines()
        assert head == "conn_name\tpid\tclient_properties"
        cells = [row.split("\t") for row in rows]
        host, port = server.endpoint
        assert all(name.endswith(f" -> {host}:{port}") for name, _, _ in cells)
        assert cells[0][1] == "<rabbit@localhost.1.1.0>"

        assert killed(server, cells[0][1]) == "true"

        first.wait_until_gone()
        assert second.code_of("create_stream", m.CreateStream("s", {})) == ResponseCode.OK
    assert run(server, "rabbitmqctl", "eval", "halt().").returncode == USAGE


def test_connections_are_listed_as_json_and_in_no_other_format(server: HutchServer) -> None:
    listing = ("rabbitmqctl", "list_stream_connections", "-q", "--formatter")
    assert json.loads(said(server, *listing, "json", "conn_name")) == []
    with Client.opened(*server.endpoint), Client.opened(*server.endpoint):
        printed = said(server, *listing, "json", "conn_name,user", "client_properties")
        first, second = json.loads(printed)
        assert printed.startswith('[\n{"conn_name":"')
        assert printed.count("\n,{") == 1
        assert first["conn_name"] != second["conn_name"]
        assert first["user"] == "guest"
        assert ["connection_name", "longstr", "tests"] in first["client_properties"]
        assert json.loads(said(server, *listing, "json"))[0].keys() == {"node", "conn_name"}

    for tool, *wrong in (
        (*listing, "csv"),
        (*listing, "table", "conn_name,nonsense"),
        ("rabbitmqctl", "status", "--formatter", "json"),
    ):
        done = run(server, tool, *wrong)
        assert (done.returncode, done.stdout) == (USAGE, ""), wrong


def test_a_tool_works_through_links_to_it(server: HutchServer, tmp_path: Path) -> None:
    near, far = tmp_path / "links" / "rabbitmqctl", tmp_path / "other-name"
    near.parent.mkdir()
    near.symlink_to(TOOLS / "rabbitmqctl")
    far.symlink_to("links/rabbitmqctl")
    for link in (near, far):
        done = run(server, str(link), "eval", "node().")
        assert (done.returncode, done.stdout) == (0, "rabbit@localhost\n")


def test_a_consumer_that_may_take_a_second_is_ended_after_it(server: HutchServer) -> None:
    assert evaluated(server, "application:set_env(rabbitmq_stream, request_timeout, 1).") == "ok"
    with Client.opened(*server.endpoint) as client:
        client.create("s")
        group = {"single-active-consumer": "true", "name": "app"}
        client.subscribe(1, "s", properties=group)
        client.next_of("consumer_update")
        client.wait_until_gone(HANG_S)


def test_users_and_virtual_hosts_are_made_as_with_rabbitmqctl(server: HutchServer) -> None:
    said(server, "rabbitmqctl", "add_user", "app", "secret")
    again = run(server, "rabbitmqctl", "add_user", "app", "secret")
    assert (again.returncode, again.stderr) == (FAILED, "Error: there is a user 'app'\n")
    said(server, "rabbitmqctl", "add_vhost", "orders")
    said(server, "rabbitmqctl", "set_permissions", "--vhost", "orders", "app", ".*", ".*", ".*")
    assert can_log_in(server, "app", "secret", "orders")

    said(server, "rabbitmqctl", "change_password", "app", "other")
    assert can_log_in(server, "app", "other", "orders")
    said(server, "rabbitmqctl", "clear_permissions", "--vhost", "orders", "app")
    said(server, "rabbitmqctl", "clear_permissions", "--vhost", "orders", "app")
    assert not can_log_in(server, "app", "other", "orders")
    said(server, "rabbitmqctl", "delete_vhost", "orders")
    said(server, "rabbitmqctl", "delete_user", "app")

    policy = '{"max-length-bytes":1000000,"stream-max-segment-size-bytes":50000}'
    options = ("--priority", "1", "--apply-to", "queues")
    said(server, "rabbitmqctl", "set_policy", "short", "^s", policy, *options)
    (found,) = ctl(server, "list_policies")
    assert (found["definition"]["max-length-bytes"], found["priority"]) == (1_000_000, 1)
    said(server, "rabbitmqctl", "clear_policy", "short")


def test_tools_say_where_the_server_is_and_that_it_is_alone(server: HutchServer) -> None:
    port = server.endpoint[1]
    assert f"port: {port}, protocol: stream\n" in said(server, "rabbitmqctl", "status")
    assert evaluated(server, "nodes().") == "[]"
    assert evaluated(server, "node().") == "rabbit@localhost"
    said(server, "rabbitmq-streams", "add_super_stream", "orders", "--partitions", "2")
    assert ctl(server, "list_super_streams")[0]["partitions"] == ["orders-0", "orders-1"]

    server.terminate()
    assert run(server, "rabbitmqctl", "status").returncode == UNREACHABLE


def test_what_is_not_an_alarm_is_refused(server: HutchServer) -> None:
    code, words = refusal(server, "ctl", "restart_stream", "none")

    assert (code, words) == (1, "hutch: there is no stream 'none'\n")
