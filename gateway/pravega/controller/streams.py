"""Changes of scopes and streams.

A change of a stream is written first, as the stream's state with what it leads to; then its
segments are changed; then the state is settled. Each step may be repeated, so a change that was
cut short anywhere is finished by `finish`, at the next start or before the next change.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from gateway.pravega.controller import history
from gateway.pravega.controller.epochs import Epoch, History, Segment
from gateway.pravega.controller.errors import (
    BadName,
    InvalidRequest,
    ScopeExists,
    ScopeNotEmpty,
    StreamExists,
    StreamIsSealed,
    StreamNotSealed,
)
from gateway.pravega.controller.model import Policy, State, Stream
from gateway.pravega.controller.names import is_name, is_scope_name
from gateway.pravega.controller.registry import Registry
from gateway.pravega.controller.segments import Segments
from gateway.pravega.room import COMMITTED_MAX, SEGMENTS_MAX

OPEN_MAX: Final = 1_000
"""Segments of a stream that are written at one time."""
KNOWN_MAX: Final = 10_000
"""Segments of a stream that are remembered, those of which nothing is left among them. Its record
has to fit into a row, also where a commit has opened OPEN_MAX twice."""


class Streams:
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
        """Delete a scope without streams, and the tables that clients have made in it.

        Raises NoSuchScope, ScopeNotEmpty.
        """
        left = await self._segments.beneath(scope)
        if self._registry.streams(scope) or await self._segments.holds_data(left):
            raise ScopeNotEmpty(f"the scope has streams: {scope}")
        await self._segments.delete(left)
        await self._registry.remove_scope(scope)

    # Streams

    async def create(self, scope: str, name: str, policy: Policy) -> None:
        """Create a stream. Raises BadName, NoSuchScope, StreamExists, InvalidRequest."""
        if not is_name(name):
            raise BadName(f"no stream may be called {name!r}")
        if name in self._registry.streams(scope):
            await self.settled(scope, name)
            raise StreamExists(f"the stream exists: {scope}/{name}")
        if not 1 <= policy.segments <= OPEN_MAX:
            raise InvalidRequest(f"{policy.segments} segments: 1 … {OPEN_MAX} are possible")
        await self._check_room(scope, name, policy.segments)
        first = self._registry.ended.first_number(scope, name)
        epoch = history.evenly(policy.segments, first, self._clock_ms())
        stream = Stream(
            scope=scope,
            name=name,
            policy=policy,
            state=State.CREATING,
            history=History((epoch,)),
        )
        await self.finish(await self._registry.save(stream))

    async def update(self, scope: str, name: str, policy: Policy) -> None:
        """Give a stream another policy. Raises NoSuchStream, StreamIsSealed."""
        stream = await self._open(scope, name)
        await self._change(replace(stream, policy=policy, state=State.UPDATING))

    async def truncate(self, scope: str, name: str, cut: Mapping[int, int]) -> None:
        """Give up what lies before a cut. Raises NoSuchStream, StreamIsSealed, InvalidRequest.

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
        await self._change(replace(stream, cut=dict(cut), state=State.TRUNCATING))

    async def seal(self, scope: str, name: str) -> None:
        """Let a stream take no more. Raises NoSuchStream."""
        stream = await self.settled(scope, name)
        if stream.state is not State.SEALED:
            await self._change(replace(stream, state=State.SEALING))

    async def delete(self, scope: str, name: str) -> None:
        """Delete a sealed stream. Raises NoSuchStream, StreamNotSealed."""
        stream = await self.settled(scope, name)
        if stream.state is not State.SEALED:
            raise StreamNotSealed(f"the stream has to be sealed first: {scope}/{name}")
        await self._change(replace(stream, state=State.DELETING))

    async def scale(
        self, scope: str, name: str, closed: Iterable[int], ranges: Iterable[tuple[float, float]]
    ) -> Epoch | None:
        """End some segments and go on with others of the same keys.

        Returns the new epoch; None if the ranges do not fit.
        Raises NoSuchStream, StreamIsSealed, InvalidRequest: there would be too many segments.
        """
        stream = await self._open(scope, name)
        known = stream.history
        coming = history.scaled(known, closed, ranges, self._clock_ms())
        if coming is None:
            return None
        made = len(coming.made)
        count = len(known.open) - len(coming.ended) + made
        if count > OPEN_MAX:
            raise InvalidRequest(f"{count} open segments of {scope}/{name}, above {OPEN_MAX}")
        # Those of commits do not count: to make them it takes no right to scale.
        held = len(known.segments) - len(stream.given_up) - stream.held_by_commits + made
        if held > SEGMENTS_MAX or len(known.segments) + made > KNOWN_MAX:
            known = self._shortened(stream, made)
        if held > SEGMENTS_MAX or len(known.segments) + made > KNOWN_MAX:
            raise InvalidRequest(
                f"{held} segments of {scope}/{name} would hold data, above {SEGMENTS_MAX}: "
                "truncate it first"
            )
        await self._check_room(scope, name, made)
        await self._change(replace(stream, history=known, coming=coming, state=State.SCALING))
        return coming

    async def _check_room(self, scope: str, name: str, count: int) -> None:
        """Check that a stream may get so many segments more. Raises InvalidRequest."""
        there = await self._segments.count(f"{scope}/{name}")
        most = SEGMENTS_MAX + COMMITTED_MAX
        if there + count > most:
            text = f"{scope}/{name} has {there} segments, and may have"
            raise InvalidRequest(f"{text} {most}: not {count} more")

    def _shortened(self, stream: Stream, count: int) -> History:
        """Return a history that has room for so many segments more, as far as it can be forgotten.

        Epochs are forgotten from the oldest on, while nothing is left of what ended with them, and
        no transaction needs them.
        """
        known = stream.history
        over = len(known.segments) + count - KNOWN_MAX
        needed = min(self._registry.epochs_in_use(stream), default=known.last.number)
        place = 0
        for epoch in known.epochs[1:]:
            if over <= 0 or epoch.number > needed or not stream.given_up.issuperset(epoch.ended):
                break
            over -= len(epoch.ended)
            place += 1
        return known.since(place) if place else known

    async def reshape(self, stream: Stream, shape: Iterable[Segment]) -> Stream:
        """Scale a stream for a commit, to the keys of earlier segments; return it."""
        wanted = {(each.low, each.high) for each in shape}
        there = {(each.low, each.high): each.identity for each in stream.history.open}
        closed = [identity for keys, identity in there.items() if keys not in wanted]
        keys = wanted - set(there)
        coming = history.scaled(stream.history, closed, keys, self._clock_ms())
        if coming is not None:
            coming = coming._replace(of_commit=True)
            known = self._shortened(stream, len(coming.made))
            await self._change(replace(stream, history=known, coming=coming, state=State.SCALING))
        return self._registry.stream(stream.scope, stream.name)

    # Changes that are under way

    async def settled(self, scope: str, name: str) -> Stream:
        """Return a stream, after what was left of its last change. Raises NoSuchStream."""
        stream = self._registry.stream(scope, name)
        if not stream.state.is_settled:
            await self.finish(stream)
        return self._registry.stream(scope, name)

    async def finish(self, stream: Stream) -> None:
        """Do what is left of a stream's change."""
        now = [stream.segment_name(each.identity) for each in stream.history.open]
        settled = replace(stream, state=State.ACTIVE, coming=None)
        match stream.state:
            case State.CREATING:
                await self._create_segments(stream, stream.history.last)
            case State.UPDATING:
                await self._segments.configure(now, stream.policy)
            case State.SCALING:
                assert stream.coming is not None
                await self._create_segments(stream, stream.coming)
                await self._segments.seal(map(stream.segment_name, stream.coming.ended))
                settled = replace(settled, history=stream.history.followed_by(stream.coming))
            case State.TRUNCATING:
                await self._segments.delete(map(stream.segment_name, stream.given_up))
                offsets = {stream.segment_name(key): value for key, value in stream.cut.items()}
                await self._segments.truncate(offsets)
            case State.SEALING:
                await self._segments.seal(now)
                settled = replace(settled, state=State.SEALED)
            case State.DELETING:
                place = f"{stream.scope}/{stream.name}"
                await self._segments.delete(await self._segments.beneath(place))
                await self._registry.forget(stream)
                return
        await self._registry.save(settled)

    async def _change(self, stream: Stream) -> None:
        await self.finish(await self._registry.save(stream))

    async def _create_segments(self, stream: Stream, epoch: Epoch) -> None:
        names = {stream.segment_name(each.identity): each.epoch for each in epoch.made}
        await self._segments.create(names, stream.policy, epoch.at_ms)

    async def _open(self, scope: str, name: str) -> Stream:
        stream = await self.settled(scope, name)
        if stream.state is State.SEALED:
            raise StreamIsSealed(f"the stream is sealed: {scope}/{name}")
        return stream
