"""Calls about groups of readers, and about the streams that wait for them."""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID, uuid4

from gateway.broker.access.model import Right
from gateway.pravega.controller.errors import (
    BadName,
    InvalidRequest,
    NoRight,
    NoSuchGroup,
    NoSuchScope,
    NoSuchStream,
    OldGeneration,
    OtherGroup,
)
from gateway.pravega.controller.readers.group import Cut, ReaderGroup
from gateway.pravega.controller.records.directory import Looks
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.controller.rpc.call_context import CallContext, info

NO_IDENTITY: Final = UUID(int=0)
"""Asks for a new one, as does none at all."""
_RETENTIONS: Final = range(3)


async def create_reader_group(
    context: CallContext, request: pb.ReaderGroupConfiguration
) -> pb.CreateReaderGroupResponse:
    """Make a group of readers; answer how it is configured, also if it was there."""
    wanted = _group(request, _identity(request.readerGroupId) or str(uuid4()))
    await _check_streams(context, wanted)
    try:
        async with context.controller.hold(request.scope):
            made = await context.controller.groups.create(wanted)
    except NoSuchScope:
        return pb.CreateReaderGroupResponse(status=pb.CreateReaderGroupResponse.SCOPE_NOT_FOUND)
    except BadName:
        return pb.CreateReaderGroupResponse(status=pb.CreateReaderGroupResponse.INVALID_RG_NAME)
    return pb.CreateReaderGroupResponse(config=_configuration(made))


async def get_reader_group_config(
    context: CallContext, request: pb.ReaderGroupInfo
) -> pb.ReaderGroupConfigResponse:
    """Return how a group of readers is configured."""
    try:
        found = context.controller.groups.find(request.scope, request.readerGroup)
    except NoSuchGroup:
        return pb.ReaderGroupConfigResponse(status=pb.ReaderGroupConfigResponse.RG_NOT_FOUND)
    return pb.ReaderGroupConfigResponse(config=_configuration(found))


async def update_reader_group(
    context: CallContext, request: pb.ReaderGroupConfiguration
) -> pb.UpdateReaderGroupResponse:
    """Configure a group of readers anew; answer its new generation."""
    wanted = _group(request, _identity(request.readerGroupId))
    await _check_streams(context, wanted)
    status, generation = pb.UpdateReaderGroupResponse.SUCCESS, request.generation
    try:
        async with context.controller.hold(request.scope):
            generation = (await context.controller.groups.update(wanted)).generation
    except NoSuchGroup:
        status = pb.UpdateReaderGroupResponse.RG_NOT_FOUND
    except (OtherGroup, OldGeneration):
        status = pb.UpdateReaderGroupResponse.INVALID_CONFIG
    return pb.UpdateReaderGroupResponse(status=status, generation=generation)


async def delete_reader_group(
    context: CallContext, request: pb.ReaderGroupInfo
) -> pb.DeleteReaderGroupStatus:
    """Delete a group of readers, and the stream of its state."""
    identity = _identity(request.readerGroupId)
    status = pb.DeleteReaderGroupStatus.SUCCESS
    try:
        async with context.controller.hold(request.scope):
            await context.controller.groups.delete(request.scope, request.readerGroup, identity)
    except (NoSuchGroup, OtherGroup):
        status = pb.DeleteReaderGroupStatus.RG_NOT_FOUND
    return pb.DeleteReaderGroupStatus(status=status)


async def list_subscribers(context: CallContext, request: pb.StreamInfo) -> pb.SubscribersResponse:
    """List the groups that a stream waits for."""
    try:
        await context.controller.stream(request.scope, request.stream)
    except NoSuchStream:
        return pb.SubscribersResponse(status=pb.SubscribersResponse.STREAM_NOT_FOUND)
    found = context.controller.registry.subscribers(request.scope, request.stream)
    return pb.SubscribersResponse(subscribers=[f"{each.scope}/{each.name}" for each in found])


