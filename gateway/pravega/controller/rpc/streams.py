"""Calls about streams as a whole, and about the times that writers tell of them."""

from collections.abc import Coroutine
from typing import Any, Final, cast

from gateway.pending import Pending
from gateway.pravega.controller.errors import (
    BadName,
    InvalidRequest,
    NoSuchScope,
    NoSuchStream,
    NoSuchWriter,
    StreamExists,
    StreamIsSealed,
    StreamNotSealed,
)
from gateway.pravega.controller.records.model import StreamPolicy, StreamRecord
from gateway.pravega.controller.rounds.writers import Told
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.controller.rpc.call_context import CallContext, info
from gateway.pravega.names import marked

TAGS_MAX: Final = 128
TAG_LETTERS_MAX: Final = 256
"""As with Pravega."""

Change = Coroutine[Pending[Any], None, object]


async def create_stream(context: CallContext, request: pb.StreamConfig) -> pb.CreateStreamStatus:
    """Create a stream and its segments."""
    of = request.streamInfo
    status = pb.CreateStreamStatus.SUCCESS
    try:
        async with context.controller.hold(of.scope):
            await context.controller.streams.create(of.scope, of.stream, _policy(request))
    except StreamExists:
        status = pb.CreateStreamStatus.STREAM_EXISTS
    except NoSuchScope:
        status = pb.CreateStreamStatus.SCOPE_NOT_FOUND
    except BadName:
        status = pb.CreateStreamStatus.INVALID_STREAM_NAME
    return pb.CreateStreamStatus(status=status)


async def update_stream(context: CallContext, request: pb.StreamConfig) -> pb.UpdateStreamStatus:
    """Change the policy and the tags of a stream."""
    of = request.streamInfo
    change = context.controller.streams.update(of.scope, of.stream, _policy(request))
    return await _updated(context, of, change)


async def truncate_stream(context: CallContext, request: pb.StreamCut) -> pb.UpdateStreamStatus:
    """Truncate at a cut."""
    of = request.streamInfo
    change = context.controller.streams.truncate(of.scope, of.stream, request.cut)
    return await _updated(context, of, change)


async def seal_stream(context: CallContext, request: pb.StreamInfo) -> pb.UpdateStreamStatus:
    """Let a stream take no more; marks are none that clients write."""
    of = marked(request.stream)
    change = context.controller.seal(request.scope, request.stream) if of is None else None
    return await _updated(context, request, change or _found(context, request.scope, of or ""))


async def delete_stream(context: CallContext, request: pb.StreamInfo) -> pb.DeleteStreamStatus:
    """Delete a sealed stream, or the marks of one."""
    status = pb.DeleteStreamStatus.SUCCESS
    try:
        async with context.controller.hold(request.scope):
            if (of := marked(request.stream)) is not None:
                await context.controller.streams.delete_marks(request.scope, of)
            else:
                await context.controller.streams.delete(request.scope, request.stream)
    except (NoSuchScope, NoSuchStream):
        status = pb.DeleteStreamStatus.STREAM_NOT_FOUND
    except StreamNotSealed:
        status = pb.DeleteStreamStatus.STREAM_NOT_SEALED
    return pb.DeleteStreamStatus(status=status)


async def _found(context: CallContext, scope: str, name: str) -> None:
    context.controller.registry.stream(scope, name)


async def check_stream_exists(context: CallContext, request: pb.StreamInfo) -> pb.ExistsResponse:
    """Return whether a stream exists."""
    try:
        await context.controller.stream(request.scope, request.stream)
    except (NoSuchScope, NoSuchStream):
        return pb.ExistsResponse(exists=False)
    return pb.ExistsResponse(exists=True)


async def get_stream_configuration(context: CallContext, request: pb.StreamInfo) -> pb.StreamConfig:
    """Return a stream's policy and tags."""
    return _config(await context.controller.stream(request.scope, request.stream))


