"""Whatever a user makes, the administrator's export can be imported again."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.management.errors import AdministrationError, WrongRequest
from gateway.management.fields import VALUE_DEPTH_MAX
from tests.unit.gateway.management.requests.administration_rig import Rig

PLACE = {"source": "e", "destination": "s"}


def nested(depth: int) -> dict[str, Any]:
    """Return an object of so many levels."""
    value: Any = "leaf"
    for _ in range(depth - 2):
        value = [value]
    return {"a": value}


def exported(rig: Rig) -> bytes:
    return json.dumps(rig.ask("export_definitions")["definitions"]).encode()


@pytest.fixture
def rig(rig: Rig) -> Rig:
    rig.ask("add_stream", {"name": "s"})
    rig.ask("add_exchange", {"name": "e", "type": "direct"})
    return rig


WAYS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "bind": lambda value: PLACE | {"arguments": value},
    "add_exchange": lambda value: {"name": "new", "type": "direct", "arguments": value},
    "set_policy": lambda value: {
        "name": "p", "pattern": "s", "definition": {"alternate-exchange": "e"} | value
    },
}  # fmt: skip


@pytest.mark.parametrize("way", ["bind", "add_exchange"])
def test_arguments_may_be_as_deep_as_an_import_takes_them(rig: Rig, way: str) -> None:
    rig.ask(way, WAYS[way](nested(VALUE_DEPTH_MAX)))

    imported = rig.ask("import_definitions", {"whole": True}, exported(rig))

    assert imported["changes"] == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("depth", [VALUE_DEPTH_MAX + 1, 972])
def test_deeper_ones_are_refused(rig: Rig, way: str, depth: int) -> None:
    before = exported(rig)
    with pytest.raises(WrongRequest, match="nested deeper"):
        rig.ask(way, WAYS[way](nested(depth)))
    assert exported(rig) == before


@pytest.mark.parametrize(
    "value",
    [
        {"a": "\ud800"},
        {"\ud800": 1},
        {"a": float("inf")},
        {"a": 10**4_000},
        {"a": ""},
        {"": {}},
        {"x" * 10_000: [[], {}]},
        {"alternate-exchange": "\x00"},
    ],
)
@pytest.mark.parametrize("way", ["bind", "add_exchange"])
def test_what_is_taken_is_exported_so_that_it_is_taken_again(
    rig: Rig, way: str, value: dict[str, Any]
) -> None:
    try:
        rig.ask(way, WAYS[way](value))
    except AdministrationError:
        return

    assert rig.ask("import_definitions", {"whole": True}, exported(rig))["changes"] == 0


@pytest.mark.parametrize("name", ["a\udcff", "x" * 10_000, "\x00", "ü", "a b"])
def test_streams_of_any_name_that_a_client_makes_do_not_stand_in_the_way(
    rig: Rig, name: str
) -> None:
    rig.broker.link().create(name)
    rig.ask("bind", {"source": "e", "destination": name, "routing_key": name})

    rig.ask("import_definitions", {"whole": True}, exported(rig))
