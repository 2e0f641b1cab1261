"""Requests that wait for their turn: they are judged by what is so when it comes."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gateway.broker.access.model import User, UserPermission
from gateway.broker.topology.exchanges import Binding, Exchange
from gateway.management.administration import OWNER, Actor, Role
from gateway.management.errors import NotAllowed, NotFound, WrongRequest
from gateway.management.requests.table import answer
from gateway.pending import Pending, start
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.unit.gateway.management.requests.administration_rig import Rig
from tests.unit.gateway.stream.link_rig import LinkRig

APP = Actor("app", frozenset({Role.MANAGEMENT}), frozenset({"/"}))
OWN, NOTHING = "^own", ""

Asked = tuple[str, Mapping[str, Any]]


@pytest.fixture
def rig(rig: Rig) -> Rig:
    """A user who has all rights on names that begin with `own`, and none on others."""
    access = rig.administration.access
    rig.broker.store_rig.run(access.put_user(User("app", None, ("management",))))
    allow(rig, OWN)
    return rig


def allow(rig: Rig, pattern: str) -> None:
    permission = UserPermission(
        user="app", virtual_host="/", configure=pattern, write=pattern, read=pattern
    )
    rig.broker.store_rig.run(rig.administration.access.put_permission(permission))


def in_this_order(rig: Rig, first: Asked, then: Asked) -> Pending[object]:
    """Begin a request of the owner, and one of the user while that waits; see both through."""
    begun = [
        start(answer(rig.administration, actor, name, arguments))
        for actor, (name, arguments) in ((OWNER, first), (APP, then))
    ]
    assert not any(each.is_settled for each in begun)
    rig.broker.loop.run_until(lambda: all(each.is_settled for each in begun))
    begun[0].result()
    return begun[1]


def test_an_exchange_that_went_meanwhile_is_judged_as_a_new_one(rig: Rig) -> None:
    """With an alternate exchange, a new one takes the right to write to that."""
    rig.ask("add_exchange", {"name": "own", "type": "direct"})
    rig.ask("add_exchange", {"name": "foreign", "type": "fanout"})
    leads_there = {"alternate-exchange": "foreign"}
    creation = {"name": "own", "type": "direct", "arguments": leads_there}

    outcome = in_this_order(rig, ("delete_exchange", {"name": "own"}), ("add_exchange", creation))

    with pytest.raises(NotAllowed):
        outcome.result()
    assert "own" not in rig.broker.virtual_host.exchanges


def test_a_super_stream_is_deleted_with_rights_on_the_partitions_that_it_has_by_then(
    rig: Rig,
) -> None:
    rig.ask("add_super_stream", {"name": "own", "partitions": 1})
    rig.ask("add_stream", {"name": "foreign"})
    binding = {"source": "own", "destination": "foreign"}

    outcome = in_this_order(rig, ("bind", binding), ("delete_super_stream", {"name": "own"}))

    with pytest.raises(NotAllowed, match="foreign"):
        outcome.result()
    assert rig.broker.streams.names() == ["foreign", "own-0"]


def test_an_exchange_that_is_no_super_stream_by_then_is_not_deleted_as_one(rig: Rig) -> None:
    host = rig.broker.virtual_host
    rig.ask("add_super_stream", {"name": "own", "partitions": 1})

    async def made_anew() -> None:
        await host.exchanges.delete("own")
        await host.exchanges.declare(Exchange("own"))
        await host.exchanges.bind(Binding(source="own", destination="own-0", routing_key="k"))

    other = start(made_anew())
    deletion = start(answer(rig.administration, OWNER, "delete_super_stream", {"name": "own"}))
    rig.broker.loop.run_until(lambda: other.is_settled and deletion.is_settled)

    with pytest.raises((WrongRequest, NotFound)):
        deletion.result()
    assert rig.broker.streams.names() == ["own-0"]


EACH: dict[str, dict[str, Any]] = {
    "add_stream": {"name": "own-new"},
    "delete_stream": {"name": "own-stream"},
    "add_exchange": {"name": "own-new", "type": "direct"},
    "delete_exchange": {"name": "own-exchange"},
    "bind": {"source": "own-exchange", "destination": "own-stream", "routing_key": "k"},
    "unbind": {"source": "own-exchange", "destination": "own-stream"},
    "add_super_stream": {"name": "own-new", "partitions": 1},
    "delete_super_stream": {"name": "own-super"},
}


@pytest.mark.parametrize("name", EACH)
def test_rights_that_were_taken_away_meanwhile_are_not_used(rig: Rig, name: str) -> None:
    rig.ask("add_stream", {"name": "own-stream"})
    rig.ask("add_exchange", {"name": "own-exchange", "type": "direct"})
    rig.ask("bind", {"source": "own-exchange", "destination": "own-stream"})
    rig.ask("add_super_stream", {"name": "own-super", "partitions": 1})
    host = rig.broker.virtual_host
    before = state(rig)
    held = AsyncExitStack()
    for lock in (
        host.exchanges.locks.hold("own-new", "own-exchange", "own-super"),
        host.streams.locks.hold("own-new", "own-stream", "own-super-0"),
    ):
        rig.broker.store_rig.run(held.enter_async_context(lock))
    asked = start(answer(rig.administration, APP, name, EACH[name]))
    assert not asked.is_settled

    allow(rig, NOTHING)
    rig.broker.store_rig.run(held.aclose())
    rig.broker.loop.run_until(lambda: asked.is_settled)

    with pytest.raises(NotAllowed):
        asked.result()
    assert state(rig) == before


def state(rig: Rig) -> tuple[list[str], set[str], list[Binding]]:
    exchanges = rig.broker.virtual_host.exchanges
    return rig.broker.streams.names(), {one.name for one in exchanges.all()}, exchanges.bindings()


ON_THE_WIRE: dict[str, m.Message] = {
    "create_stream": m.CreateStream("own-new", {}),
    "delete_stream": m.DeleteStream("own-stream"),
    "create_super_stream": m.CreateSuperStream("own-new", ("own-p",), ("0",), {}),
}


@pytest.mark.parametrize("command", ON_THE_WIRE)
def test_a_command_that_waits_is_judged_again(rig: Rig, command: str) -> None:
    rig.ask("add_stream", {"name": "own-stream"})
    client, before = rig.broker.link(user="app"), state(rig)
    host = rig.broker.virtual_host
    held = AsyncExitStack()
    for lock in (
        host.exchanges.locks.hold("own-new"),
        host.streams.locks.hold("own-new", "own-stream"),
    ):
        rig.broker.store_rig.run(held.enter_async_context(lock))
    done = client.start(command, ON_THE_WIRE[command])
    assert not done
    allow(rig, NOTHING)
    rig.broker.store_rig.run(held.aclose())

    client.finish(done)
    assert code_of(client, command) == ResponseCode.ACCESS_REFUSED
    assert state(rig) == before


def test_an_exchange_that_is_used_by_then_is_not_deleted_as_unused(rig: Rig) -> None:
    rig.ask("add_stream", {"name": "own"})
    rig.ask("add_exchange", {"name": "own-e", "type": "direct"})
    binding = {"source": "own-e", "destination": "own"}
    deletion = {"name": "own-e", "if_unused": True}

    outcome = in_this_order(rig, ("bind", binding), ("delete_exchange", deletion))

    with pytest.raises(WrongRequest, match="in use"):
        outcome.result()


def test_a_stream_that_holds_a_record_by_then_is_not_deleted_as_an_empty_one(rig: Rig) -> None:
    rig.ask("add_stream", {"name": "own"})
    streams = rig.broker.streams
    held = AsyncExitStack()
    rig.broker.store_rig.run(held.enter_async_context(streams.locks.hold("own")))
    arguments = {"name": "own", "if_empty": True}
    deletion = start(answer(rig.administration, APP, "delete_stream", arguments))
    rig.broker.loop.run_until(lambda: streams.find("own").log is not None)
    assert not deletion.is_settled

    rig.ask("publish", {"exchange": "", "routing_keys": ["own"]}, b"record")
    rig.broker.store_rig.run(held.aclose())
    rig.broker.loop.run_until(lambda: deletion.is_settled)

    with pytest.raises(WrongRequest, match="not empty"):
        deletion.result()
    assert streams.names() == ["own"]


def test_a_publisher_is_not_declared_with_a_right_that_was_taken_away_meanwhile(rig: Rig) -> None:
    rig.ask("add_stream", {"name": "own"})
    client = rig.broker.link(user="app")
    done = client.start("declare_publisher", m.DeclarePublisher(1, "", "own"))
    assert not done, "the stream's log is being opened"

    allow(rig, NOTHING)
    client.finish(done)

    assert code_of(client, "declare_publisher") == ResponseCode.ACCESS_REFUSED
    assert not client.link.publishers


def code_of(client: LinkRig, command: str) -> int:
    code = getattr(client.answer_to(command), "code", None)
    assert isinstance(code, int)
    return code


def test_an_import_that_waited_is_not_done_for_who_is_no_administrator_any_more(rig: Rig) -> None:
    run, administration = rig.broker.store_rig.run, rig.administration
    run(administration.access.put_user(User("app", None, ("administrator",))))
    run(administration.importing.take())
    body = b'{"vhosts": [{"name": "new"}]}'
    actor = Actor.of(administration.access, "app")
    asked = start(answer(administration, actor, "import_definitions", {}, body))
    assert not asked.is_settled

    rig.ask("set_user_tags", {"name": "app", "tags": ["management"]})
    administration.importing.end()
    rig.broker.loop.run_until(lambda: asked.is_settled)

    with pytest.raises(NotAllowed):
        asked.result()
    assert administration.virtual_hosts.names() == ["/"]
