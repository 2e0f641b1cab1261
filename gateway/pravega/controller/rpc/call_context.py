"""The things that answers are made from, and parts that several answers have."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from gateway.pravega.access.callers import Caller
from gateway.pravega.controller.controller import Controller
from gateway.pravega.controller.records.directory import Names, wanted
from gateway.pravega.controller.records.epochs import StreamSegment
from gateway.pravega.controller.rights import Minting, Sight
from gateway.pravega.controller.rpc import controller_pb2 as pb

PAGE: Final = 100
"""Names in one answer to a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """One call's view of the controller.

    Attributes:
        controller: Scopes, streams and transactions.
        address: Host and port of the wire protocol, as clients reach it.
        caller: The client's rights.
        token: Makes the token with which the caller reaches a stream's segments.
    """

    controller: Controller
    address: tuple[str, int]
    caller: Caller
    token: Minting

    @property
    def sight(self) -> Sight:
        """The caller's sight of the registry."""
        return Sight(self.controller.registry, self.caller)


def info(scope: str, stream: str) -> pb.StreamInfo:
    """Return a stream's name as answers have it."""
    return pb.StreamInfo(scope=scope, stream=stream)


def segment_ids(of: pb.StreamInfo, identities: Iterable[int]) -> Iterator[pb.SegmentId]:
    """Yield segments' numbers as answers have them."""
    named = info(of.scope, of.stream)
    return (pb.SegmentId(streamInfo=named, segmentId=each) for each in identities)


def ranges(of: pb.StreamInfo, segments: Iterable[StreamSegment]) -> list[pb.SegmentRange]:
    """Return segments with their keys as answers have them."""
    found = sorted(segments)
    ids = segment_ids(of, (each.identity for each in found))
    return [
        pb.SegmentRange(segmentId=identity, minKey=each.low, maxKey=each.high)
        for identity, each in zip(ids, found, strict=True)
    ]


async def page(
    names: Names, token: str, is_wanted: Callable[[str], bool]
) -> tuple[list[str], pb.ContinuationToken]:
    """Return the wanted names behind a token, in order, and the token of the names after them."""
    found = await wanted(names, is_wanted, behind=token, most=PAGE)
    return found, pb.ContinuationToken(token=found[-1] if found else token)
