"""Requests on the server as a whole, on connections one by one, and on restarting a stream."""

import os

import pytest

from gateway.management.errors import Conflict, NotFound, WrongRequest
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.unit.gateway.management.requests.administration_rig import Rig
from tests.unit.gateway.management.two_members import TwoMembers

ABOUT = (
    *("product_name", "product_version", "pid", "uptime"),
    *("data_directory", "disk_free", "disk_total"),
)


def test_the_status_says_what_was_changed(rig: Rig) -> None:
    rig.ask("set_alarm", {"resource": "disk"})
    rig.ask("drain")
    rig.ask("set_consumer_update_timeout", {"timeout_ms": 3_000})
    rig.broker.link()

    status = rig.ask("status")

    about = {name: status.pop(name) for name in ABOUT}
    assert about["product_name"] == "Hutch"
    assert about["pid"] == os.getpid()
    assert about["uptime"] >= 0
    assert 0 <= about["disk_free"] <= about["disk_total"]
    assert status == {
        "listeners": [],
        "alarms": ["disk"],
        "ended": [],
        "is_disk_full": False,
        "is_draining": True,
        "is_stopped": False,
        "consumer_update_timeout_ms": 3_000,
        "connections": 1,
        "members": [],
    }
    rig.ask("clear_alarm", {"resource": "disk"})
    rig.ask("revive")
    assert rig.ask("stop_app") == {"closed": 0}
    assert rig.ask("status")["is_stopped"]
    rig.ask("start_app")
    after = rig.ask("status")
    assert (after["alarms"], after["is_draining"], after["is_stopped"]) == ([], False, False)


@pytest.mark.parametrize(
    ("request_name", "arguments", "words"),
    [
        ("set_alarm", {"resource": "paper"}, "resource is disk or memory, not 'paper'"),
        ("clear_alarm", {}, "resource is missing"),
        ("drain", {"for": 1}, "there is no argument"),
        ("set_consumer_update_timeout", {}, "timeout_ms is a whole number from 1"),
        ("set_consumer_update_timeout", {"timeout_ms": 0}, "timeout_ms is a whole number from 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    rig: Rig, request_name: str, arguments: dict[str, object], words: str
) -> None:
    with pytest.raises(WrongRequest, match=words):
        rig.ask(request_name, arguments)


def test_connections_have_numbers_by_which_one_is_ended(rig: Rig) -> None:
    first, second = rig.broker.link(), rig.broker.link()
    listed = rig.ask("list_connections")
    assert [each["number"] for each in listed] == [1, 2]
    assert listed[0]["name"] == "127.0.0.1:50000 -> 127.0.0.1:5552"
    assert listed[0]["client_properties"] == first.link.session.client_properties

    assert rig.ask("close_connections", {"number": 2}) == {"closed": 1}

    assert not first.link.is_closed
    assert second.link.is_closed
    with pytest.raises(NotFound, match="no such connection: 2"):
        rig.ask("close_connections", {"number": 2})


def test_a_restarted_stream_lets_everybody_go_and_goes_on(rig: Rig) -> None:
    client = rig.broker.link()
    client.create("s")
    client.declare(1, "s", "ref")
    client.publish(1, (7, b"before"))
    rig.broker.settle("s")

    rig.ask("restart_stream", {"name": "s"})

    told = client.take("metadata_update")
    assert told == [m.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, "s")]
    assert not client.link.publishers
    client.declare(1, "s", "ref")
    sequence = client.ask(
        m.PublisherSequence, "query_publisher_sequence", m.QueryPublisherSequence("ref", "s")
    )
    assert sequence.sequence == 7
    client.publish(1, (8, b"after"))
    rig.broker.settle("s")
    log = rig.broker.streams.find("s").log
    assert log is not None
    assert log.committed_next_offset == 2


def test_what_does_not_exist_is_not_restarted(rig: Rig) -> None:
    with pytest.raises(NotFound, match="there is no stream 'none'"):
        rig.ask("restart_stream", {"name": "none"})


def test_a_server_that_is_alone_has_no_members(rig: Rig) -> None:
    assert rig.ask("members") == []
    for name, arguments in (("takeover", {}), ("forget_member", {"name": "a"})):
        with pytest.raises(Conflict, match=r"no member of a cluster: cluster\.log makes it one"):
            rig.ask(name, arguments)


def test_the_active_member_shows_all_and_forgets_those_that_are_gone(rig: Rig) -> None:
    rig.administration.service.cluster = cluster = TwoMembers("a")

    assert rig.ask("members") == rig.ask("status")["members"] == cluster.members()
    rig.ask("forget_member", {"name": "b"})
    assert cluster.forgotten == ["b"]
    with pytest.raises(NotFound, match="no member 'c'"):
        rig.ask("forget_member", {"name": "c"})
    with pytest.raises(Conflict, match="a is this member itself"):
        rig.ask("forget_member", {"name": "a"})
    with pytest.raises(Conflict, match="member a is active"):
        rig.ask("takeover")
    assert not cluster.takeovers
