"""Stages and their commit: open, fill, close, commit, discard, and the state of a sink."""

from functools import partial
from typing import Final

from gateway.broker.commits.stage_filling import StageFilling
from gateway.stream.link import Link
from gateway.stream.refusals import Refusal
from hutch.formats.chunk import HEADER_BYTES
from hutch.stream import pipeline as p
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import Permission

_ALARM_PAUSE_MS: Final = 500
"""Time between two looks at the disk alarm, while a client that stages has to wait for its end."""
_DONE: Final = p.Outcome(ResponseCode.OK, None)


async def open_stage(link: Link, request: p.OpenStage) -> p.StageOpened:
    """Open a stage for a stream that the user may write to."""
    link.require(Permission.WRITE, request.stream)
    await _disk_alarm_is_over(link)
    link.require(Permission.WRITE, request.stream)
    opened = _filling(link).open(link.user, request.sink, request.batch, request.stream)
    return p.StageOpened(ResponseCode.OK, None, opened.number)


async def stage(link: Link, request: p.StageRecords) -> p.StageFilled:
    """Add records to a stage; the answer comes when there is room for more."""
    bytes_max = link.host.settings.chunk_bytes_max - HEADER_BYTES
    if len(request.data) > bytes_max:
        raise Refusal(
            ResponseCode.PRECONDITION_FAILED,
            f"stage {request.stage}: {len(request.data)} bytes at once, a chunk has {bytes_max}",
        )
    await _disk_alarm_is_over(link)
    stored = await _filling(link).add(
        link.user,
        request.stage,
        request.sequence,
        request.entries,
        request.records,
        request.data,
    )
    return p.StageFilled(ResponseCode.OK, None, stored)


async def close_stage(link: Link, request: p.CloseStage) -> p.StageClosed:
    """Close a stage; it is stored when this is answered."""
    closed = await _filling(link).close(link.user, request.stage)
    return p.StageClosed(ResponseCode.OK, None, closed.records, closed.size_bytes)


async def commit_stages(link: Link, request: p.CommitStages) -> p.StagesCommitted:
    """Publish stages in their streams, all or none, and each batch of a sink once."""
    await _disk_alarm_is_over(link)
    committed = await link.virtual_host.commits.commit(
        link.user,
        request.sink,
        request.batch,
        request.stages,
        partial(link.require, Permission.WRITE),
    )
    return p.StagesCommitted(
        ResponseCode.OK,
        None,
        committed.number,
        committed.is_repeat,
        committed.dropped,
        committed.waiting,
    )


async def discard_stages(link: Link, request: p.DiscardStages) -> p.Outcome:
    """Drop stages; those that are not there, or are committed, are passed over."""
    stages = link.virtual_host.commits.stages
    await stages.discard(stages.own(link.user, request.stages))
    return _DONE


async def sink_state(link: Link, request: p.SinkState) -> p.SinkStateReply:
    """Return the last batch that a sink has committed, and the number of its commit."""
    last_batch, number = link.virtual_host.commits.state_of(link.user, request.sink)
    return p.SinkStateReply(ResponseCode.OK, None, last_batch, number)


def _filling(link: Link) -> StageFilling:
    return link.virtual_host.commits.filling


async def _disk_alarm_is_over(link: Link) -> None:
    """Wait while publishers may not publish; the client is not read meanwhile, as these are not.

    Raises Refusal if the connection has ended, which no client sees.
    """
    while not link.host.service.takes_publishers:
        await link.ports.wait(_ALARM_PAUSE_MS)
        if link.is_closed:
            raise Refusal(ResponseCode.INTERNAL_ERROR, "the connection is gone")
