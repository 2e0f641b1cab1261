"""Objects of every kind on a server: found, written, removed."""

from typing import Any

import pytest

from gateway.broker.access.errors import NoSuchVirtualHost
from gateway.broker.access.model import Permission, User
from gateway.broker.rules.policies import Policy
from gateway.broker.topology.exchanges import Binding, Exchange
from gateway.management.definitions.objects import KINDS, Host, Key, Stream, binding_key
from gateway.management.requests.state import KEPT, current_definitions
from tests.unit.gateway.management.requests.administration_rig import Rig

POLICY = Policy("p", pattern="a", definition={"max-age": "1h"})
LIMIT = Policy("p", pattern="a", definition={"max-length-bytes": 7})
BINDING = Binding(source="e", destination="s", routing_key="key", arguments={"b": [1], "a": True})
OBJECTS: dict[str, tuple[Key, Any]] = {
    "hosts": (("", "new"), Host("new", "about", ("tag",), "stream", {"max-queues": 5})),
    "users": (("", "app"), User("app", None, ("a",), {"max-connections": 3})),
    "permissions": (
        ("/", "app"),
        Permission(user="app", virtual_host="/", configure="c", write="w", read="r"),
    ),
    "policies": (("/", "p"), POLICY),
    "operator_policies": (("/", "p"), LIMIT),
    "streams": (("/", "s"), Stream("s", {"max-age": "1h"})),
    "exchanges": (("/", "e"), Exchange("e", "topic", arguments={"a": 1})),
    "bindings": (binding_key("/", BINDING), BINDING),
}


def put(rig: Rig, kind: str) -> set[Key]:
    key, thing = OBJECTS[kind]
    made: set[Key] = set()
    rig.broker.store_rig.run(KEPT[kind](rig.administration).put({key: thing}, made))
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
        rig.broker.store_rig.run(KEPT[kind](rig.administration).remove(key))
        assert rig.broker.store_rig.run(current_definitions(rig.administration)) == before


@pytest.mark.parametrize("kind", ["hosts", "users", "permissions", "policies", "operator_policies"])
def test_what_an_import_writes_over_is_found(rig: Rig, kind: str) -> None:
    key, thing = OBJECTS[kind]
    assert KEPT[kind](rig.administration).find(key) is None

    if kind == "permissions":
        put(rig, "users")
    put(rig, kind)

    assert KEPT[kind](rig.administration).find(key) == thing


@pytest.mark.parametrize("kind", ["hosts", "streams"])
def test_what_is_there_already_is_not_counted_as_made(rig: Rig, kind: str) -> None:
    assert put(rig, kind)

    assert not put(rig, kind)


@pytest.mark.parametrize("kind", ["policies", "operator_policies", "streams", "exchanges"])
def test_nothing_is_written_into_a_virtual_host_that_is_gone(rig: Rig, kind: str) -> None:
    kept = KEPT[kind](rig.administration)

    assert kept.find(("nowhere", "x")) is None
    with pytest.raises(NoSuchVirtualHost):
        rig.broker.store_rig.run(kept.put({("nowhere", "x"): OBJECTS[kind][1]}, set()))
