"""Scaling of streams by the rates of their writes, as their policies say."""

import logging
from collections.abc import Callable
from typing import Final

from gateway.pravega.controller.errors import (
    InvalidRequest,
    NoSuchScope,
    NoSuchStream,
    TooFewSegments,
)
from gateway.pravega.controller.records.epochs import StreamSegment
from gateway.pravega.controller.records.model import StreamPolicy, StreamRecord, StreamState
from gateway.pravega.controller.records.registry import Registry
from gateway.pravega.controller.rounds.plans import BY_SIZE, Keys, Rates, ScalingStep, planned
from gateway.pravega.controller.streams import OPEN_MAX, StreamChanges
from gateway.pravega.names import place_of
from gateway.pravega.traffic import Traffic
from gateway.server.loop.awaiting import next_turn

log = logging.getLogger(__name__)

MINUTE_MS: Final = 60_000
JUDGED_EVERY: Final = 2
"""Minutes between two judgements of a stream."""
TICKS: Final = 12
"""Looks at what was written, in a minute."""
KILO: Final = 1_024
COUNTED_A_TURN: Final = 500
"""Segments that are counted at a time, which takes some 3 ms; others have their turn then."""


class Scaling:
    """The scaling of all streams; `hold` the scope of each.

    What it knows of rates is lost with the process: a stream is left as it is until they are known
    again. The rates of a stream whose policy gets another unit or number begin anew as well.
    """

    def __init__(
        self,
        registry: Registry,
        streams: StreamChanges,
        traffic: Traffic,
        clock_ms: Callable[[], int],
        minute_ms: int,
    ) -> None:
        """Begin without rates.

        Args:
            registry: What there is.
            streams: Makes the changes.
            traffic: What clients write.
            clock_ms: Milliseconds since the epoch.
            minute_ms: How long a minute takes.
        """
        self._registry = registry
        self._streams = streams
        self._traffic = traffic
        self._clock_ms = clock_ms
        self._minute_ms = minute_ms
        self._rates: dict[tuple[str, str], _StreamRates] = {}
        self._counted_ms = self._judged_ms = clock_ms()
        traffic.is_watched = True

    async def count(self) -> None:
        """Take the writes since the last time into the rates."""
        since, now = self._counted_ms, self._clock_ms()
        self._counted_ms = now
        for number, (place, written) in enumerate(self._traffic.taken().items(), 1):
            if number % COUNTED_A_TURN == 0:
                await next_turn()
            if (found := self._found(place)) is not None:
                stream, segment = found
                by_size = stream.policy.scale_type == BY_SIZE
                amount = written.size / KILO if by_size else written.events
                self._rates_of(stream).of(stream, segment).add(amount, since, now)

    def _found(self, place: str) -> tuple[StreamRecord, StreamSegment] | None:
        """Return the stream and the segment of a name, if a policy scales it."""
        scope, name, identity = place_of(place) or ("", "", 0)
        if scope not in self._registry.scopes:
            return None
        stream = self._registry.scopes[scope].get(name)
        if stream is None or not _is_scaled(stream) or identity not in stream.history.segments:
            return None
        return stream, stream.history.segments[identity]

    async def due(self) -> list[tuple[str, str]]:
        """Return scope and name of the streams to look at, if it is time; each takes a turn."""
        now = self._clock_ms()
        if now - self._judged_ms < JUDGED_EVERY * self._minute_ms:
            return []
        self._judged_ms = now
        scaled = [
            each
            for streams in self._registry.scopes.values()
            for each in streams.values()
            if _is_scaled(each)
        ]
        for gone in self._rates.keys() - {(each.scope, each.name) for each in scaled}:
            del self._rates[gone]
        found = []
        for each in scaled:
            if self._planned(each):
                found.append((each.scope, each.name))
            await next_turn()
        return found

    async def look(self, scope: str, name: str) -> None:
        """Change a stream as its policy says. Raises StoreError."""
        try:
            stream = await self._streams.settled(scope, name)
        except (NoSuchScope, NoSuchStream):
            return
        if not _is_scaled(stream):
            return
        changes = self._planned(stream)
        if not changes:
            return
        ended = [each.identity for change in changes for each in change.ended]
        keys = [each for change in changes for each in change.keys]
        try:
            await self._streams.scale(scope, name, ended, keys)
        except (InvalidRequest, TooFewSegments) as error:
            del self._rates[scope, name]  # it is tried again when the rates are known again
            log.warning("its policy cannot scale stream=%s reason=%s", f"{scope}/{name}", error)
            return
        for change in changes:
            _say(stream, change)

    def _planned(self, stream: StreamRecord) -> list[ScalingStep]:
        """Return the changes of a stream that are due."""
        known = self._rates_of(stream)
        rates = known.of_open(stream)
        if stream.state.is_settled and not any(True for _ in self._registry.epochs_in_use(stream)):
            known.keep(rates)
        return planned(stream.history.open, rates, stream.policy, self._clock_ms(), OPEN_MAX)

    def _rates_of(self, stream: StreamRecord) -> "_StreamRates":
        name = stream.scope, stream.name
        if name not in self._rates or not self._rates[name].fits(stream.policy):
            self._rates[name] = _StreamRates(stream.policy, self._clock_ms(), self._minute_ms)
        return self._rates[name]


class _StreamRates:
    """The rates of a stream's segments, by their keys.

    A commit to what was scaled meanwhile ends segments, and goes on with others of the same keys.
    """

    def __init__(self, policy: StreamPolicy, began_ms: int, minute_ms: int) -> None:
        self._policy = policy
        self._began_ms = began_ms
        self._minute_ms = minute_ms
        self._by_keys: dict[Keys, Rates] = {}

    def fits(self, policy: StreamPolicy) -> bool:
        """Return whether a policy has the unit and the rate of this one."""
        mine = self._policy
        return (mine.scale_type, mine.rate) == (policy.scale_type, policy.rate)

    def of(self, stream: StreamRecord, segment: StreamSegment) -> Rates:
        """Return the rates of a segment."""
        keys = segment.low, segment.high
        if keys not in self._by_keys:
            began_ms = max(self._began_ms, stream.history.began_ms(segment.epoch))
            self._by_keys[keys] = Rates(began_ms, self._minute_ms)
        return self._by_keys[keys]

    def of_open(self, stream: StreamRecord) -> dict[Keys, Rates]:
        """Return the rates of all segments that are written now."""
        return {(each.low, each.high): self.of(stream, each) for each in stream.history.open}

    def keep(self, rates: dict[Keys, Rates]) -> None:
        """Forget those of all other segments."""
        self._by_keys = rates


def _is_scaled(stream: StreamRecord) -> bool:
    return stream.policy.scale_type != 0 and stream.state is not StreamState.SEALED


def _say(stream: StreamRecord, change: ScalingStep) -> None:
    names = [f"{each.number}.#epoch.{each.epoch}" for each in change.ended]
    log.info(
        "segments scaled by the policy stream=%s segments=%s into=%d rate=%.1f why=%r",
        f"{stream.scope}/{stream.name}",
        ",".join(names),
        len(change.keys),
        change.rate,
        change.why,
    )