async def _updated(
    context: CallContext, of: pb.StreamInfo, change: Change
) -> pb.UpdateStreamStatus:
    status = pb.UpdateStreamStatus.SUCCESS
    try:
        async with context.controller.hold(of.scope):
            await change
    except NoSuchScope:
        status = pb.UpdateStreamStatus.SCOPE_NOT_FOUND
    except NoSuchStream:
        status = pb.UpdateStreamStatus.STREAM_NOT_FOUND
    except StreamIsSealed:
        status = pb.UpdateStreamStatus.STREAM_SEALED
    except InvalidRequest:
        status = pb.UpdateStreamStatus.FAILURE
    return pb.UpdateStreamStatus(status=status)


def _policy(request: pb.StreamConfig) -> StreamPolicy:
    tags = tuple(request.tags.tag) if len(request.tags.tag) <= TAGS_MAX else ()
    if len(request.tags.tag) > TAGS_MAX or any(len(tag) > TAG_LETTERS_MAX for tag in tags):
        raise InvalidRequest(f"a stream has {TAGS_MAX} tags of {TAG_LETTERS_MAX} letters at most")
    scaling, retention = request.scalingPolicy, request.retentionPolicy
    return StreamPolicy(
        scale_type=scaling.scaleType,
        rate=scaling.targetRate,
        factor=scaling.scaleFactor,
        segments=scaling.minNumSegments,
        retention_type=retention.retentionType,
        retention=retention.retentionParam,
        retention_max=retention.retentionMax,
        tags=tags,
        aggregation_ms=request.timestampAggregationTimeout,
        rollover_bytes=request.rolloverSizeBytes,
    )


def _config(stream: StreamRecord) -> pb.StreamConfig:
    policy = stream.policy
    return pb.StreamConfig(
        streamInfo=info(stream.scope, stream.name),
        scalingPolicy=pb.ScalingPolicy(
            scaleType=cast(pb.ScalingPolicy.ScalingPolicyType, policy.scale_type),
            targetRate=policy.rate,
            scaleFactor=policy.factor,
            minNumSegments=policy.segments,
        ),
        retentionPolicy=pb.RetentionPolicy(
            retentionType=cast(pb.RetentionPolicy.RetentionPolicyType, policy.retention_type),
            retentionParam=policy.retention,
            retentionMax=policy.retention_max,
        ),
        tags=pb.Tags(tag=policy.tags),
        timestampAggregationTimeout=policy.aggregation_ms,
        rolloverSizeBytes=policy.rollover_bytes,
    )


_ANSWERS: Final = {
    Told.TAKEN: pb.TimestampResponse.SUCCESS,
    Told.INVALID_TIME: pb.TimestampResponse.INVALID_TIME,
    Told.INVALID_POSITION: pb.TimestampResponse.INVALID_POSITION,
}


async def note_timestamp(
    context: CallContext, request: pb.TimestampFromWriter
) -> pb.TimestampResponse:
    """Keep the time that a writer tells."""
    of, position = request.position.streamInfo, request.position.cut
    async with context.controller.hold(of.scope):
        stream = context.controller.registry.stream(of.scope, of.stream)
        told = await context.controller.times.tell(
            stream, request.writer, request.timestamp, position
        )
    return pb.TimestampResponse(result=_ANSWERS[told])


async def remove_writer(
    context: CallContext, request: pb.RemoveWriterRequest
) -> pb.RemoveWriterResponse:
    """Wait for the times of a writer no more."""
    of, result = request.stream, pb.RemoveWriterResponse.SUCCESS
    try:
        async with context.controller.hold(of.scope):
            stream = context.controller.registry.stream(of.scope, of.stream)
            await context.controller.times.end(stream, request.writer)
    except (NoSuchScope, NoSuchStream, NoSuchWriter):
        result = pb.RemoveWriterResponse.UNKNOWN_WRITER
    return pb.RemoveWriterResponse(result=result)