async def update_subscriber_cut(
    context: CallContext, request: pb.SubscriberStreamCut
) -> pb.UpdateSubscriberStatus:
    """Note the cut before which a group gives up a stream that waits for it."""
    of, cut = request.streamCut.streamInfo, request.streamCut.cut
    scope, _, name = request.subscriber.partition("/")
    groups, status = context.controller.groups, pb.UpdateSubscriberStatus.SUCCESS
    identity = _identity(request.readerGroupId)
    context.controller.registry.streams(of.scope)
    try:
        async with context.controller.hold(scope):
            context.controller.registry.stream(of.scope, of.stream)
            group = groups.find(scope, name)
            await groups.give_up(
                group, identity, request.generation, f"{of.scope}/{of.stream}", cut
            )
    except NoSuchStream:
        status = pb.UpdateSubscriberStatus.STREAM_NOT_FOUND
    except (NoSuchScope, NoSuchGroup, OtherGroup):
        status = pb.UpdateSubscriberStatus.SUBSCRIBER_NOT_FOUND
    except OldGeneration:
        status = pb.UpdateSubscriberStatus.GENERATION_MISMATCH
    except InvalidRequest:
        status = pb.UpdateSubscriberStatus.STREAM_CUT_NOT_VALID
    return pb.UpdateSubscriberStatus(status=status)


async def _check_streams(context: CallContext, group: ReaderGroup) -> None:
    """Check that the caller may read all streams of a group. Raises NoRight."""
    looks = Looks()
    for stream in dict.fromkeys((*group.starts, *group.ends)):
        scope, _, name = stream.partition("/")
        if not context.caller.may(Right.READ, scope, name):
            raise NoRight(f"no right to read {stream}")
        await looks.give()


def _identity(text: str) -> str:
    """Return a group's identity as it is stored, '' for none. Raises InvalidRequest."""
    try:
        identity = UUID(text) if text else NO_IDENTITY
    except ValueError:
        raise InvalidRequest(f"{text[:100]!r} is no id of a group of readers") from None
    return "" if identity == NO_IDENTITY else str(identity)


def _group(request: pb.ReaderGroupConfiguration, identity: str) -> ReaderGroup:
    if request.retentionType not in _RETENTIONS:
        raise InvalidRequest(f"there is no retention {request.retentionType} of groups")
    return ReaderGroup(
        scope=request.scope,
        name=request.readerGroupName,
        identity=identity,
        generation=request.generation,
        refresh_ms=request.groupRefreshTimeMillis,
        checkpoint_ms=request.automaticCheckpointIntervalMillis,
        outstanding_max=request.maxOutstandingCheckpointRequest,
        retention=request.retentionType,
        rollover_bytes=request.rolloverSizeBytes,
        starts=_cuts(request.startingStreamCuts),
        ends=_cuts(request.endingStreamCuts),
    )


def _cuts(given: Sequence[pb.StreamCut]) -> dict[str, Cut]:
    """Return cuts by streams, as a group has them. Raises InvalidRequest."""
    named = [each.streamInfo for each in given]
    if any(not of.scope or not of.stream or "/" in of.scope + of.stream for of in named):
        raise InvalidRequest("a group of readers names a stream that cannot be")
    return {f"{each.streamInfo.scope}/{each.streamInfo.stream}": dict(each.cut) for each in given}


def _configuration(group: ReaderGroup) -> pb.ReaderGroupConfiguration:
    return pb.ReaderGroupConfiguration(
        scope=group.scope,
        readerGroupName=group.name,
        groupRefreshTimeMillis=group.refresh_ms,
        automaticCheckpointIntervalMillis=group.checkpoint_ms,
        maxOutstandingCheckpointRequest=group.outstanding_max,
        retentionType=group.retention,
        generation=group.generation,
        readerGroupId=group.identity,
        startingStreamCuts=_answered(group.starts),
        endingStreamCuts=_answered(group.ends),
        rolloverSizeBytes=group.rollover_bytes,
    )


def _answered(cuts: Mapping[str, Cut]) -> list[pb.StreamCut]:
    return [
        pb.StreamCut(streamInfo=info(*stream.split("/", 1)), cut=cut)
        for stream, cut in cuts.items()
    ]
