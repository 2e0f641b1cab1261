"""Calls about the segments of a stream: which there are, their successors, where they are."""

from gateway.pravega.controller.errors import (
    InvalidRequest,
    NoSuchScope,
    NoSuchStream,
    StreamIsSealed,
    TooFewSegments,
)
from gateway.pravega.controller.records import history
from gateway.pravega.controller.records.model import StreamState
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.controller.rpc.call_context import CallContext, ranges, segment_ids
from gateway.pravega.controller.streams import OPEN_MAX


async def get_current_segments(context: CallContext, request: pb.StreamInfo) -> pb.SegmentRanges:
    """Return the segments that are written now; none of a sealed stream."""
    stream = await context.controller.stream(request.scope, request.stream)
    segments = () if stream.state is StreamState.SEALED else stream.history.open
    return pb.SegmentRanges(
        segmentRanges=ranges(request, segments), delegationToken=_token(context, request)
    )


async def get_epoch_segments(
    context: CallContext, request: pb.GetEpochSegmentsRequest
) -> pb.SegmentRanges:
    """Return the segments that were written in an epoch."""
    of = request.streamInfo
    stream = await context.controller.stream(of.scope, of.stream)
    found = context.controller.transactions.shape(stream, request.epoch)
    if not found:
        raise InvalidRequest(f"{of.scope}/{of.stream} has no epoch {request.epoch}")
    return pb.SegmentRanges(segmentRanges=ranges(of, found), delegationToken=_token(context, of))


async def get_segments(context: CallContext, request: pb.GetSegmentsRequest) -> pb.SegmentsAtTime:
    """Return the segments that were written at a time, and where to read them from."""
    of = request.streamInfo
    stream = await context.controller.stream(of.scope, of.stream)
    found = history.at_time(stream, request.timestamp)
    return pb.SegmentsAtTime(
        segments=[
            pb.SegmentsAtTime.SegmentLocation(segmentId=identity, offset=found[identity.segmentId])
            for identity in segment_ids(of, sorted(found))
        ],
        delegationToken=_token(context, of),
    )


async def get_successors(context: CallContext, request: pb.SegmentId) -> pb.SuccessorResponse:
    """Return the segments that follow one, each with those that it follows."""
    of = request.streamInfo
    stream = await context.controller.stream(of.scope, of.stream)
    before = context.controller.registry.ended.last_segments(of.scope, of.stream)
    known = stream.history.segments
    if request.segmentId not in known and all(
        each.identity != request.segmentId for each in before
    ):
        raise InvalidRequest(f"{of.scope}/{of.stream} has no segment {request.segmentId}")
    found = stream.history.successors(request.segmentId, before)
    entries = [
        pb.SuccessorResponse.SegmentEntry(segment=segment, value=predecessors)
        for segment, predecessors in zip(ranges(of, found), found.values(), strict=True)
    ]
    return pb.SuccessorResponse(segments=entries, delegationToken=_token(context, of))


async def get_segments_between(
    context: CallContext, request: pb.StreamCutRange
) -> pb.StreamCutRangeResponse:
    """Return the segments with data between two cuts."""
    of = request.streamInfo
    stream = await context.controller.stream(of.scope, of.stream)
    start, end = getattr(request, "from"), request.to
    for cut in (start, end):
        if cut and not history.is_cut(stream.history, cut, least=history.READ_OFF):
            raise InvalidRequest(f"no cut of {of.scope}/{of.stream}, of {len(cut)} segments")
    return pb.StreamCutRangeResponse(
        segments=segment_ids(of, history.between(stream, start, end)),
        delegationToken=_token(context, of),
    )


async def is_segment_valid(
    context: CallContext, request: pb.SegmentId
) -> pb.SegmentValidityResponse:
    """Return whether a segment is one that is written now."""
    of = request.streamInfo
    stream = await context.controller.stream(of.scope, of.stream)
    is_open = stream.state is not StreamState.SEALED and any(
        each.identity == request.segmentId for each in stream.history.open
    )
    return pb.SegmentValidityResponse(response=is_open)


async def is_stream_cut_valid(
    context: CallContext, request: pb.StreamCut
) -> pb.StreamCutValidityResponse:
    """Return whether a cut is one of the stream."""
    of = request.streamInfo
    stream = await context.controller.stream(of.scope, of.stream)
    return pb.StreamCutValidityResponse(response=history.is_cut(stream.history, request.cut))


async def scale(context: CallContext, request: pb.ScaleRequest) -> pb.ScaleResponse:
    """End some segments and go on with others; all is done when the answer is sent."""
    of = request.streamInfo
    count = max(len(request.newKeyRanges), len(request.sealedSegments))
    if count > OPEN_MAX:
        raise InvalidRequest(f"a scaling of {count} segments is above {OPEN_MAX}")
    keys = [(each.start, each.end) for each in request.newKeyRanges]
    try:
        async with context.controller.hold(of.scope):
            scaled = await context.controller.streams.scale(
                of.scope, of.stream, request.sealedSegments, keys
            )
    except (NoSuchScope, NoSuchStream, StreamIsSealed):
        return pb.ScaleResponse(status=pb.ScaleResponse.FAILURE)
    except TooFewSegments:
        return pb.ScaleResponse(status=pb.ScaleResponse.PRECONDITION_FAILED)
    if scaled is None:
        there = context.controller.registry.stream(of.scope, of.stream).history.open
        is_open = {each.identity for each in there}.issuperset(request.sealedSegments)
        refused = pb.ScaleResponse.FAILURE if is_open else pb.ScaleResponse.PRECONDITION_FAILED
        return pb.ScaleResponse(status=refused)
    return pb.ScaleResponse(
        status=pb.ScaleResponse.STARTED, segments=ranges(of, scaled.made), epoch=scaled.number
    )


async def check_scale(
    context: CallContext, request: pb.ScaleStatusRequest
) -> pb.ScaleStatusResponse:
    """Return whether the scaling out of an epoch is through."""
    of = request.streamInfo
    try:
        stream = await context.controller.stream(of.scope, of.stream)
    except (NoSuchScope, NoSuchStream):
        return pb.ScaleStatusResponse(status=pb.ScaleStatusResponse.INVALID_INPUT)
    is_known = 0 <= request.epoch <= stream.history.last.number
    status = pb.ScaleStatusResponse.SUCCESS if is_known else pb.ScaleStatusResponse.INVALID_INPUT
    return pb.ScaleStatusResponse(status=status)


# Where, and with which token


async def get_uri(context: CallContext, _request: pb.SegmentId) -> pb.NodeUri:
    """Return where a segment is served: all are where this server's wire protocol is."""
    host, port = context.address
    return pb.NodeUri(endpoint=host, port=port)


async def get_delegation_token(context: CallContext, request: pb.StreamInfo) -> pb.DelegationToken:
    """Return a token for the segments of a stream, or a table; '' where none is needed."""
    return pb.DelegationToken(delegationToken=_token(context, request))


def _token(context: CallContext, of: pb.StreamInfo) -> str:
    has_table = of.stream in context.controller.registry.tables.of(of.scope)
    return context.token(context.caller, of.scope, of.stream, has_table=has_table)
