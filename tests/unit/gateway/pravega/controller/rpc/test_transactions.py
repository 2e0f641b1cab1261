"""Calls about transactions: what each says of one that is open, over, or not there."""

from __future__ import annotations

import pytest

from gateway.pravega.controller.errors import InvalidRequest
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.controller.rpc import transactions as calls
from gateway.pravega.controller.rpc.call_context import CallContext
from gateway.pravega.controller.rpc.transactions import LEASE_MS_MAX, LEASE_MS_MIN, LISTED_MAX
from gateway.server.loop.awaiting import awaited
from tests.controller_rig import World
from tests.unit.gateway.pravega.controller.rpc.call_rig import OF, TOKENS, make_stream

NONE = pb.StreamInfo(scope="scope", stream="none")
NOWHERE = pb.StreamInfo(scope="other", stream="stream")
UNKNOWN = pb.TxnId(highBits=-1, lowBits=5)
PING = pb.PingTxnStatus
ENDED = pb.TxnStatus


async def begun(context: CallContext, lease_ms: int = LEASE_MS_MIN) -> pb.TxnId:
    request = pb.CreateTxnRequest(streamInfo=OF, lease=lease_ms)
    return (await awaited(calls.create_transaction(context, request))).txnId


async def pinged(
    context: CallContext, txn: pb.TxnId, lease_ms: int = LEASE_MS_MIN, of: pb.StreamInfo = OF
) -> int:
    request = pb.PingTxnRequest(streamInfo=of, txnId=txn, lease=lease_ms)
    return (await awaited(calls.ping_transaction(context, request))).status


async def state(context: CallContext, txn: pb.TxnId, of: pb.StreamInfo = OF) -> int:
    request = pb.TxnRequest(streamInfo=of, txnId=txn)
    return (await awaited(calls.check_transaction_state(context, request))).state


async def committed(context: CallContext, txn: pb.TxnId, of: pb.StreamInfo = OF) -> int:
    request = pb.TxnRequest(streamInfo=of, txnId=txn)
    return (await awaited(calls.commit_transaction(context, request))).status


async def aborted(context: CallContext, txn: pb.TxnId, of: pb.StreamInfo = OF) -> int:
    request = pb.TxnRequest(streamInfo=of, txnId=txn)
    return (await awaited(calls.abort_transaction(context, request))).status


async def test_one_that_begins_has_a_segment_beside_each_of_its_stream_and_a_token(
    context: CallContext, world: World
) -> None:
    await make_stream(context)
    request = pb.CreateTxnRequest(streamInfo=OF, lease=LEASE_MS_MIN)

    answer = await awaited(calls.create_transaction(context, request))

    assert [each.segmentId.segmentId for each in answer.activeSegments] == [0, 1]
    assert len([name for name in world.segments() if "#transaction" in name]) == 2
    assert TOKENS.check(answer.delegationToken, 1_000_000).rights_to(("scope", "stream"))
    assert await state(context, answer.txnId) == pb.TxnState.OPEN


@pytest.mark.parametrize("lease_ms", [LEASE_MS_MIN - 1, LEASE_MS_MAX + 1])
async def test_one_with_a_lease_out_of_bounds_is_not_begun(
    context: CallContext, world: World, lease_ms: int
) -> None:
    await make_stream(context)
    with pytest.raises(InvalidRequest, match=f"a lease of {lease_ms} ms"):
        await begun(context, lease_ms)
    assert not [name for name in world.segments() if "#transaction" in name]


async def test_a_ping_renews_an_open_one_up_to_the_longest_lease(
    context: CallContext, world: World
) -> None:
    await make_stream(context)
    txn = await begun(context)

    for lease_ms in (0, -1, LEASE_MS_MAX + 1):
        assert await pinged(context, txn, lease_ms) == PING.LEASE_TOO_LARGE
    world.clock.now_ms += LEASE_MS_MIN - 1
    assert await pinged(context, txn, LEASE_MS_MAX) == PING.OK
    world.clock.now_ms += LEASE_MS_MAX - 1
    assert world.controller.transactions.expired() == []
    world.clock.now_ms += 1
    assert len(world.controller.transactions.expired()) == 1


async def test_a_ping_tells_what_became_of_one(context: CallContext) -> None:
    await make_stream(context)
    kept, thrown = await begun(context), await begun(context)
    assert await committed(context, kept) == ENDED.SUCCESS
    assert await aborted(context, thrown) == ENDED.SUCCESS

    assert await pinged(context, kept) == PING.COMMITTED
    assert await pinged(context, thrown) == PING.ABORTED
    assert await pinged(context, UNKNOWN) == PING.UNKNOWN
    assert await pinged(context, kept, of=NONE) == PING.UNKNOWN


async def test_the_state_of_one_is_that_which_it_was_brought_to(context: CallContext) -> None:
    await make_stream(context)
    kept, thrown, left = [await begun(context) for _ in range(3)]
    await committed(context, kept)
    await aborted(context, thrown)

    states = [await state(context, each) for each in (kept, thrown, left, UNKNOWN)]

    known = pb.TxnState
    assert states == [known.COMMITTED, known.ABORTED, known.OPEN, known.UNKNOWN]
    assert await state(context, kept, NOWHERE) == known.UNKNOWN


async def test_one_that_was_ended_the_other_way_cannot_be_ended_this_way(
    context: CallContext,
) -> None:
    await make_stream(context)
    kept, thrown = await begun(context), await begun(context)
    await committed(context, kept)
    await aborted(context, thrown)

    assert await aborted(context, kept) == ENDED.FAILURE
    assert await committed(context, thrown) == ENDED.FAILURE
    assert await committed(context, kept) == ENDED.SUCCESS
    assert await aborted(context, thrown) == ENDED.SUCCESS


async def test_what_is_missing_is_the_stream_or_the_transaction(context: CallContext) -> None:
    await make_stream(context)
    txn = await begun(context)

    for end in (committed, aborted):
        assert await end(context, txn, NONE) == ENDED.STREAM_NOT_FOUND
        assert await end(context, txn, NOWHERE) == ENDED.STREAM_NOT_FOUND
        assert await end(context, UNKNOWN) == ENDED.TRANSACTION_NOT_FOUND
    assert await state(context, txn) == pb.TxnState.OPEN


async def test_of_many_that_are_over_the_last_ones_are_listed(
    context: CallContext, world: World
) -> None:
    await make_stream(context, segments=1)
    request = pb.ListCompletedTxnRequest(streamInfo=OF)
    txns = []
    for _ in range(LISTED_MAX + 1):
        world.clock.now_ms += 1
        txns.append(await begun(context))
        await aborted(context, txns[-1])
    await begun(context)

    listed = (await awaited(calls.list_completed_transactions(context, request))).response

    assert [each.txnId for each in listed] == txns[1:]
    assert {each.status for each in listed} == {pb.TxnResponse.ABORTED}
    for of in (NONE, NOWHERE):
        request.streamInfo.CopyFrom(of)
        answer = await awaited(calls.list_completed_transactions(context, request))
        assert not answer.response
