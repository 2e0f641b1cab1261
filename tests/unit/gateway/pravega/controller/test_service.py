"""The controller's calls over a real gRPC channel, on a real store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gateway.pravega.controller.records.directory import LOOKS_A_TURN, Directory
from gateway.pravega.controller.rounds.writers import WriterTimes
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.controller.rpc.call_context import page
from gateway.pravega.controller.rpc.table import CALLS
from gateway.pravega.controller.service import SERVICE, ControllerService, RoundIntervals
from gateway.server.loop.awaiting import awaited
from tests.controller_rig import World
from tests.grpc_rig import listening

Ask = Callable[..., Awaitable[Any]]
Answer = Any


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path / "data")
    await world.open()
    yield world
    await world.close()


@pytest.fixture
async def ask(world: World) -> AsyncIterator[Ask]:
    service = ControllerService(world.store, world.clock, lambda: ("localhost", 12345))
    await service.open()
    world.controller = service.controller
    listener = listening(service)
    async with grpc.aio.insecure_channel("{}:{}".format(*listener.address)) as channel:

        async def asked(name: str, request: Message) -> Answer:
            method = SERVICE.methods_by_name[name]
            call = channel.unary_unary(
                f"/{SERVICE.full_name}/{name}",
                request_serializer=type(request).SerializeToString,
                response_deserializer=GetMessageClass(method.output_type).FromString,
            )
            return await call(request)

        yield asked
    await service.stop()
    listener.stop_accepting()
    for connection in list(listener.connections):
        connection.abort()  # at once: the loop ends after this


OF = pb.StreamInfo(scope="scope", stream="stream")


async def made(ask: Ask, segments: int = 2) -> None:
    await ask("createScope", pb.ScopeInfo(scope="scope"))
    config = pb.StreamConfig(streamInfo=OF, scalingPolicy=pb.ScalingPolicy(minNumSegments=segments))
    assert (await ask("createStream", config)).status == pb.CreateStreamStatus.SUCCESS


async def made_to_merge(ask: Ask) -> None:
    """Make a stream of two segments, of which its policy asks for one at least."""
    await made(ask)
    policy = pb.ScalingPolicy(
        scaleType=pb.ScalingPolicy.BY_RATE_IN_EVENTS_PER_SEC,
        targetRate=1_000,
        scaleFactor=2,
        minNumSegments=1,
    )
    changed = await ask("updateStream", pb.StreamConfig(streamInfo=OF, scalingPolicy=policy))
    assert changed.status == pb.UpdateStreamStatus.SUCCESS


async def scaled(ask: Ask) -> pb.ScaleResponse:
    keys = [pb.ScaleRequest.KeyRangeEntry(start=0.0, end=1.0)]
    request = pb.ScaleRequest(streamInfo=OF, sealedSegments=[0, 1], newKeyRanges=keys)
    response: pb.ScaleResponse = await ask("scale", request)
    return response


NEW = (1 << 32) + 2


async def test_every_call_of_the_service_is_answered() -> None:
    assert set(CALLS) == set(SERVICE.methods_by_name)


async def test_names_that_cannot_be_are_refused(ask: Ask) -> None:
    for name in ("hutch", "a/b", "", "a" * 256, ".", "..", "a\n"):
        answer = await ask("createScope", pb.ScopeInfo(scope=name))
        assert answer.status == pb.CreateScopeStatus.INVALID_SCOPE_NAME, name

    await ask("createScope", pb.ScopeInfo(scope="scope"))
    for name in ("a b", ".", ".."):
        config = pb.StreamConfig(streamInfo=pb.StreamInfo(scope="scope", stream=name))
        answer = await ask("createStream", config)
        assert answer.status == pb.CreateStreamStatus.INVALID_STREAM_NAME, name
    for name in ("...", "_.", "a."):
        assert (await ask("createScope", pb.ScopeInfo(scope=name))).status == 0, name


async def test_what_is_missing_is_said_to_be(ask: Ask) -> None:
    assert (await ask("sealStream", OF)).status == pb.UpdateStreamStatus.SCOPE_NOT_FOUND
    assert (await ask("deleteStream", OF)).status == pb.DeleteStreamStatus.STREAM_NOT_FOUND
    for name in ("getCurrentSegments", "getStreamConfiguration"):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await ask(name, OF)
        assert raised.value.code() is grpc.StatusCode.NOT_FOUND
    assert not (await ask("checkStreamExists", OF)).exists


async def test_a_stream_without_segments_is_refused(ask: Ask) -> None:
    await ask("createScope", pb.ScopeInfo(scope="scope"))

    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await ask("createStream", pb.StreamConfig(streamInfo=OF))

    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_split_and_a_merge_are_followed_from_segment_to_segment(ask: Ask) -> None:
    await made_to_merge(ask)

    response = await scaled(ask)

    assert (response.status, response.epoch) == (pb.ScaleResponse.STARTED, 1)
    after = await ask("getSegmentsImmediatelyFollowing", pb.SegmentId(streamInfo=OF, segmentId=1))
    assert [(each.segment.segmentId.segmentId, list(each.value)) for each in after.segments] == [
        (NEW, [0, 1])
    ]
    now = await ask("getCurrentSegments", OF)
    assert [each.segmentId.segmentId for each in now.segmentRanges] == [NEW]
    before = await ask("getEpochSegments", pb.GetEpochSegmentsRequest(streamInfo=OF, epoch=0))
    assert [each.segmentId.segmentId for each in before.segmentRanges] == [0, 1]
    checked = await ask("checkScale", pb.ScaleStatusRequest(streamInfo=OF, epoch=0))
    assert checked.status == pb.ScaleStatusResponse.SUCCESS


async def test_a_scaling_that_comes_again_has_the_same_answer(ask: Ask, world: World) -> None:
    await made_to_merge(ask)
    first = await scaled(ask)

    assert await scaled(ask) == first
    assert len(world.controller.registry.stream("scope", "stream").history.epochs) == 2


async def test_a_scaling_below_the_least_number_is_refused(ask: Ask) -> None:
    await made(ask)

    assert (await scaled(ask)).status == pb.ScaleResponse.PRECONDITION_FAILED


async def test_a_scaling_with_a_gap_changes_nothing(ask: Ask, world: World) -> None:
    await made(ask)
    keys = [pb.ScaleRequest.KeyRangeEntry(start=0.0, end=0.4)]

    request = pb.ScaleRequest(streamInfo=OF, sealedSegments=[0], newKeyRanges=keys)
    assert (await ask("scale", request)).status == pb.ScaleResponse.FAILURE
    request = pb.ScaleRequest(streamInfo=OF, sealedSegments=[9], newKeyRanges=keys)
    assert (await ask("scale", request)).status == pb.ScaleResponse.PRECONDITION_FAILED

    info = await world.info("scope/stream/0.#epoch.0")
    assert info is not None
    assert not info.sealed


async def test_what_lies_before_a_cut_is_deleted(ask: Ask, world: World) -> None:
    await made_to_merge(ask)
    await scaled(ask)
    await world.write("scope/stream/2.#epoch.1", b"0123456789")

    answer = await ask("truncateStream", pb.StreamCut(streamInfo=OF, cut={NEW: 4}))

    assert answer.status == pb.UpdateStreamStatus.SUCCESS
    assert await world.info("scope/stream/0.#epoch.0") is None
    head = await ask("getSegments", pb.GetSegmentsRequest(streamInfo=OF, timestamp=0))
    assert [(each.segmentId.segmentId, each.offset) for each in head.segments] == [(NEW, 4)]
    for cut in ({NEW: 11}, {0: 0, 1: 0}, {7: 0}):
        answer = await ask("truncateStream", pb.StreamCut(streamInfo=OF, cut=cut))
        assert answer.status == pb.UpdateStreamStatus.FAILURE


async def test_segments_between_two_cuts_are_found(ask: Ask) -> None:
    await made_to_merge(ask)
    await scaled(ask)

    request = pb.StreamCutRange(streamInfo=OF, to={NEW: 0}, **{"from": {0: 0, 1: 0}})
    found = await ask("getSegmentsBetween", request)

    assert [each.segmentId for each in found.segments] == [0, 1, NEW]
    valid = await ask("isStreamCutValid", pb.StreamCut(streamInfo=OF, cut={0: 0}))
    assert not valid.response


async def test_a_transaction_comes_into_its_stream_as_a_whole(ask: Ask, world: World) -> None:
    await made(ask, segments=1)
    begun = await ask("createTransaction", pb.CreateTxnRequest(streamInfo=OF, lease=60_000))
    request = pb.TxnRequest(streamInfo=OF, txnId=begun.txnId)
    (part,) = (name for name in world.segments() if "#transaction" in name)
    await world.write(part, b"event")
    assert (await ask("checkTransactionState", request)).state == pb.TxnState.OPEN

    assert (await ask("commitTransaction", request)).status == pb.TxnStatus.SUCCESS

    assert await world.content("scope/stream/0.#epoch.0") == b"event"
    assert (await ask("checkTransactionState", request)).state == pb.TxnState.COMMITTED
    assert (await ask("commitTransaction", request)).status == pb.TxnStatus.SUCCESS
    assert (await ask("abortTransaction", request)).status == pb.TxnStatus.FAILURE
    ping = pb.PingTxnRequest(streamInfo=OF, txnId=begun.txnId, lease=1_000)
    assert (await ask("pingTransaction", ping)).status == pb.PingTxnStatus.COMMITTED


async def test_the_lower_half_of_a_transactions_id_has_no_sign(ask: Ask) -> None:
    await made(ask, segments=1)
    request = pb.CreateTxnRequest(streamInfo=OF, lease=60_000)
    halves = [(await ask("createTransaction", request)).txnId.lowBits for _ in range(30)]
    assert min(halves) >= 0
    assert len(set(halves)) == 30


async def test_a_lease_that_runs_out_aborts_and_a_ping_renews_it(ask: Ask, world: World) -> None:
    await made(ask, segments=1)
    begun = await ask("createTransaction", pb.CreateTxnRequest(streamInfo=OF, lease=10_000))
    request = pb.TxnRequest(streamInfo=OF, txnId=begun.txnId)
    world.clock.now_ms += 9_999
    ping = pb.PingTxnRequest(streamInfo=OF, txnId=begun.txnId, lease=10_000)
    assert (await ask("pingTransaction", ping)).status == pb.PingTxnStatus.OK
    world.clock.now_ms += 9_999
    assert world.controller.transactions.expired() == []

    world.clock.now_ms += 1
    while (await ask("checkTransactionState", request)).state != pb.TxnState.ABORTED:
        pass

    assert not [name for name in world.segments() if "#transaction" in name]


@pytest.mark.parametrize(
    ("lease", "is_possible"),
    [(9_999, False), (10_000, True), (600_000, True), (600_001, False), (0, False), (-1, False)],
)
async def test_a_lease_is_within_the_bounds_of_pravega(
    ask: Ask, lease: int, *, is_possible: bool
) -> None:
    await made(ask)
    request = pb.CreateTxnRequest(streamInfo=OF, lease=lease)
    if is_possible:
        assert (await ask("createTransaction", request)).activeSegments
        return
    with pytest.raises(grpc.aio.AioRpcError, match=f"a lease of {lease} ms: 10000 … 600000"):
        await ask("createTransaction", request)


async def test_a_transaction_tells_the_time_of_its_writer(ask: Ask, world: World) -> None:
    await made(ask, segments=1)
    begun = await ask("createTransaction", pb.CreateTxnRequest(streamInfo=OF, lease=60_000))
    (part,) = (name for name in world.segments() if "#transaction" in name)
    await world.write(part, b"event")
    request = pb.TxnRequest(
        streamInfo=OF, txnId=begun.txnId, writerId="writer", timestamp=-(1 << 63)
    )
    for time, expected in ((-(1 << 63), {}), (7, {"writer": WriterTimes(7, {0: 5})})):
        request.timestamp = time
        assert (await ask("commitTransaction", request)).status == pb.TxnStatus.SUCCESS
        known = world.controller.registry.times.get(("scope", "stream"))
        assert (known.writers if known else {}) == expected


async def test_transactions_that_are_over_are_listed_as_they_began(ask: Ask, world: World) -> None:
    await made(ask, segments=1)
    request = pb.ListCompletedTxnRequest(streamInfo=OF)
    began = [
        (await ask("createTransaction", pb.CreateTxnRequest(streamInfo=OF, lease=60_000))).txnId
        for _ in range(3)
    ]
    for name, txn in (("abortTransaction", began[1]), ("commitTransaction", began[0])):
        world.clock.now_ms += 1_000
        await ask(name, pb.TxnRequest(streamInfo=OF, txnId=txn))

    listed = (await ask("listCompletedTransactions", request)).response

    over = [(began[0], pb.TxnResponse.COMMITTED), (began[1], pb.TxnResponse.ABORTED)]
    assert [(each.txnId, each.status) for each in listed] == over
    request.streamInfo.stream = "none"
    assert not (await ask("listCompletedTransactions", request)).response


async def test_a_stream_that_was_made_without_the_controller_is_found(
    ask: Ask, world: World
) -> None:
    name = "rmq-.2f/_orders-1/0.#epoch.0"
    await world.ask(lambda done: world.local.create_segment(name, done=done))
    await world.write(name, b"0123456789")
    await world.ask(lambda done: world.local.truncate_segment(name, 4, done=done))

    of = pb.StreamInfo(scope="rmq-.2f", stream="_orders-1")
    head = await ask("getSegments", pb.GetSegmentsRequest(streamInfo=of))

    assert [(each.segmentId.segmentId, each.offset) for each in head.segments] == [(0, 4)]
    assert (await ask("checkStreamExists", of)).exists
    own = pb.StreamInfo(scope="hutch", stream="_controller_kvtable")
    assert not (await ask("checkStreamExists", own)).exists


async def test_every_segment_is_where_the_server_is(ask: Ask) -> None:
    uri = await ask("getURI", pb.SegmentId(streamInfo=OF))

    assert (uri.endpoint, uri.port) == ("localhost", 12345)


async def test_others_have_their_turn_while_a_list_looks_for_names_that_are_seen() -> None:
    directory: Directory[None] = Directory()
    for number in range(10 * LOOKS_A_TURN):
        directory[f"{number:06}"] = None
    last = f"{10 * LOOKS_A_TURN - 1:06}"
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    names, token = await awaited(page(directory, "", last.__eq__))
    counting.cancel()
    assert (names, token.token) == ([last], last)
    assert turns >= 10
    assert (await awaited(page(directory, last, last.__eq__)))[0] == []


async def test_a_round_that_fails_does_not_end_the_rounds(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    service = ControllerService(
        world.store, world.clock, lambda: ("localhost", 1), rounds=RoundIntervals(retention_s=0.001)
    )
    rounds = 0
    went_on = asyncio.Event()

    async def retain() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            raise KeyError("a mistake")
        went_on.set()

    service.controller.retain = retain  # type: ignore[method-assign]
    await service.open()
    async with asyncio.timeout(60):
        await went_on.wait()
    await service.stop()

    assert [each.getMessage() for each in caplog.records if each.exc_info] == [
        "a round of the controller failed"
    ]
