"""Changes of scopes and streams.

A change of a stream is written first, as the stream's state with what it leads to; then its
segments are changed; then the state is settled. Each step may be repeated, so a change that was
cut short anywhere is finished by `finish`, at the next start or before the next change.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from gateway.pravega.controller.errors import (
    BadName,
    InvalidRequest,
    ScopeExists,
    ScopeNotEmpty,
    StreamExists,
    StreamIsSealed,
    StreamNotSealed,
    TooFewSegments,
)
from gateway.pravega.controller.records import history
from gateway.pravega.controller.records.epochs import Epoch, History, StreamSegment
from gateway.pravega.controller.records.model import StreamPolicy, StreamRecord, StreamState
from gateway.pravega.controller.records.registry import Registry
from gateway.pravega.controller.segments import Segments
from gateway.pravega.names import GROUP, MARK, is_name, is_scope_name, marked
from gateway.pravega.segments import COMMITTED_MAX, SEGMENTS_MAX

OPEN_MAX: Final = 1_000
"""Segments of a stream that are written at one time."""
KNOWN_MAX: Final = 10_000
"""Segments of a stream that are remembered, those of which nothing is left among them. Its record
has to fit into a row, also where a commit has opened OPEN_MAX twice."""
GIVEN_UP_MAX: Final = 1_000
"""Segments of which nothing is left that are remembered, for readers that are behind."""


class StreamChanges:
    """Changes of scopes and streams, which the caller makes one after the other."""

    def __init__(self, registry: Registry, segments: Segments, clock_ms: Callable[[], int]) -> None:
        self._registry = registry
        self._segments = segments
        self._clock_ms = clock_ms

    # Scopes

    async def create_scope(self, scope: str) -> None:
        """Create a scope. Raises BadName, ScopeExists."""
        if not is_scope_name(scope):
            raise BadName(f"no scope may be called {scope!r}")
        if scope in self._registry.scopes:
            raise ScopeExists(f"the scope exists: {scope}")
        await self._registry.add_scope(scope)

    async def delete_scope(self, scope: str) -> None:
        """Delete a scope without streams and tables, and parts of tables that clients made in it.

        Raises NoSuchScope, ScopeNotEmpty.
        """
        left = await self._segments.beneath(scope)
        there = self._registry.streams(scope) or self._registry.tables.of(scope)
        data = [name for name in left if marked(name.split("/")[1]) is None]
        if there or await self._segments.holds_data(data):
            raise ScopeNotEmpty(f"the scope has streams or tables: {scope}")
        await self._segments.delete(left)
        await self._registry.remove_scope(scope)

    # Streams

    async def create(self, scope: str, name: str, policy: StreamPolicy) -> None:
        """Create a stream. Raises BadName, NoSuchScope, StreamExists, InvalidRequest."""
        if not is_name(name):
            raise BadName(f"no stream may be called {name!r}")
        if marked(name) is not None or (name.startswith(GROUP) and not policy.is_state):
            raise InvalidRequest(f"{name}: {MARK}… and {GROUP}… are streams of the server's own")
        if name in self._registry.streams(scope):
            await self.settled(scope, name)
            raise StreamExists(f"the stream exists: {scope}/{name}")
        _check(policy)
        await self._check_room(scope, name, policy.segments)
        first = self._registry.ended.first_number(scope, name)
        epoch = history.evenly(policy.segments, first, self._clock_ms())
        stream = StreamRecord(
            scope=scope,
            name=name,
            policy=policy,
            state=StreamState.CREATING,
            history=History((epoch,)),
            first_number=first,
        )
        await self.finish(await self._registry.save(stream))

    async def update(self, scope: str, name: str, policy: StreamPolicy) -> None:
        """Change the policy of a stream, and the number of segments that it asks for.

        Raises NoSuchStream, StreamIsSealed, InvalidRequest.
        """
        _check(policy)
        stream = await self._open(scope, name)
        count, least = len(stream.history.open), policy.segments
        known, coming = stream.history, None
        if count < least or (count > least and not policy.scale_type):
            closed = [each.identity for each in known.open]
            keys = [(each.low, each.high) for each in history.evenly(least, 0, 0).made]
            coming = history.scaled(known, closed, keys, self._clock_ms())
            assert coming is not None
            known = await self._with_room(stream, coming)
        changed = replace(stream, policy=policy, history=known, coming=coming)
        await self._change(replace(changed, state=StreamState.UPDATING))

    async def truncate(self, scope: str, name: str, cut: Mapping[int, int]) -> None:
        """Truncate at a cut. Raises NoSuchStream, StreamIsSealed, InvalidRequest.

        A cut that lies before the one where the stream begins is refused.
        """
        stream = await self._open(scope, name)
        if not history.is_cut(stream.history, cut):
            raise InvalidRequest(f"no cut of {scope}/{name}, of {len(cut)} segments")
        if not stream.given_up.isdisjoint(cut):
            raise InvalidRequest(f"the cut of {scope}/{name} lies before its beginning")
        for identity, offset in cut.items():
            bounds = await self._segments.bounds(stream.segment_name(identity))
            if bounds is None or not bounds[0] <= offset <= bounds[1]:
                raise InvalidRequest(f"segment {identity} of {scope}/{name} has no offset {offset}")
        changed = replace(stream, cut=dict(cut), state=StreamState.TRUNCATING)
        await self.finish(await self._registry.save(changed), frozenset(stream.given_up))

    async def seal(self, scope: str, name: str) -> None:
        """Let a stream take no more. Raises NoSuchStream."""
        stream = await self.settled(scope, name)
        if stream.state is not StreamState.SEALED:
            await self._change(replace(stream, state=StreamState.SEALING))

    async def delete(self, scope: str, name: str) -> None:
        """Delete a sealed stream. Raises NoSuchStream, StreamNotSealed."""
        stream = await self.settled(scope, name)
        if stream.state is not StreamState.SEALED:
            raise StreamNotSealed(f"the stream has to be sealed first: {scope}/{name}")
        await self._change(replace(stream, state=StreamState.DELETING))

    async def delete_marks(self, scope: str, name: str) -> None:
        """Delete the marks of a stream; they begin anew. Raises NoSuchStream."""
        self._registry.stream(scope, name)
        await self._segments.delete(await self._segments.beneath(f"{scope}/{MARK}{name}"))

    async def scale(
        self, scope: str, name: str, closed: Iterable[int], ranges: Iterable[tuple[float, float]]
    ) -> Epoch | None:
        """End some segments and go on with others, whose keys are theirs.

        Returns the new epoch, also if it is asked for again; None if the ranges do not fit.
        Raises NoSuchStream, StreamIsSealed, TooFewSegments, InvalidRequest: there would be too
        many segments.
        """
        stream = await self._open(scope, name)
        known, closed, ranges = stream.history, tuple(closed), tuple(ranges)
        if history.is_done(known.last, closed, ranges):
            return known.last
        coming = history.scaled(known, closed, ranges, self._clock_ms())
        if coming is None:
            return None
        left = len(known.open) - len(coming.ended) + len(coming.made)
        if left < stream.policy.segments:
            text = f"{left} segments of {scope}/{name} would be left, of at least"
            raise TooFewSegments(f"{text} {stream.policy.segments}")
        known = await self._with_room(stream, coming)
        await self._change(replace(stream, history=known, coming=coming, state=StreamState.SCALING))
        return coming

    async def _with_room(self, stream: StreamRecord, coming: Epoch) -> History:
        """Return a stream's history with room for one more epoch. Raises InvalidRequest."""
        place, made = f"{stream.scope}/{stream.name}", len(coming.made)
        count = len(stream.history.open) - len(coming.ended) + made
        if count > OPEN_MAX:
            raise InvalidRequest(f"{count} open segments of {place}, above {OPEN_MAX}")
        # Those of commits do not count: to make them it takes no right to scale.
        held = len(stream.history.segments) - len(stream.given_up) - stream.held_by_commits + made
        known = self._shortened(stream, made)
        if held > SEGMENTS_MAX or len(known.segments) + made > KNOWN_MAX:
            raise InvalidRequest(
                f"{held} segments of {place} would hold data, above {SEGMENTS_MAX}: "
                "truncate it first"
            )
        await self._check_room(stream.scope, stream.name, made)
        return known

    async def _check_room(self, scope: str, name: str, count: int) -> None:
        """Check that a stream may get a number of segments more. Raises InvalidRequest."""
        there = await self._segments.count(f"{scope}/{name}")
        most = SEGMENTS_MAX + COMMITTED_MAX
        if there + count > most:
            text = f"{scope}/{name} has {there} segments, and may have"
            raise InvalidRequest(f"{text} {most}: not {count} more")

    def _shortened(self, stream: StreamRecord, count: int) -> History:
        """Return a history with room for more segments, as far as it can be forgotten.

        Epochs are forgotten from the oldest on, while nothing is left of what ended with them, and
        no transaction needs them.
        """
        known = stream.history
        over = max(len(known.segments) + count - KNOWN_MAX, len(stream.given_up) - GIVEN_UP_MAX)
        needed = min(self._registry.epochs_in_use(stream), default=known.last.number)
        place = 0
        for epoch in known.epochs[1:]:
            if over <= 0 or epoch.number > needed or not stream.given_up.issuperset(epoch.ended):
                break
            over -= len(epoch.ended)
            place += 1
        return known.since(place) if place else known

    async def reshape(self, stream: StreamRecord, shape: Iterable[StreamSegment]) -> StreamRecord:
        """Scale a stream for a commit, to the keys of earlier segments; return it."""
        wanted = {(each.low, each.high) for each in shape}
        there = {(each.low, each.high): each.identity for each in stream.history.open}
        closed = [identity for keys, identity in there.items() if keys not in wanted]
        keys = sorted(wanted - set(there))
        coming = history.scaled(stream.history, closed, keys, self._clock_ms())
        if coming is not None:
            coming = coming._replace(of_commit=True)
            known = self._shortened(stream, len(coming.made))
            await self._change(
                replace(stream, history=known, coming=coming, state=StreamState.SCALING)
            )
        return self._registry.stream(stream.scope, stream.name)

    # Changes that are under way

    async def settled(self, scope: str, name: str) -> StreamRecord:
        """Return a stream, after its last change is finished. Raises NoSuchStream."""
        stream = self._registry.stream(scope, name)
        if not stream.state.is_settled:
            await self.finish(stream)
        return self._registry.stream(scope, name)

    async def finish(self, stream: StreamRecord, gone: frozenset[int] = frozenset()) -> None:
        """Finish a stream's change; a truncation need not delete segments that are `gone`."""
        now = [stream.segment_name(each.identity) for each in stream.history.open]
        settled = replace(stream, state=StreamState.ACTIVE, coming=None)
        match stream.state:
            case StreamState.CREATING:
                await self._create_segments(stream, stream.history.last)
            case StreamState.UPDATING:
                await self._segments.configure(now, stream.policy)
                settled = replace(settled, history=await self._scaled(stream))
            case StreamState.SCALING:
                settled = replace(settled, history=await self._scaled(stream))
            case StreamState.TRUNCATING:
                await self._segments.delete(map(stream.segment_name, stream.given_up - gone))
                offsets = {stream.segment_name(key): value for key, value in stream.cut.items()}
                await self._segments.truncate(offsets)
            case StreamState.SEALING:
                await self._segments.seal(now)
                settled = replace(settled, state=StreamState.SEALED)
            case StreamState.DELETING:
                left = await self._segments.beneath(f"{stream.scope}/{stream.name}")
                await self._segments.delete(left)
                await self.delete_marks(stream.scope, stream.name)
                await self._registry.forget(stream)
                return
        await self._registry.save(settled)

    async def _scaled(self, stream: StreamRecord) -> History:
        """Return the history with the epoch that comes, if one does; make its segments first."""
        if stream.coming is None:
            return stream.history
        await self._create_segments(stream, stream.coming)
        await self._segments.seal(map(stream.segment_name, stream.coming.ended))
        return stream.history.followed_by(stream.coming)

    async def _change(self, stream: StreamRecord) -> None:
        await self.finish(await self._registry.save(stream))

    async def _create_segments(self, stream: StreamRecord, epoch: Epoch) -> None:
        names = {stream.segment_name(each.identity): each.epoch for each in epoch.made}
        await self._segments.create(names, stream.policy, epoch.at_ms)

    async def _open(self, scope: str, name: str) -> StreamRecord:
        stream = await self.settled(scope, name)
        if stream.state is StreamState.SEALED:
            raise StreamIsSealed(f"the stream is sealed: {scope}/{name}")
        return stream


def _check(policy: StreamPolicy) -> None:
    """Raise InvalidRequest for a policy that nothing could act on."""
    if not 1 <= policy.segments <= OPEN_MAX:
        raise InvalidRequest(f"{policy.segments} segments: 1 … {OPEN_MAX} are possible")
    if policy.scale_type and (policy.rate < 1 or policy.factor < 1):
        raise InvalidRequest(
            f"a policy of scaling with rate {policy.rate} and factor {policy.factor}: "
            "both are 1 at least"
        )
    if policy.retention_type and policy.retention < 0:
        raise InvalidRequest(f"a policy of retention that keeps {policy.retention}")
