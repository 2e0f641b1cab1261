"""Tokens for the controller's callers."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gateway.broker.access.model import Right
from gateway.pravega.access.callers import Anyone
from gateway.pravega.access.tokens import TokenExpired, Tokens
from gateway.pravega.controller.errors import NoRight
from gateway.pravega.controller.records.directory import Directory
from gateway.pravega.controller.records.registry import Registry
from gateway.pravega.controller.rights import TOKEN_LIFETIME_MS, Sight, minting
from gateway.server.loop.awaiting import awaited

NOW_MS = 1_000_000
TOKENS = Tokens(b"k" * 64, lambda _user: b"standing")
TOKEN = minting(TOKENS, lambda: NOW_MS)


class Only:
    """A caller with some rights, to every stream."""

    name = "app"

    def __init__(self, *rights: Right) -> None:
        self.rights = rights

    def may(self, right: Right, scope: str, stream: str) -> bool:  # noqa: ARG002
        return right in self.rights


@pytest.mark.parametrize(
    "rights",
    [(Right.READ,), (Right.WRITE,), (Right.CONFIGURE,), (Right.READ, Right.WRITE), tuple(Right)],
)
def test_a_token_gives_its_caller_s_rights_to_one_stream_for_a_while(
    rights: tuple[Right, ...],
) -> None:
    token = TOKEN(Only(*rights), "scope", "stream")

    claims = TOKENS.check(token, NOW_MS)
    assert claims.rights_to(("scope", "stream")) == set(rights)
    assert claims.rights_to(("scope", "other")) == set()
    assert claims.user == "app"
    with pytest.raises(TokenExpired):
        TOKENS.check(token, NOW_MS + TOKEN_LIFETIME_MS)


def test_a_caller_without_a_right_gets_no_token() -> None:
    with pytest.raises(NoRight):
        TOKEN(Only(), "scope", "stream")


@pytest.mark.parametrize(
    ("scope", "stream"),
    [("scope", ""), ("scope/stream:other", ""), ("scope", "other/*"), ("scope", "other/x")],
)
def test_no_name_gets_a_token_for_a_scope_or_another_stream(scope: str, stream: str) -> None:
    with pytest.raises(NoRight):
        TOKEN(Anyone(), scope, stream)


class OnNames(Only):
    """A caller with rights to streams of some names."""

    def __init__(self, **rights: Right) -> None:
        super().__init__()
        self.of = rights

    def may(self, right: Right, scope: str, stream: str) -> bool:  # noqa: ARG002
        return self.of.get(stream) is right


def test_a_token_for_a_table_has_the_rights_to_its_name_and_to_that_of_its_parts() -> None:
    caller = OnNames(t=Right.READ, t_kvtable=Right.WRITE)

    claims = TOKENS.check(TOKEN(caller, "scope", "t", has_table=True), NOW_MS)
    assert claims.rights_to(("scope", "t")) == {Right.READ}
    assert claims.rights_to(("scope", "t_kvtable")) == {Right.READ, Right.WRITE}

    claims = TOKENS.check(TOKEN(caller, "scope", "t"), NOW_MS)
    assert claims.rights_to(("scope", "t_kvtable")) == set()


def test_rights_to_the_parts_of_a_table_are_none_to_a_stream_of_its_name() -> None:
    caller = OnNames(t_kvtable=Right.READ)

    claims = TOKENS.check(TOKEN(caller, "scope", "t", has_table=True), NOW_MS)
    assert claims.rights_to(("scope", "t")) == set()
    assert claims.rights_to(("scope", "t_kvtable")) == {Right.READ}
    with pytest.raises(NoRight):
        TOKEN(caller, "scope", "t")


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
