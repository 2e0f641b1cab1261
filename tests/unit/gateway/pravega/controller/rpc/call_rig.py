"""Callers of the controller's calls, and what they ask about."""

from collections.abc import Callable
from typing import Final

from gateway.broker.access.model import Right
from gateway.pravega.access.callers import Caller
from gateway.pravega.access.tokens import Tokens
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.controller.rpc import streams
from gateway.pravega.controller.rpc.call_context import CallContext
from gateway.server.loop.awaiting import awaited

TOKENS: Final = Tokens(b"k" * 64, lambda _user: b"standing")
OF: Final = pb.StreamInfo(scope="scope", stream="stream")
SCOPE: Final = pb.ScopeInfo(scope="scope")

Of = Callable[[Caller], CallContext]


class Only:
    """A caller with some rights to streams of some names."""

    name = "app"

    def __init__(self, *rights: Right, names: tuple[str, ...]) -> None:
        self.rights = rights
        self.names = names

    def may(self, right: Right, scope: str, stream: str) -> bool:
        return right in self.rights and f"{scope}/{stream}" in self.names


async def make_stream(
    context: CallContext,
    of: pb.StreamInfo = OF,
    *,
    segments: int = 2,
    least: int = 1,
    tags: tuple[str, ...] = (),
) -> None:
    """Make a stream, which a scaling may leave with no less than `least` segments."""
    config = pb.StreamConfig(
        streamInfo=of,
        scalingPolicy=pb.ScalingPolicy(minNumSegments=segments),
        tags=pb.Tags(tag=tags),
    )
    made = await awaited(streams.create_stream(context, config))
    assert made.status == pb.CreateStreamStatus.SUCCESS
    if least < segments:
        config.scalingPolicy.CopyFrom(
            pb.ScalingPolicy(
                scaleType=pb.ScalingPolicy.BY_RATE_IN_EVENTS_PER_SEC,
                targetRate=1_000,
                scaleFactor=2,
                minNumSegments=least,
            )
        )
        changed = await awaited(streams.update_stream(context, config))
        assert changed.status == pb.UpdateStreamStatus.SUCCESS


async def seal(context: CallContext, of: pb.StreamInfo = OF) -> None:
    sealed = await awaited(streams.seal_stream(context, of))
    assert sealed.status == pb.UpdateStreamStatus.SUCCESS
