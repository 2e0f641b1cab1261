"""Scopes of the controller for users and for the server's owner, and with the controller off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from gateway.broker.access.model import Right
from gateway.management.errors import NotFound
from gateway.management.scopes import Listing, ScopeRights, Scopes
from gateway.pending import Pending
from gateway.server.loop.awaiting import awaited


class User:
    """A user that may read one scope."""

    def __init__(self, name: str) -> None:
        self.name = name

    def may(self, right: Right, scope: str, stream: str) -> bool:
        return (right, scope, stream) == (Right.READ, self.name, "")


class Lists:
    """Lists of one name each, for those that may read the scope."""

    async def scopes(self, caller: ScopeRights) -> Listing:
        return [each for each in ("one", "two") if caller.may(Right.READ, each, "")], shown

    async def streams(self, caller: ScopeRights, scope: str) -> Listing | None:
        return (["stream"], shown) if caller.may(Right.READ, scope, "") else None

    async def reader_groups(self, caller: ScopeRights, scope: str) -> Listing | None:
        return (["group"], shown) if caller.may(Right.READ, scope, "") else None

    async def tables(self, caller: ScopeRights, scope: str) -> Listing | None:
        return (["table"], shown) if caller.may(Right.READ, scope, "") else None


def shown(name: str) -> dict[str, object]:
    """Show a thing that is its name."""
    return {"name": name}


def opened() -> Scopes:
    """Return scopes of a controller that is there."""
    scopes = Scopes()
    scopes.open(Lists(), User)
    return scopes


def names(asked: Coroutine[Pending[Any], None, Listing]) -> list[object]:
    things, view = asyncio.run(awaited(asked))
    return [view(each)["name"] for each in things]


OF_ONE: list[tuple[Callable[..., Any], str]] = [
    (Scopes.streams, "stream"),
    (Scopes.reader_groups, "group"),
    (Scopes.tables, "table"),
]


def test_the_owner_sees_all_scopes_and_a_user_those_of_its_rights() -> None:
    assert names(opened().scopes(None)) == ["one", "two"]
    assert names(opened().scopes("two")) == ["two"]


@pytest.mark.parametrize(("ask", "name"), OF_ONE)
def test_a_scope_that_a_user_does_not_see_is_refused_as_if_there_were_none(
    ask: Callable[..., Any], name: str
) -> None:
    assert names(ask(opened(), None, "one")) == [name]
    assert names(ask(opened(), "one", "one")) == [name]
    with pytest.raises(NotFound, match="there is no scope 'two'"):
        names(ask(opened(), "one", "two"))


@pytest.mark.parametrize("ask", [ask for ask, _ in OF_ONE])
def test_without_a_controller_the_setting_is_named(ask: Callable[..., Any]) -> None:
    for asked in (ask(Scopes(), None, "one"), Scopes().scopes("one")):
        with pytest.raises(NotFound, match=r"wire\.controller_port opens it"):
            names(asked)
