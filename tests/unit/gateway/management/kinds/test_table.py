"""Objects of every kind on a server: found, written, removed."""

from operator import attrgetter
from typing import Any

import pytest

from gateway.broker.access.model import User, UserPermission
from gateway.broker.errors import NoSuchVirtualHost
from gateway.broker.rules.policies import Policy
from gateway.broker.topology.exchanges import Binding, Exchange
from gateway.management.definitions.importing import current_definitions
from gateway.management.kinds.kind import Key, ObjectKind
from gateway.management.kinds.people import PERMISSIONS, USERS
from gateway.management.kinds.policies import OPERATOR_POLICIES, POLICIES
from gateway.management.kinds.streams import STREAMS, DeclaredStream
from gateway.management.kinds.table import KINDS
from gateway.management.kinds.topology import BINDINGS, EXCHANGES
from gateway.management.kinds.virtual_hosts import HOSTS, Host
from tests.unit.gateway.management.requests.administration_rig import Rig

POLICY = Policy("p", pattern="a", definition={"max-age": "1h"})
LIMIT = Policy("p", pattern="a", definition={"max-length-bytes": 7})
BINDING = Binding(source="e", destination="s", routing_key="key", arguments={"b": [1], "a": True})
OBJECTS: dict[ObjectKind[Any], tuple[Key, Any]] = {
    HOSTS: (("", "new"), Host("new", "about", ("tag",), "stream", {"max-queues": 5})),
    USERS: (("", "app"), User("app", None, ("a",), {"max-connections": 3})),
    PERMISSIONS: (
        ("/", "app"),
        UserPermission(user="app", virtual_host="/", configure="c", write="w", read="r"),
    ),
    POLICIES: (("/", "p"), POLICY),
    OPERATOR_POLICIES: (("/", "p"), LIMIT),
    STREAMS: (("/", "s"), DeclaredStream("s", {"max-age": "1h"})),
    EXCHANGES: (("/", "e"), Exchange("e", "topic", arguments={"a": 1})),
    BINDINGS: (BINDINGS.key("/", BINDING), BINDING),
}

WORD = attrgetter("word")


def put(rig: Rig, kind: ObjectKind[Any]) -> set[Key]:
    key, thing = OBJECTS[kind]
    made: set[Key] = set()
    rig.broker.store_rig.run(kind.put(rig.administration, {key: thing}, made))
    return made


def test_what_is_written_is_there_and_goes_again(rig: Rig) -> None:
    states = [rig.broker.store_rig.run(current_definitions(rig.administration))]
    for kind in KINDS:
        assert put(rig, kind) == {OBJECTS[kind][0]}
        states.append(rig.broker.store_rig.run(current_definitions(rig.administration)))

    for kind, before in reversed(list(zip(KINDS, states, strict=False))):
        key, thing = OBJECTS[kind]
        assert (
            rig.broker.store_rig.run(current_definitions(rig.administration)).of(kind)[key] == thing
        )
        rig.broker.store_rig.run(kind.remove(rig.administration, key))
        assert rig.broker.store_rig.run(current_definitions(rig.administration)) == before


@pytest.mark.parametrize("kind", [HOSTS, USERS, PERMISSIONS, POLICIES, OPERATOR_POLICIES], ids=WORD)
def test_what_an_import_writes_over_is_found(rig: Rig, kind: ObjectKind[Any]) -> None:
    key, thing = OBJECTS[kind]
    assert kind.find(rig.administration, key) is None

    if kind == PERMISSIONS:
        put(rig, USERS)
    put(rig, kind)

    assert kind.find(rig.administration, key) == thing


@pytest.mark.parametrize("kind", [HOSTS, STREAMS], ids=WORD)
def test_what_is_there_already_is_not_counted_as_made(rig: Rig, kind: ObjectKind[Any]) -> None:
    assert put(rig, kind)

    assert not put(rig, kind)


@pytest.mark.parametrize("kind", [POLICIES, OPERATOR_POLICIES, STREAMS, EXCHANGES], ids=WORD)
def test_nothing_is_written_into_a_virtual_host_that_is_gone(
    rig: Rig, kind: ObjectKind[Any]
) -> None:
    key = ("nowhere", "x")

    assert kind.find(rig.administration, key) is None
    with pytest.raises(NoSuchVirtualHost):
        rig.broker.store_rig.run(kind.put(rig.administration, {key: OBJECTS[kind][1]}, set()))
