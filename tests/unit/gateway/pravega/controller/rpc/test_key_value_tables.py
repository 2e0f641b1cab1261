"""Calls about tables, with the rights of their caller."""

from __future__ import annotations

import pytest

from gateway.broker.access.model import Right
from gateway.pravega.controller.errors import InvalidRequest, NoSuchTable
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.controller.rpc import key_value_tables as calls
from gateway.pravega.controller.rpc import scopes, segments
from gateway.pravega.controller.rpc.call_context import PAGE, CallContext
from gateway.server.loop.awaiting import awaited
from tests.unit.gateway.pravega.controller.rpc.call_rig import TOKENS, Of, Only

CREATED = pb.CreateKeyValueTableStatus
DELETED = pb.DeleteKVTableStatus


def config(name: str = "t", scope: str = "scope", partitions: int = 2) -> pb.KeyValueTableConfig:
    return pb.KeyValueTableConfig(
        scope=scope,
        kvtName=name,
        partitionCount=partitions,
        primaryKeyLength=4,
        secondaryKeyLength=2,
        rolloverSizeBytes=1_000,
    )


def named(name: str = "t", scope: str = "scope") -> pb.KeyValueTableInfo:
    return pb.KeyValueTableInfo(scope=scope, kvtName=name)


def in_scope(scope: str = "scope", token: str = "") -> pb.KVTablesInScopeRequest:
    return pb.KVTablesInScopeRequest(
        scope=pb.ScopeInfo(scope=scope), continuationToken=pb.ContinuationToken(token=token)
    )


async def created(context: CallContext, request: pb.KeyValueTableConfig) -> int:
    return (await awaited(calls.create(context, request))).status


async def listed(context: CallContext) -> list[str]:
    answer = await awaited(calls.list_tables(context, in_scope()))
    assert answer.status == pb.KVTablesInScopeResponse.SUCCESS
    return [each.kvtName for each in answer.kvtables]


async def test_statuses_are_pravega_s(context: CallContext) -> None:
    assert await created(context, config()) == CREATED.SUCCESS
    assert await created(context, config(partitions=1)) == CREATED.TABLE_EXISTS
    assert await created(context, config(scope="other")) == CREATED.SCOPE_NOT_FOUND
    assert await created(context, config("_t")) == CREATED.INVALID_TABLE_NAME
    assert await created(context, config("_t", scope="other")) == CREATED.INVALID_TABLE_NAME
    with pytest.raises(InvalidRequest):
        await created(context, config("u", partitions=0))

    for status in (DELETED.SUCCESS, DELETED.TABLE_NOT_FOUND):
        assert (await awaited(calls.delete(context, named()))).status == status
    missing = await awaited(calls.delete(context, named(scope="other")))
    assert missing.status == DELETED.TABLE_NOT_FOUND


async def test_a_table_s_configuration_is_what_it_was_made_with(context: CallContext) -> None:
    await created(context, config())

    answer = await awaited(calls.get_configuration(context, named()))

    assert answer == pb.KeyValueTableConfigResponse(config=config())
    missing = await awaited(calls.get_configuration(context, named("u")))
    assert missing.status == pb.KeyValueTableConfigResponse.TABLE_NOT_FOUND


async def test_parts_are_told_with_their_keys_and_a_token_for_them(context: CallContext) -> None:
    await created(context, config())

    answer = await awaited(calls.get_segments(context, named()))

    assert [
        (each.segmentId.streamInfo.stream, each.segmentId.segmentId, each.minKey, each.maxKey)
        for each in answer.segmentRanges
    ] == [("t", 0, 0.0, 0.5), ("t", 1, 0.5, 1.0)]
    claims = TOKENS.check(answer.delegationToken, 1_000_000)
    assert claims.rights_to(("scope", "t_kvtable")) == set(Right)
    with pytest.raises(NoSuchTable):
        await awaited(calls.get_segments(context, named("u")))


async def test_a_token_for_a_stream_is_for_a_table_of_its_name_as_well_if_there_is_one(
    context: CallContext,
) -> None:
    of = pb.StreamInfo(scope="scope", stream="t")
    for rights in (set(), set(Right)):
        answer = await awaited(segments.get_delegation_token(context, of))
        claims = TOKENS.check(answer.delegationToken, 1_000_000)
        assert claims.rights_to(("scope", "t_kvtable")) == rights
        await created(context, config())


async def test_lists_come_in_pages(context: CallContext) -> None:
    names = [f"t{number:04}" for number in range(PAGE + 1)]
    for name in names:
        await created(context, config(name, partitions=1))

    first = await awaited(calls.list_tables(context, in_scope()))
    second = await awaited(
        calls.list_tables(context, in_scope(token=first.continuationToken.token))
    )
    third = await awaited(
        calls.list_tables(context, in_scope(token=second.continuationToken.token))
    )

    assert [len(each.kvtables) for each in (first, second, third)] == [PAGE, 1, 0]
    assert [each.kvtName for each in (*first.kvtables, *second.kvtables)] == names
    missing = await awaited(calls.list_tables(context, in_scope("other")))
    assert missing.status == pb.KVTablesInScopeResponse.SCOPE_NOT_FOUND


async def test_a_list_has_what_its_caller_may_read_alone(
    context: CallContext, context_of: Of
) -> None:
    for name in ("a", "b", "c"):
        await created(context, config(name))

    readers = [
        Only(Right.READ, names=("scope/a", "scope/c_kvtable")),
        Only(Right.READ, names=("scope/", "scope/b")),
        Only(Right.READ, names=("scope/",)),
    ]
    assert [await listed(context_of(each)) for each in readers] == [["a", "c"], ["b"], []]
    for stranger in (
        Only(Right.WRITE, names=("scope/a",)),
        Only(Right.READ, names=("scope/d",)),
    ):
        answer = await awaited(calls.list_tables(context_of(stranger), in_scope()))
        assert answer.status == pb.KVTablesInScopeResponse.SCOPE_NOT_FOUND


async def test_a_scope_is_seen_by_a_caller_that_may_read_a_table_in_it(
    context: CallContext, context_of: Of
) -> None:
    await created(context, config("a"))
    for name, is_seen in (("scope/a", True), ("scope/b", False)):
        reader = context_of(Only(Right.READ, names=(name,)))
        answer = await awaited(scopes.check_scope_exists(reader, pb.ScopeInfo(scope="scope")))
        assert answer.exists == is_seen
