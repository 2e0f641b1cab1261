"""Many streams in one request, for pipelines: their places and sizes, and where to split them.

Each stream has a code of its own in the answer. If one is refused, the answer's reason tells of the
first.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final, NoReturn

from gateway.broker.errors import BrokerError, PreconditionFailed
from gateway.broker.patterns import Pattern, UnusablePattern, length_fault
from gateway.broker.slices import Slice
from gateway.broker.super_streams import Places
from gateway.pending import Pending, start
from gateway.stream.link import Link
from gateway.stream.refusals import Refusal, code_of, reason_of
from gateway.stream.wire import pipeline_messages as p
from gateway.stream.wire import wire_types
from gateway.stream.wire.codec import one_line
from gateway.stream.wire.codes import ResponseCode
from gateway.stream.wire.commands import Permission
from gateway.stream.wire.layout import layout_of

AT_ONCE: Final = 64
"""So many streams are looked at together: each may wait for the store a few times."""


async def describe_streams(link: Link, request: p.DescribeStreams) -> p.StreamsDescribed:
    """Say where streams begin and end, and of which super streams they are partitions."""
    names = await _names_of(link, request)
    described = wire_types.Written(layout_of(p.StreamDescription))
    reasons: list[str] = []
    places = Places(link.virtual_host)
    time_slice = Slice()
    remaining = iter(names)
    while some := list(islice(remaining, AT_ONCE)):
        under_way = [(name, start(_described(link, name, places))) for name in some]
        for name, pending in under_way:
            described.append(await _or_refused(name, pending, reasons))
            if time_slice.is_over():
                await link.ports.wait(0)
                time_slice.begin()
    reason = reasons[0] if reasons else None
    return p.StreamsDescribed(ResponseCode.OK, reason, described)  # type: ignore[arg-type]  # instead of a tuple


async def _names_of(link: Link, request: p.DescribeStreams) -> Sequence[str]:
    """Return the names in a request, or of the streams that its pattern matches, sorted."""
    if request.pattern is None:
        return request.names
    if request.names:
        raise PreconditionFailed("give either names or a pattern")
    pattern = _pattern_of(request.pattern)
    found: list[str] = []
    time_slice = Slice()
    for name in link.streams.names():
        if time_slice.is_over():
            await link.ports.wait(0)
            time_slice.begin()
        if pattern.matches(name) and link.may(Permission.READ, name):
            found.append(name)
    if len(found) > p.STREAMS_MAX:
        raise PreconditionFailed(
            f"the pattern matches {len(found)} streams, more than {p.STREAMS_MAX}"
        )
    return found


def _pattern_of(text: str) -> Pattern:
    if fault := length_fault(text):
        raise PreconditionFailed(f"the pattern {fault}")
    try:
        return Pattern(text)
    except UnusablePattern as error:
        raise PreconditionFailed(f"the pattern {error}") from None


async def _described(link: Link, name: str, places: Places) -> p.StreamDescription:
    link.require(Permission.READ, name)
    stream = link.streams.find(name)
    extent = await link.streams.logs.extent_of(stream)
    super_stream, partition = places.of(stream) or (None, 0)
    return p.StreamDescription(
        name,
        ResponseCode.OK,
        stream.entry.generation,
        extent.first_offset,
        extent.next_offset,
        extent.size_bytes,
        super_stream,
        partition,
    )


async def _or_refused(
    name: str, pending: Pending[p.StreamDescription], reasons: list[str]
) -> p.StreamDescription:
    """Return a description, or one that has only the code of a refusal; note its reason."""
    try:
        return await pending
    except (Refusal, BrokerError) as error:
        code = code_of(error)
        assert code is not None
        if not reasons and (reason := one_line(reason_of(error))):
            reasons.append(reason)
        return p.StreamDescription(name, code, 0, 0, 0, 0, None, 0)


async def plan_streams(_link: Link, _request: p.PlanStreams) -> NoReturn:
    """Say where ranges of streams can be split."""
    raise Refusal(ResponseCode.PRECONDITION_FAILED, "planning streams: not served yet")
