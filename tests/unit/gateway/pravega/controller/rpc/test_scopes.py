"""Calls about scopes, and lists of streams, with the rights of their caller."""

from __future__ import annotations

import pytest

from gateway.broker.access.model import Right
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.controller.rpc import key_value_tables
from gateway.pravega.controller.rpc import scopes as calls
from gateway.pravega.controller.rpc.call_context import PAGE, CallContext
from gateway.server.loop.awaiting import awaited
from tests.controller_rig import World
from tests.unit.gateway.pravega.controller.rpc.call_rig import (
    OF,
    SCOPE,
    Of,
    Only,
    make_stream,
    seal,
)

CREATED = pb.CreateScopeStatus
DELETED = pb.DeleteScopeStatus
OTHER = pb.ScopeInfo(scope="other")


def of(stream: str) -> pb.StreamInfo:
    return pb.StreamInfo(scope="scope", stream=stream)


async def listed(
    context: CallContext, token: str = "", scope: pb.ScopeInfo = SCOPE
) -> pb.StreamsInScopeResponse:
    request = pb.StreamsInScopeRequest(
        scope=scope, continuationToken=pb.ContinuationToken(token=token)
    )
    return await awaited(calls.list_streams(context, request))


async def tagged(
    context: CallContext, tag: str, scope: pb.ScopeInfo = SCOPE
) -> pb.StreamsInScopeResponse:
    request = pb.StreamsInScopeWithTagRequest(scope=scope, tag=tag)
    return await awaited(calls.list_streams_for_tag(context, request))


def names(answer: pb.StreamsInScopeResponse) -> list[str]:
    assert answer.status == pb.StreamsInScopeResponse.SUCCESS
    return [each.stream for each in answer.streams if not each.stream.startswith("_MARK")]


@pytest.mark.parametrize(
    ("scope", "status"),
    [
        ("other", CREATED.SUCCESS),
        ("scope", CREATED.SCOPE_EXISTS),
        ("a/b", CREATED.INVALID_SCOPE_NAME),
    ],
)
async def test_a_scope_is_made_once_under_a_name_that_one_may_have(
    context: CallContext, scope: str, status: int
) -> None:
    made = await awaited(calls.create_scope(context, pb.ScopeInfo(scope=scope)))

    assert made.status == status
    exists = await awaited(calls.check_scope_exists(context, pb.ScopeInfo(scope=scope)))
    assert exists.exists == (status != CREATED.INVALID_SCOPE_NAME)


async def test_a_scope_is_deleted_when_nothing_is_in_it(context: CallContext) -> None:
    await make_stream(context)

    async def deleted(scope: pb.ScopeInfo) -> int:
        return (await awaited(calls.delete_scope(context, scope))).status

    assert await deleted(SCOPE) == DELETED.SCOPE_NOT_EMPTY
    assert await deleted(OTHER) == DELETED.SCOPE_NOT_FOUND
    made = await awaited(calls.create_scope(context, OTHER))
    assert made.status == CREATED.SUCCESS
    assert await deleted(OTHER) == DELETED.SUCCESS
    assert await deleted(OTHER) == DELETED.SCOPE_NOT_FOUND


async def test_a_scope_goes_with_all_that_is_in_it_and_one_that_is_gone_is_no_failure(
    context: CallContext, world: World
) -> None:
    await make_stream(context)
    await make_stream(context, of("sealed"))
    await seal(context, of("sealed"))
    table = pb.KeyValueTableConfig(
        scope="scope", kvtName="t", partitionCount=1, primaryKeyLength=4, secondaryKeyLength=4
    )
    made = await awaited(key_value_tables.create(context, table))
    assert made.status == pb.CreateKeyValueTableStatus.SUCCESS
    before = [name for name in world.segments() if name.startswith("scope/")]
    assert before

    for _ in range(2):
        gone = await awaited(calls.delete_scope_recursive(context, SCOPE))
        assert gone.status == DELETED.SUCCESS

    assert not [name for name in world.segments() if name.startswith("scope/")]
    assert not (await awaited(calls.check_scope_exists(context, SCOPE))).exists


async def test_scopes_are_listed_on_which_the_caller_has_a_right(
    context: CallContext, context_of: Of
) -> None:
    for scope in ("b", "a"):
        await awaited(calls.create_scope(context, pb.ScopeInfo(scope=scope)))
    request = pb.ScopesRequest()

    everything = await awaited(calls.list_scopes(context, request))
    some = context_of(Only(Right.WRITE, names=("a/", "scope/")))
    theirs = await awaited(calls.list_scopes(some, request))

    assert list(everything.scopes) == ["a", "b", "scope"]
    assert list(theirs.scopes) == ["a", "scope"]
    request.continuationToken.token = theirs.continuationToken.token
    assert not (await awaited(calls.list_scopes(some, request))).scopes


async def test_streams_are_listed_that_the_caller_may_read(
    context: CallContext, context_of: Of
) -> None:
    for name in ("c", "a", "b"):
        await make_stream(context, of(name))

    assert names(await listed(context)) == ["a", "b", "c"]
    reader = context_of(Only(Right.READ, names=("scope/a", "scope/c")))
    assert names(await listed(reader)) == ["a", "c"]
    writer = context_of(Only(Right.WRITE, names=("scope/a",)))
    missing = pb.StreamsInScopeResponse.SCOPE_NOT_FOUND
    assert (await listed(writer)).status == missing
    assert (await listed(context, scope=OTHER)).status == missing


async def test_streams_are_listed_by_a_tag_that_they_have(
    context: CallContext, context_of: Of
) -> None:
    await make_stream(context, of("a"), tags=("red", "blue"))
    await make_stream(context, of("b"), tags=("blue",))
    await make_stream(context, of("c"))

    assert names(await tagged(context, "blue")) == ["a", "b"]
    assert names(await tagged(context, "red")) == ["a"]
    assert names(await tagged(context, "re")) == []
    reader = context_of(Only(Right.READ, names=("scope/b", "scope/c")))
    assert names(await tagged(reader, "blue")) == ["b"]
    status = (await tagged(context, "blue", OTHER)).status
    assert status == pb.StreamsInScopeResponse.SCOPE_NOT_FOUND


async def test_a_list_goes_on_behind_its_token(context: CallContext, world: World) -> None:
    await make_stream(context, of("s"))
    there = world.controller.registry.streams("scope")
    record = there["s"]
    for number in range(2 * PAGE):
        there[f"t{number:04}"] = record

    found: list[str] = []
    token = ""
    while (answer := await listed(context, token)).streams:
        assert len(answer.streams) <= PAGE
        found += names(answer)
        token = answer.continuationToken.token

    assert found == ["s", *(f"t{number:04}" for number in range(2 * PAGE))]


async def test_a_scope_exists_for_a_caller_that_sees_something_of_it(
    context: CallContext, context_of: Of
) -> None:
    await make_stream(context, OF)
    callers = {
        "scope/stream": Right.READ,
        "scope/": Right.WRITE,
        "scope/none": Right.READ,
        "other/stream": Right.READ,
    }
    seen = [
        (
            await awaited(calls.check_scope_exists(context_of(Only(right, names=(name,))), SCOPE))
        ).exists
        for name, right in callers.items()
    ]
    assert seen == [True, True, False, False]
