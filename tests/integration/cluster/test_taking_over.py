"""Two members: what was confirmed is there, in order, whichever of them stops, and how."""

from __future__ import annotations

import signal
import time
from typing import Final

from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.http_client import Api
from tests.integration.administrator import refusal
from tests.integration.cluster.members import (
    FENCED,
    Cluster,
    Load,
    create_streams,
    exit_status,
)
from tests.waiting import wait_until

PAUSE_S: Final = 10.0
AWAY: Final = ResponseCode.STREAM_NOT_AVAILABLE


def test_all_that_was_confirmed_is_there_when_the_active_member_is_killed(
    cluster: Cluster,
) -> None:
    active, follower = cluster.start_two()
    create_streams(active.endpoint)
    load = Load(active.endpoint)
    load.wait_for_more()

    active.kill()
    load.finish()
    follower.wait_until_ready()

    firsts = load.must_be_in(follower.endpoint)
    more = Load(follower.endpoint, firsts)
    more.wait_for_more()
    more.finish()
    more.must_be_in(follower.endpoint)
    active.start()
    active.wait_for_log("following the log member=a number=")


def test_a_member_that_is_told_to_stop_hands_over(cluster: Cluster) -> None:
    active, follower = cluster.start_two(beats=1_000)
    create_streams(active.endpoint)
    load = Load(active.endpoint)
    load.wait_for_more()

    active.terminate()
    load.finish()
    follower.wait_until_ready()  # long before so many beats

    load.must_be_in(follower.endpoint)
    assert "is silent" not in follower.logs


def test_a_member_that_was_stopped_ends_when_another_one_has_taken_over(
    cluster: Cluster,
) -> None:
    active, follower = cluster.start_two()
    create_streams(active.endpoint)
    load = Load(active.endpoint)
    load.wait_for_more()
    active.process.send_signal(signal.SIGSTOP)
    follower.wait_until_ready()

    active.process.send_signal(signal.SIGCONT)
    assert exit_status(active) == FENCED
    load.finish()

    assert "another member has taken over" in active.logs
    firsts = load.must_be_in(follower.endpoint)
    active.start()
    active.wait_for_log("following the log member=a number=")
    more = Load(follower.endpoint, firsts)
    more.wait_for_more()
    more.finish()
    follower.terminate()
    active.wait_until_ready()
    more.must_be_in(active.endpoint)


def test_the_key_of_tokens_is_that_of_all_members(cluster: Cluster) -> None:
    active = cluster.start("a", "--store-port", "0")
    active.wait_until_ready()
    key = (active.data_dir / "token.key").read_bytes()
    follower = cluster.start("b", "--store-port", "0")
    follower.wait_for_log("following the log member=b")
    follower.data_dir.joinpath("token.key").write_bytes(b"another one" * 8)

    active.terminate()
    follower.wait_until_ready()

    assert (follower.data_dir / "token.key").read_bytes() == key


def test_a_pause_of_the_log_ends_no_connection_and_no_term(cluster: Cluster) -> None:
    active, follower = cluster.start_two(beats=100)
    create_streams(active.endpoint)
    load = Load(active.endpoint)
    load.wait_for_more()
    stopped = cluster.nats.each[1:]
    for each in stopped:
        each.stop()
    try:
        before = settled_count(load)
        with Client.opened(*active.endpoint) as client:  # what is there is read
            client.subscribe(1, "named", FIRST, credit=1)
            assert client.delivery().chunk.records()
        time.sleep(PAUSE_S)
        assert settled_count(load) == before
    finally:
        for each in stopped:
            each.wake()

    load.wait_for_more()
    assert load.is_connected
    load.finish()
    load.must_be_in(active.endpoint)
    assert active.logs.count("taking over term=") == 1
    assert "taking over" not in follower.logs
    begun = active.logs.count("the log does not answer, waiting seconds=0")
    assert begun >= 1
    wait_until(lambda: active.logs.count("the log answers again") == begun)


def test_requests_are_told_that_the_log_is_away_and_a_second_try_succeeds(
    cluster: Cluster,
) -> None:
    active, _ = cluster.start_two(beats=100)
    api = Api(*active.management)
    with Client.opened(*active.endpoint) as client:
        stopped = cluster.nats.each[1:]
        for each in stopped:
            each.stop()
        try:
            assert client.code_of("create_stream", m.CreateStream("a", {})) == AWAY
            refused = api.ask("PUT", "queues/%2F/b", {"arguments": {"x-queue-type": "stream"}})
            assert refused.status == 503
            assert "may still be" in refused.json["reason"]
            code, words = refusal(active, "ctl", "add_user", "app", "--no-password")
            assert (code, "cluster.request_timeout_s" in words) == (1, True)
            assert api.get("queues") == []  # what only looks is answered
            assert api.ask("GET", "health/checks/alarms").json["alarms"] == ["log_away"]
        finally:
            for each in stopped:
                each.wake()

        active.wait_for_log("the log answers again")
        wait_until(lambda: api.status("GET", "health/checks/alarms") == 200)
        for stream in ("a", "b"):
            done = client.code_of("create_stream", m.CreateStream(stream, {}))
            assert done in {ResponseCode.OK, ResponseCode.STREAM_ALREADY_EXISTS}
        wait_until(lambda: {each["name"] for each in api.get("queues")} == {"a", "b"})


def settled_count(load: Load) -> int:
    """Wait until nothing more is confirmed, and return how much was."""
    counts = [-1]

    def is_same() -> bool:
        counts.append(sum(map(len, load.confirmed)))
        time.sleep(0.2)
        return counts[-1] == counts[-2]

    wait_until(is_same)
    return counts[-1]


def test_both_directories_are_equal_at_one_number(cluster: Cluster) -> None:
    active, follower = cluster.start_two()
    create_streams(active.endpoint)
    load = Load(active.endpoint)
    load.wait_for_more(20_000)
    load.finish()
    active.terminate()
    follower.wait_until_ready()
    follower.terminate()

    first, second = cluster.directories_at_one_number()

    assert sorted(first) == sorted(second)
    assert {name for name in first if first[name] != second[name]} == set()
