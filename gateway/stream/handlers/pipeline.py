"""Many streams in one request, for pipelines: their places and sizes, and where to split them.

Each stream has a code of its own in the answer. If one is refused, the answer's reason tells of the
first.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from gateway.broker.errors import BrokerError, PreconditionFailed, StreamNotAvailable
from gateway.broker.hosts.super_streams import PartitionPlaces
from gateway.broker.patterns import Pattern, UnusablePattern, length_fault
from gateway.broker.streams.catalogue import Stream
from gateway.broker.yielding import Slice
from gateway.log.damage.errors import LogError
from gateway.log.log import StreamLog
from gateway.log.reading.locations import Start
from gateway.log.reading.plans import PlanBorder, borders_between, ends_of
from gateway.pending import Pending, start
from gateway.stream.link import Link
from gateway.stream.refusals import Refusal, code_of, reason_of
from hutch.stream import pipeline as p
from hutch.stream import wire_types
from hutch.stream.codec import one_line
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import Permission
from hutch.stream.layout import layout_of
from store.errors import StoreError

AT_ONCE: Final = 64
"""Most streams that are looked at together: each may wait for the store a few times."""


class _Pauses:
    """Pauses in which other connections go on, during one request."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._slice = Slice()

    async def pause(self) -> None:
        """Wait for the others if it is time; called once for each thing that is done."""
        if self._slice.is_over():
            await self._link.ports.wait(0)
            self._slice.begin()


async def describe_streams(link: Link, request: p.DescribeStreams) -> p.StreamsDescribed:
    """Say where streams begin and end, and of which super streams they are partitions."""
    names = await _names_of(link, request)
    described = wire_types.WrittenItems(layout_of(p.StreamDescription))
    reasons: list[str] = []
    places = PartitionPlaces(link.virtual_host)
    pauses = _Pauses(link)
    remaining = iter(names)
    while some := list(islice(remaining, AT_ONCE)):
        under_way: list[tuple[str, Pending[p.StreamDescription]]] = []
        for name in some:
            await pauses.pause()
            under_way.append((name, start(_described(link, name, places))))
        for name, pending in under_way:
            described.append(await _or_refused(name, pending, reasons))
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
    pauses = _Pauses(link)
    for name in link.streams.names():
        await pauses.pause()
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


async def _described(link: Link, name: str, places: PartitionPlaces) -> p.StreamDescription:
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


async def plan_streams(link: Link, request: p.PlanStreams) -> p.StreamsPlanned:
    """Say where ranges of streams can be split, and keep them from retention for a while."""
    pauses = _Pauses(link)
    plans: list[_Plan] = []
    for wanted in request.ranges:
        await pauses.pause()
        plans.append(_Plan(link, wanted))
    _hold(link, plans)
    planned = wire_types.WrittenItems(layout_of(p.StreamPlan))
    written = _Borders(pauses)
    remaining = iter(plans)
    while some := list(islice(remaining, AT_ONCE)):
        under_way = [(plan, start(plan.find_ends())) for plan in some]
        for plan, found in under_way:
            await found
            borders = await written.of(plan)
            planned.append(p.StreamPlan(plan.name, plan.code, borders))
    reason = next((plan.reason for plan in plans if plan.reason), None)
    return p.StreamsPlanned(ResponseCode.OK, reason, planned)  # type: ignore[arg-type]  # instead of a tuple


class _Plan:
    """One range of a request: its stream, and the outcome.

    Attributes:
        stream: The stream, None if it cannot be planned.
        code: That of the answer.
        reason: Of a refusal, in one line.
    """

    def __init__(self, link: Link, wanted: p.RangeToPlan) -> None:
        self.name = wanted.name
        self.code = ResponseCode.OK
        self.reason: str | None = None
        self.stream: Stream | None = None
        self.range = wanted.from_offset, wanted.to_offset
        self._span_bytes = wanted.span_bytes
        self._streams = link.streams
        self._found: tuple[StreamLog, Start, Start] | None = None
        try:
            self.stream = _stream_to_plan(link, wanted)
        except (Refusal, BrokerError) as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        code = code_of(error)
        assert code is not None
        self.code, self.reason = code, one_line(reason_of(error))

    async def find_ends(self) -> None:
        """Find where the range begins and ends."""
        stream, (first, end) = self.stream, self.range
        if stream is None or first == end:
            return
        while stream.evaluation is not None:  # what goes is decided already
            await stream.evaluation
        try:
            stream_log = await self._streams.logs.of(stream)
            self._found = stream_log, *await ends_of(stream_log, first, end)
        except BrokerError as error:
            self._refuse(error)
        except (StoreError, LogError):
            self._refuse(StreamNotAvailable(stream.name))

    def borders(self) -> Iterator[PlanBorder]:
        """Yield the borders; none of a stream that cannot be planned, or of an empty range."""
        if self._found is not None:
            yield from borders_between(*self._found, self._span_bytes)


class _Borders:
    """Writes the borders of an answer, of which there is a largest number."""

    def __init__(self, pauses: _Pauses) -> None:
        self._pauses = pauses
        self._count = 0

    async def of(self, plan: _Plan) -> tuple[p.RangeBorder, ...]:
        """Write the borders of a plan. Raises PreconditionFailed if there are too many in all."""
        written = wire_types.WrittenItems(layout_of(p.RangeBorder))
        for border in plan.borders():
            await self._pauses.pause()
            self._count += 1
            if self._count > p.BORDERS_MAX:
                raise PreconditionFailed(
                    f"the plan has more than {p.BORDERS_MAX} borders, up to stream {plan.name!r}:"
                    " use a larger span_bytes, or plan fewer streams at once"
                )
            written.append(p.RangeBorder(*border))
        return written  # type: ignore[return-value]  # instead of a tuple


def _stream_to_plan(link: Link, wanted: p.RangeToPlan) -> Stream:
    """Return the stream of a range. Raises Refusal or BrokerError."""
    name = wanted.name
    link.require(Permission.READ, name)
    stream = link.streams.find(name)
    if stream.entry.generation != wanted.generation:
        raise PreconditionFailed(
            f"stream {name!r} was deleted and made again: its generation is"
            f" {stream.entry.generation}, not {wanted.generation}"
        )
    if wanted.from_offset > wanted.to_offset:
        raise PreconditionFailed(f"range of stream {name!r} ends before it begins")
    if not wanted.span_bytes:
        raise PreconditionFailed(f"span_bytes of stream {name!r} is 0")
    return stream


def _hold(link: Link, plans: Iterable[_Plan]) -> None:
    """Keep the ranges of plans from retention. Raises PreconditionFailed."""
    ranges: dict[int, tuple[int, int]] = {}
    for plan in plans:
        if plan.stream is not None:
            first, end = plan.range
            other = ranges.setdefault(plan.stream.entry.generation, (first, end))
            both = min(first, other[0]), max(end, other[1])
            ranges[plan.stream.entry.generation] = both
    link.streams.logs.holds.take(link.user, link, ranges)
