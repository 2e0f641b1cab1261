"""Calls about the segments of a stream, now and before."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gateway.broker.access.model import Right
from gateway.pravega.controller.errors import InvalidRequest, NoRight, NoSuchStream
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.controller.rpc import segments as calls
from gateway.pravega.controller.rpc.call_context import CallContext
from gateway.pravega.controller.streams import OPEN_MAX
from gateway.server.loop.awaiting import awaited
from tests.unit.gateway.pravega.controller.rpc.call_rig import (
    OF,
    TOKENS,
    Of,
    Only,
    make_stream,
    seal,
)

NONE = pb.StreamInfo(scope="scope", stream="none")
NOWHERE = pb.StreamInfo(scope="other", stream="stream")
SCALED = pb.ScaleResponse
NEW = (1 << 32) + 2
"""The first segment of the second epoch of a stream that began with two."""


def segment(identity: int, of: pb.StreamInfo = OF) -> pb.SegmentId:
    return pb.SegmentId(streamInfo=of, segmentId=identity)


def keys(*edges: float) -> list[pb.ScaleRequest.KeyRangeEntry]:
    return [pb.ScaleRequest.KeyRangeEntry(start=low, end=high) for low, high in pairwise(edges)]


async def scaled(
    context: CallContext, of: pb.StreamInfo = OF, sealed: tuple[int, ...] = (0, 1)
) -> pb.ScaleResponse:
    """Put the segments of a stream together into one."""
    request = pb.ScaleRequest(streamInfo=of, sealedSegments=sealed, newKeyRanges=keys(0.0, 1.0))
    return await awaited(calls.scale(context, request))


def found(answer: pb.SegmentRanges) -> list[tuple[int, float, float]]:
    return [(each.segmentId.segmentId, each.minKey, each.maxKey) for each in answer.segmentRanges]


async def test_the_segments_of_now_come_with_their_keys_and_a_token_for_them(
    context: CallContext,
) -> None:
    await make_stream(context)

    answer = await awaited(calls.get_current_segments(context, OF))

    assert found(answer) == [(0, 0.0, 0.5), (1, 0.5, 1.0)]
    claims = TOKENS.check(answer.delegationToken, 1_000_000)
    assert claims.rights_to(("scope", "stream")) == set(Right)
    await seal(context)
    assert found(await awaited(calls.get_current_segments(context, OF))) == []
    with pytest.raises(NoSuchStream):
        await awaited(calls.get_current_segments(context, NONE))


async def test_a_token_has_the_rights_of_its_caller_and_there_is_none_without_any(
    context: CallContext, context_of: Of
) -> None:
    await make_stream(context)
    reader = context_of(Only(Right.READ, names=("scope/stream",)))

    token = (await awaited(calls.get_delegation_token(reader, OF))).delegationToken

    assert TOKENS.check(token, 1_000_000).rights_to(("scope", "stream")) == {Right.READ}
    with pytest.raises(NoRight):
        await awaited(calls.get_delegation_token(context_of(Only(names=())), OF))


async def test_an_epoch_has_the_segments_that_were_written_in_it(context: CallContext) -> None:
    await make_stream(context)
    await scaled(context)

    async def written(epoch: int) -> list[tuple[int, float, float]]:
        request = pb.GetEpochSegmentsRequest(streamInfo=OF, epoch=epoch)
        return found(await awaited(calls.get_epoch_segments(context, request)))

    assert await written(0) == [(0, 0.0, 0.5), (1, 0.5, 1.0)]
    assert await written(1) == [(NEW, 0.0, 1.0)]
    for epoch in (-1, 2):
        with pytest.raises(InvalidRequest, match=f"no epoch {epoch}"):
            await written(epoch)


async def test_only_a_segment_that_is_known_has_successors(context: CallContext) -> None:
    await make_stream(context)
    await scaled(context)

    async def after(identity: int) -> list[tuple[int, list[int]]]:
        answer = await awaited(calls.get_successors(context, segment(identity)))
        return [(each.segment.segmentId.segmentId, list(each.value)) for each in answer.segments]

    assert await after(0) == [(NEW, [0, 1])]
    assert await after(NEW) == []
    with pytest.raises(InvalidRequest, match="no segment 2"):
        await after(2)


@pytest.mark.parametrize("cut", [{0: 0}, {0: -2, 1: 0}, {0: 0, 1: 0, NEW: 0}, {5: 0}])
async def test_what_lies_between_is_told_of_cuts_alone(
    context: CallContext, cut: dict[int, int]
) -> None:
    await make_stream(context)
    await scaled(context)

    async def between(start: dict[int, int], end: dict[int, int]) -> list[int]:
        request = pb.StreamCutRange(streamInfo=OF, to=end, **{"from": start})
        answer = await awaited(calls.get_segments_between(context, request))
        return [each.segmentId for each in answer.segments]

    assert await between({}, {}) == [0, 1, NEW]
    assert await between({0: -1, 1: 3}, {}) == [0, 1, NEW]
    assert await between({NEW: 0}, {}) == [NEW]
    for start, end in ((cut, {}), ({}, cut)):
        with pytest.raises(InvalidRequest, match=f"of {len(cut)} segments"):
            await between(start, end)


async def test_a_cut_has_each_key_once_and_no_offset_below_0(context: CallContext) -> None:
    await make_stream(context)

    async def is_valid(cut: dict[int, int]) -> bool:
        request = pb.StreamCut(streamInfo=OF, cut=cut)
        return (await awaited(calls.is_stream_cut_valid(context, request))).response

    assert await is_valid({0: 0, 1: 7})
    for cut in ({}, {0: 0}, {0: 0, 1: -1}, {0: 0, 2: 0}):
        assert not await is_valid(cut)


async def test_a_segment_is_valid_while_it_is_written(context: CallContext) -> None:
    await make_stream(context)

    async def is_valid(identity: int) -> bool:
        return (await awaited(calls.is_segment_valid(context, segment(identity)))).response

    assert [await is_valid(each) for each in (0, 1, 2, NEW)] == [True, True, False, False]
    await scaled(context)
    assert [await is_valid(each) for each in (0, 1, 2, NEW)] == [False, False, False, True]
    await seal(context)
    assert not await is_valid(NEW)
    with pytest.raises(NoSuchStream):
        await awaited(calls.is_segment_valid(context, segment(0, NONE)))


async def test_a_scaling_answers_with_what_it_made(context: CallContext) -> None:
    await make_stream(context)

    answer = await scaled(context)

    assert (answer.status, answer.epoch) == (SCALED.STARTED, 1)
    assert [(each.segmentId.segmentId, each.minKey, each.maxKey) for each in answer.segments] == [
        (NEW, 0.0, 1.0)
    ]


async def test_a_scaling_of_a_stream_that_cannot_be_scaled_fails(context: CallContext) -> None:
    await make_stream(context)
    sealed = pb.StreamInfo(scope="scope", stream="sealed")
    await make_stream(context, sealed)
    await seal(context, sealed)

    for of in (NONE, NOWHERE, sealed):
        assert (await scaled(context, of)).status == SCALED.FAILURE
    # What is asked for is no scaling of these segments; of others it would have to wait.
    assert (await scaled(context, sealed=(0,))).status == SCALED.FAILURE
    assert (await scaled(context, sealed=(0, 7))).status == SCALED.PRECONDITION_FAILED


async def test_a_scaling_leaves_the_least_number_of_segments(context: CallContext) -> None:
    await make_stream(context, least=2)
    assert (await scaled(context)).status == SCALED.PRECONDITION_FAILED


@pytest.mark.parametrize("count", [OPEN_MAX, OPEN_MAX + 1])
@pytest.mark.parametrize("of_new", [True, False])
async def test_the_segments_of_a_scaling_are_counted_before_they_are_looked_at(
    context: CallContext, count: int, *, of_new: bool
) -> None:
    edges = [each / count for each in range(count + 1)] if of_new else [0.0, 1.0]
    ended = [0] if of_new else list(range(count))
    request = pb.ScaleRequest(streamInfo=NONE, sealedSegments=ended, newKeyRanges=keys(*edges))
    if count <= OPEN_MAX:
        answer = await awaited(calls.scale(context, request))
        assert answer.status == SCALED.FAILURE, "there is no such stream"
        return
    with pytest.raises(InvalidRequest, match=f"a scaling of {count} segments is above {OPEN_MAX}"):
        await awaited(calls.scale(context, request))


async def test_the_scaling_out_of_an_epoch_is_through_when_the_epoch_is_known(
    context: CallContext,
) -> None:
    await make_stream(context)
    await scaled(context)

    async def checked(epoch: int, of: pb.StreamInfo = OF) -> int:
        request = pb.ScaleStatusRequest(streamInfo=of, epoch=epoch)
        return (await awaited(calls.check_scale(context, request))).status

    through, invalid = pb.ScaleStatusResponse.SUCCESS, pb.ScaleStatusResponse.INVALID_INPUT
    assert [await checked(each) for each in (-1, 0, 1, 2)] == [invalid, through, through, invalid]
    assert [await checked(0, of) for of in (NONE, NOWHERE)] == [invalid, invalid]


async def test_segments_of_a_time_come_with_where_to_read_them_from(context: CallContext) -> None:
    await make_stream(context)

    request = pb.GetSegmentsRequest(streamInfo=OF, timestamp=0)
    answer = await awaited(calls.get_segments(context, request))

    assert [(each.segmentId.segmentId, each.offset) for each in answer.segments] == [(0, 0), (1, 0)]
    uri = await awaited(calls.get_uri(context, segment(0)))
    assert (uri.endpoint, uri.port) == ("localhost", 1)
