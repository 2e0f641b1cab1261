"""Publishers and consumers that are open when their user's permissions become fewer."""

import logging

import pytest

from gateway.broker.access.model import User, UserPermission
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.unit.gateway.management.requests.administration_rig import Rig
from tests.unit.gateway.stream.link_rig import LinkRig

PLACE = {"user": "app", "virtual_host": "/", "configure": ""}


@pytest.fixture
def client(rig: Rig) -> LinkRig:
    """A client with a publisher and two consumers on `a`, a publisher on `b`."""
    run, access = rig.broker.store_rig.run, rig.administration.access
    run(access.put_user(User("app", None)))
    run(
        access.put_permission(
            UserPermission(user="app", virtual_host="/", configure="", write=".*", read=".*")
        )
    )
    rig.broker.link().create("a", "b")
    client = rig.broker.link(user="app")
    client.declare(1, "a")
    client.declare(2, "b")
    for number in (1, 2):
        subscription = m.Subscribe(number, "a", FIRST, 1, {})
        assert client.code("subscribe", subscription) == ResponseCode.OK
    rig.broker.link().declare(1, "a")
    return client


@pytest.mark.parametrize(
    ("write", "read", "publishers", "consumers"),
    [(".*", ".*", 0, 0), ("^a$", ".*", 1, 0), ("", ".*", 2, 0), ("^b$", "^b$", 1, 2)],
)
def test_those_that_go_on_under_the_old_ones_are_counted(
    rig: Rig,
    client: LinkRig,
    caplog: pytest.LogCaptureFixture,
    write: str,
    read: str,
    publishers: int,
    consumers: int,
) -> None:
    with caplog.at_level(logging.INFO):
        answer = rig.ask("set_permissions", PLACE | {"write": write, "read": read})

    assert answer == {
        "outdated_publishers": publishers, "outdated_consumers": consumers, "closed": False,
        "is_new": False,
    }  # fmt: skip
    assert f"'outdated_publishers': {publishers}" in caplog.text
    assert (len(client.link.publishers), len(client.link.subscriptions)) == (2, 2)
    assert not client.take("metadata_update")


def test_they_are_closed_if_that_is_asked_for(rig: Rig, client: LinkRig) -> None:
    narrowed = PLACE | {"write": "^b$", "read": "^b$", "close": True}

    assert rig.ask("set_permissions", narrowed)["closed"]

    assert [each.stream for each in client.take("metadata_update")] == ["a"]
    assert list(client.link.publishers) == [2]
    assert not client.link.subscriptions
    assert rig.ask("set_permissions", narrowed)["outdated_publishers"] == 0
