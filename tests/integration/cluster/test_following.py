"""A member that follows: what clients, checks of health and administrators see of it."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
from functools import partial
from typing import Any

import pytest

from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.client import Client
from tests.http_client import Api
from tests.integration.administrator import ctl, refusal, run_here
from tests.integration.cluster.members import FENCED, Cluster, exit_status
from tests.integration.server import Endpoint, HutchServer
from tests.waiting import wait_until

EXISTS = ResponseCode.STREAM_ALREADY_EXISTS
MANAGEMENT = re.compile(r"management ready address=(\S+):(\d+)")


def management_of(member: HutchServer) -> Endpoint:
    """Return where the management API of a member that follows is."""
    member.wait_for_log("management ready")
    found = MANAGEMENT.findall(member.logs)[0]
    return Endpoint(found[0], int(found[1]))


def asked(endpoint: Endpoint, path: str, method: str = "GET") -> tuple[int, Any]:
    """Return status and JSON of an answer to a request without a login."""
    connection = http.client.HTTPConnection(*endpoint, timeout=10)
    connection.request(method, path)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, json.loads(content) if content else None


def members(server: HutchServer) -> dict[str, dict[str, Any]]:
    """Return what a member says of all, by name."""
    return {each["name"]: each for each in ctl(server, "members")}


def shown(server: HutchServer, *arguments: str) -> str:
    """Return what a command prints for people."""
    code, said, complaint = run_here("ctl", *arguments, "--data", str(server.data_dir))
    assert code == 0, complaint
    return said


def wait_for_both(server: HutchServer) -> None:
    """Wait until a member has seen beats of both."""
    server.wait_for_log("admin socket ready")
    wait_until(lambda: members(server).keys() == {"a", "b"})


def has_all(server: HutchServer) -> bool:
    """Return whether the one that follows has all messages, as a member sees it."""
    return bool(members(server)["b"]["lag_messages"] == 0)


def test_clients_are_refused_by_a_member_that_follows(cluster: Cluster) -> None:
    port = free_port()
    cluster.start("a").wait_until_ready()
    follower = cluster.start("b", "--port", str(port))
    follower.wait_for_log("following the log member=b")

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    cluster.members[0].kill()
    follower.wait_until_ready()
    with Client.opened("127.0.0.1", port) as client:
        client.create("orders")


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_port_that_is_taken_ends_a_member_before_it_follows(cluster: Cluster) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        follower = cluster.start("b", "--port", str(port))

        assert exit_status(follower) == 2
    assert f"cannot listen on 127.0.0.1:{port}" in follower.logs
    assert "following the log" not in follower.logs


def test_a_member_that_follows_lives_and_is_not_ready(cluster: Cluster) -> None:
    active, follower = cluster.start_two()
    wait_for_both(follower)
    endpoint = management_of(follower)

    assert asked(endpoint, "/health/live") == (200, {"status": "ok"})
    for path in ("/health/ready", "/api/health/checks/alarms", "/api/overview", "/", "/other"):
        status, answer = asked(endpoint, path)
        assert status == 503
        assert answer["reason"].startswith("member b follows the log; the active one is a, at ")
    assert asked(endpoint, "/health/live", "DELETE")[0] == 503
    assert asked(active.management, "/health/live") == (200, {"status": "ok"})
    assert asked(active.management, "/health/ready") == (200, {"status": "ok"})

    active.kill()
    follower.wait_until_ready()
    wait_until(lambda: asked(endpoint, "/health/ready")[0] == 200)
    assert asked(endpoint, "/api/overview")[0] == 401


def test_each_member_shows_all(cluster: Cluster) -> None:
    active, follower = cluster.start_two()
    for each in (active, follower):
        wait_for_both(each)
        wait_until(partial(has_all, each))
        seen = members(each)
        assert (seen["a"]["role"], seen["b"]["role"]) == ("active", "following")
        assert seen["a"]["term"] == seen["b"]["term"] == 1
        assert seen["a"]["address"].startswith("localhost:")
    assert "member b follows the log; the active one is a" in shown(follower, "status")
    assert "following" in shown(active, "status")
    assert shown(active, "members").split()[:3] == ["name", "role", "term"]
    api = Api(*active.management)
    [node] = api.get("nodes")
    assert [each["name"] for each in node["cluster_members"]] == ["a", "b"]
    assert api.get("health/checks/node-is-quorum-critical")["status"] == "ok"

    follower.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: members(active)["b"]["role"] == "silent")
    assert api.ask("GET", "health/checks/node-is-quorum-critical").status == 503
    assert members(active)["b"]["last_beat_seconds"] >= 1.5
    with Client.opened(*active.endpoint) as client:
        client.create("orders")
    wait_until(lambda: members(active)["b"]["lag_messages"] > 0)
    wait_until(lambda: members(active)["b"]["lag_seconds"] > 0)
    follower.process.send_signal(signal.SIGCONT)
    wait_until(lambda: members(active)["b"]["role"] == "following")


def test_what_takes_a_store_is_refused_by_a_member_that_follows(cluster: Cluster) -> None:
    _, follower = cluster.start_two()
    wait_for_both(follower)

    code, words = refusal(follower, "ctl", "list_users")

    assert code == 1
    assert "member b follows the log; the active one is a" in words


def test_a_member_takes_over_when_it_is_asked_to(cluster: Cluster) -> None:
    active, follower = cluster.start_two(beats=1_000)
    with Client.opened(*active.endpoint) as client:
        client.create("orders")
    code, words = refusal(active, "ctl", "takeover")
    assert (code, "member a is active" in words) == (1, True)
    wait_for_both(follower)

    ctl(follower, "takeover")

    follower.wait_until_ready()
    assert exit_status(active) == FENCED
    with Client.opened(*follower.endpoint) as client:
        assert client.code_of("create_stream", m.CreateStream("orders", {})) == EXISTS
    assert "is silent" not in follower.logs
    active.start()
    active.wait_for_log("following the log member=a number=")


def test_a_member_that_follows_stops_when_it_is_told_to(cluster: Cluster) -> None:
    active, follower = cluster.start_two()
    wait_for_both(follower)

    follower.process.send_signal(signal.SIGTERM)

    assert exit_status(follower) == 0
    assert "stopped clean=True" in follower.logs
    assert not (follower.data_dir / "admin.sock").exists()
    assert active.is_running
    follower.start()
    follower.wait_for_log("following the log member=b number=")


def test_a_member_that_is_forgotten_is_known_again_when_it_is_there(cluster: Cluster) -> None:
    active, follower = cluster.start_two()
    wait_for_both(active)
    follower.kill()

    ctl(active, "forget_member", "b")

    wait_until(lambda: members(active).keys() == {"a"})
    assert refusal(active, "ctl", "forget_member", "b") == (1, "hutch: there is no member 'b'\n")
    code, words = refusal(active, "ctl", "forget_member", "a")
    assert (code, "is this member itself" in words) == (1, True)
    follower.start()
    wait_for_both(active)
