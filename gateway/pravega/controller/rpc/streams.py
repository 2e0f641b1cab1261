"""Calls about streams as a whole."""

from collections.abc import Coroutine
from typing import Any, Final, cast

from gateway.pending import Pending
from gateway.pravega.controller.errors import (
    BadName,
    InvalidRequest,
    NoSuchScope,
    NoSuchStream,
    StreamExists,
    StreamIsSealed,
    StreamNotSealed,
)
from gateway.pravega.controller.model import Policy, Stream
from gateway.pravega.controller.names import marked
from gateway.pravega.controller.proto import controller_pb2 as pb
from gateway.pravega.controller.rpc.desk import Desk, info

TAGS_MAX: Final = 128
TAG_LETTERS_MAX: Final = 256
"""As with Pravega."""

Change = Coroutine[Pending[Any], None, object]


async def create_stream(desk: Desk, request: pb.StreamConfig) -> pb.CreateStreamStatus:
    """Create a stream and its segments."""
    of = request.streamInfo
    status = pb.CreateStreamStatus.SUCCESS
    try:
        async with desk.controller.hold(of.scope):
            await desk.controller.streams.create(of.scope, of.stream, _policy(request))
    except StreamExists:
        status = pb.CreateStreamStatus.STREAM_EXISTS
    except NoSuchScope:
        status = pb.CreateStreamStatus.SCOPE_NOT_FOUND
    except BadName:
        status = pb.CreateStreamStatus.INVALID_STREAM_NAME
    return pb.CreateStreamStatus(status=status)


async def update_stream(desk: Desk, request: pb.StreamConfig) -> pb.UpdateStreamStatus:
    """Change the policy and the tags of a stream."""
    of = request.streamInfo
    change = desk.controller.streams.update(of.scope, of.stream, _policy(request))
    return await _updated(desk, of, change)


async def truncate_stream(desk: Desk, request: pb.StreamCut) -> pb.UpdateStreamStatus:
    """Truncate at a cut."""
    of = request.streamInfo
    change = desk.controller.streams.truncate(of.scope, of.stream, request.cut)
    return await _updated(desk, of, change)


async def seal_stream(desk: Desk, request: pb.StreamInfo) -> pb.UpdateStreamStatus:
    """Let a stream take no more; marks are none that clients write."""
    of = marked(request.stream)
    change = desk.controller.seal(request.scope, request.stream) if of is None else None
    return await _updated(desk, request, change or _found(desk, request.scope, of or ""))


async def delete_stream(desk: Desk, request: pb.StreamInfo) -> pb.DeleteStreamStatus:
    """Delete a sealed stream, or the marks of one."""
    status = pb.DeleteStreamStatus.SUCCESS
    try:
        async with desk.controller.hold(request.scope):
            if (of := marked(request.stream)) is not None:
                await desk.controller.streams.delete_marks(request.scope, of)
            else:
                await desk.controller.streams.delete(request.scope, request.stream)
    except (NoSuchScope, NoSuchStream):
        status = pb.DeleteStreamStatus.STREAM_NOT_FOUND
    except StreamNotSealed:
        status = pb.DeleteStreamStatus.STREAM_NOT_SEALED
    return pb.DeleteStreamStatus(status=status)


async def _found(desk: Desk, scope: str, name: str) -> None:
    desk.controller.registry.stream(scope, name)


async def check_stream_exists(desk: Desk, request: pb.StreamInfo) -> pb.ExistsResponse:
    """Return whether a stream exists."""
    try:
        await desk.controller.stream(request.scope, request.stream)
    except (NoSuchScope, NoSuchStream):
        return pb.ExistsResponse(exists=False)
    return pb.ExistsResponse(exists=True)


async def get_stream_configuration(desk: Desk, request: pb.StreamInfo) -> pb.StreamConfig:
    """Return a stream's policy and tags."""
    return _config(await desk.controller.stream(request.scope, request.stream))


async def _updated(desk: Desk, of: pb.StreamInfo, change: Change) -> pb.UpdateStreamStatus:
    status = pb.UpdateStreamStatus.SUCCESS
    try:
        async with desk.controller.hold(of.scope):
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


def _policy(request: pb.StreamConfig) -> Policy:
    tags = tuple(request.tags.tag) if len(request.tags.tag) <= TAGS_MAX else ()
    if len(request.tags.tag) > TAGS_MAX or any(len(tag) > TAG_LETTERS_MAX for tag in tags):
        raise InvalidRequest(f"a stream has {TAGS_MAX} tags of {TAG_LETTERS_MAX} letters at most")
    scaling, retention = request.scalingPolicy, request.retentionPolicy
    return Policy(
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


def _config(stream: Stream) -> pb.StreamConfig:
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
