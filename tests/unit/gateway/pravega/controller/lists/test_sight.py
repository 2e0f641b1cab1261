"""Scopes, groups and tables that a caller sees, and those that are not there for it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gateway.broker.access.model import Right
from gateway.pravega.controller.directory import Directory
from gateway.pravega.controller.lists.sight import Sight
from gateway.pravega.controller.registry import Registry
from gateway.server.loop.awaiting import awaited

READ, WRITE = Right.READ, Right.WRITE


class Caller:
    """A caller with rights on names."""

    def __init__(self, *rights: tuple[Right, str]) -> None:
        self.rights = rights

    def may(self, right: Right, scope: str, stream: str) -> bool:
        return (right, f"{scope}/{stream}") in self.rights


@pytest.fixture
def registry() -> Registry:
    """Scopes: `sales` with a stream and a table, and `empty`."""
    made = Registry(cast(Any, None))
    for scope in ("empty", "sales"):
        made.scopes[scope] = Directory()
    made.scopes["sales"]["orders"] = cast(Any, "a stream")
    tables: Directory[Any] = Directory()
    tables["prices"] = "a table"
    made.tables._scopes["sales"] = tables
    return made


async def is_seen(registry: Registry, scope: str, *rights: tuple[Right, str]) -> bool:
    return await awaited(Sight(registry, Caller(*rights)).streams(scope)) is not None


@pytest.mark.parametrize("right", list(Right))
async def test_a_scope_is_seen_with_any_right_on_it(registry: Registry, right: Right) -> None:
    assert await is_seen(registry, "empty", (right, "empty/"))
    assert not await is_seen(registry, "sales", (right, "empty/"))
    assert not await is_seen(registry, "none", (right, "none/"))


@pytest.mark.parametrize("name", ["orders", "prices", "prices_kvtable"])
async def test_a_scope_is_seen_with_the_right_to_read_in_it(registry: Registry, name: str) -> None:
    assert await is_seen(registry, "sales", (READ, f"sales/{name}"))
    assert not await is_seen(registry, "sales", (WRITE, f"sales/{name}"))
    assert not await is_seen(registry, "empty", (READ, f"sales/{name}"))


@pytest.mark.parametrize("right", list(Right))
def test_a_group_is_seen_with_any_right_on_its_stream(registry: Registry, right: Right) -> None:
    sight = Sight(registry, Caller((right, "sales/_RGmine")))

    assert sight.may_see_group("sales", "mine")
    assert not sight.may_see_group("sales", "other")


@pytest.mark.parametrize("right", list(Right))
def test_what_a_group_agrees_is_read_with_the_right_to_read_or_to_write_its_stream(
    registry: Registry, right: Right
) -> None:
    sight = Sight(registry, Caller((right, "sales/_RGmine")))

    assert sight.may_read_group("sales", "mine") is (right is not Right.CONFIGURE)
    assert not sight.may_read_group("sales", "other")
