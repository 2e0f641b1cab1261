"""Stages and their commit: open, fill, close, commit, discard, and the state of a sink.

Nothing of it is served yet; every request is refused with that reason.
"""

from typing import NoReturn

from gateway.stream.link import Link
from gateway.stream.refusals import Refusal
from gateway.stream.wire import pipeline_messages as p
from gateway.stream.wire.codes import ResponseCode
from gateway.stream.wire.commands import Permission


async def open_stage(link: Link, request: p.OpenStage) -> NoReturn:
    """Open a stage for a stream that the user may write to."""
    link.require(Permission.WRITE, request.stream)
    raise _not_served(f"a stage for stream {request.stream!r}")


async def stage(_link: Link, request: p.StageRecords) -> NoReturn:
    """Add records to a stage."""
    raise _not_served(f"stage {request.stage}")


async def close_stage(_link: Link, request: p.CloseStage) -> NoReturn:
    """End a stage."""
    raise _not_served(f"stage {request.stage}")


async def commit_stages(_link: Link, request: p.CommitStages) -> NoReturn:
    """Publish stages."""
    raise _not_served(f"a commit of sink {request.sink!r}")


async def discard_stages(_link: Link, _request: p.DiscardStages) -> NoReturn:
    """Drop stages."""
    raise _not_served("discarding stages")


async def sink_state(_link: Link, request: p.SinkState) -> NoReturn:
    """Say the last batch of a sink."""
    raise _not_served(f"sink {request.sink!r}")


def _not_served(what: str) -> Refusal:
    return Refusal(ResponseCode.PRECONDITION_FAILED, f"{what}: not served yet")
