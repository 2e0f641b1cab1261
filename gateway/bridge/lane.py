"""A route at work: it opens its ends again and again, and deals with refused messages."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from gateway.bridge import routes
from gateway.bridge.amqp import BasicPublisher, QueueMessages
from gateway.bridge.ends import (
    EndUnreachable,
    Judge,
    Parcel,
    RouteEnd,
    RouteSource,
    RouteTarget,
    TakenOver,
    first_lost,
)
from gateway.bridge.pump import QUIET_S, Counts, Pump
from gateway.bridge.streams import StreamRecords, StreamTargetEnd
from gateway.bridge.topics import TopicMessages, TopicPublisher
from hutch.formats.amqp.writing import annotated

log = logging.getLogger(__name__)

PAUSE_S, PAUSE_S_MAX = 1.0, 30.0
FINISH_S: Final = 10.0
LOOK_S: Final = 0.5
ENOUGH_LOOKS: Final = 2
LOOKS_A_COUNT: Final = 20
"""A source is asked for its backlog each ten seconds, unless the route ends with its last one."""
SKIPPED_S: Final = 10.0
SHORT_S: Final = 2.0
SHORT_MAX: Final = 3
"""Connections in a row that lived shorter, after which another client has the session."""


class RouteStopped(Exception):
    """A route that does not go on; the text is one line.

    Attributes:
        status: The exit status of the process.
    """

    status = 1


class NotOpened(RouteStopped):
    """A route whose ends could not be opened at the start."""

    status = 2


SOURCES: Final[dict[type[routes.End], Callable[[routes.Route, Any], RouteSource[Any]]]] = {
    routes.QueueSource: QueueMessages,
    routes.ExchangeSource: QueueMessages,
    routes.TopicsSource: TopicMessages,
    routes.StreamSource: StreamRecords,
    routes.SuperStreamSource: StreamRecords,
}
TARGETS: Final[dict[type[routes.End], Callable[[routes.Route, Any, Judge], RouteTarget[Any]]]] = {
    routes.QueueTarget: BasicPublisher,
    routes.ExchangeTarget: BasicPublisher,
    routes.TopicTarget: TopicPublisher,
    routes.StreamTarget: StreamTargetEnd,
    routes.SuperStreamTarget: StreamTargetEnd,
}


class Lane:
    """One route, in an event loop of its own.

    Attributes:
        route: What to do.
        counts: What was done.
    """

    def __init__(self, route: routes.Route, *, waits: bool, until_empty: bool) -> None:
        """Prepare a route.

        Args:
            route: What to do.
            waits: Whether ends that cannot be opened at the start are tried again.
            until_empty: Whether to end with the last message of the source.
        """
        self.route: Final = route
        self.counts: Final = Counts()
        self._waits = waits
        self._until_empty = until_empty
        self._lost = ""
        self._opened_at = 0.0
        self._short_lives = 0
        self._has_lost_source = False
        self._pause_s = PAUSE_S
        self._skipped_at = -SKIPPED_S
        self._dead: RouteTarget[Any] | None = None
        self._letters: dict[Parcel, Parcel] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Carry messages until `stop` is set, or the source is empty. Raises Stopped."""
        while not stop.is_set():
            try:
                await self._carry(stop)
            except EndUnreachable as error:
                self._lose(error)
            else:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause_s):
                    await stop.wait()
            self._pause_s = min(2 * self._pause_s, PAUSE_S_MAX)

    def _lose(self, error: EndUnreachable) -> None:
        """Say once that an end is lost. Raises Stopped if it is not to be tried again."""
        if not self._waits:
            raise NotOpened(str(error))
        is_short = self._has_lost_source and time.monotonic() - self._opened_at < SHORT_S
        self._short_lives = self._short_lives + 1 if is_short else 0
        # MQTT 3.1.1 does not say that another client has taken the session.
        is_taken = self._short_lives == SHORT_MAX and isinstance(
            self.route.source, routes.TopicsSource
        )
        if is_taken or isinstance(error, TakenOver):
            raise RouteStopped(f"another bridge takes the messages: {error}")
        if not self._lost:
            self._lost = str(error)
            log.warning("an end is lost route=%s reason=%s", self.route.name, self._lost)

    async def _carry(self, stop: asyncio.Event) -> None:
        """Open the ends, and carry messages between them. Raises Unreachable and Stopped."""
        route, self._opened_at = self.route, 0.0
        source = SOURCES[type(route.source)](route, route.source)
        self._pump = pump = Pump(source, route.window, self.counts, self._refused)
        pump.target = TARGETS[type(route.target)](route, route.target, pump.judge)
        ends: list[RouteEnd[Any]] = [pump.target]
        if isinstance(route.refused, routes.StreamTarget):
            self._dead = TARGETS[routes.StreamTarget](route, route.refused, self._buried)
            ends.append(self._dead)
        try:
            for end in (*ends, source):
                await end.open()
            self.counts.is_connected, self._opened_at = True, time.monotonic()
            if not self._lost:
                log.info("carrying route=%s", route.name)
            self._waits = True
            lost = [first_lost(end.links) for end in ends[1:]]
            await pump.run(stop.wait(), self._watch(source, pump), *lost)
            await pump.finish(FINISH_S)
        finally:
            self._has_lost_source = any(link.lost.done() for link in source.links)
            self.counts.is_connected, self.counts.under_way = False, 0
            self._letters.clear()
            for end in (source, *ends):
                await end.close()

    async def _watch(self, source: RouteSource[Any], pump: Pump) -> None:
        """Look at the messages that wait; return with the last one if the route ends with it."""
        looks = empty = 0
        delivered = self.counts.delivered
        while empty < ENOUGH_LOOKS:
            if self._until_empty or looks % LOOKS_A_COUNT == 0:
                self.counts.waiting = await source.waiting()
            looks += 1
            if not pump.unsettled:
                await source.save()
            quiet_s = time.monotonic() - (self.counts.last_at or self._opened_at)
            is_known = self.counts.waiting is not None or quiet_s > QUIET_S
            self._prove(has_delivered=self.counts.delivered > delivered)
            is_empty = is_known and not self.counts.waiting and not pump.unsettled
            empty = empty + 1 if self._until_empty and is_empty else 0
            await asyncio.sleep(LOOK_S)

    def _prove(self, *, has_delivered: bool) -> None:
        """Take a route for back once it lasts: a target may take connections, or a last message."""
        has_lasted = time.monotonic() - self._opened_at > SHORT_S
        if has_lasted or has_delivered:
            self._pause_s = PAUSE_S
        if has_lasted and self._lost:
            log.info("the route is back route=%s", self.route.name)
            self._lost = ""

    # ---- refused messages ----------------------------------------------------------------------

    def _refused(self, parcel: Parcel, refusal: str) -> bool:
        """Treat a refused message as the route says; return whether it is done with."""
        place = "".join(f", {name} {value}" for name, value in parcel.place.items())
        line = f"a message was refused: {refusal}{place}"
        if self.route.refused == "stop":
            raise RouteStopped(f"{line}; `refused` of the route says what to do with such messages")
        if self.route.refused == "skip":
            now = time.monotonic()
            if now - self._skipped_at >= SKIPPED_S:
                self._skipped_at = now
                count = self.counts.refused
                log.warning("%s route=%s refused=%d", line, self.route.name, count)
            return True
        facts = {"x-bridge-route": self.route.name, "x-bridge-reason": refusal}
        facts |= {f"x-bridge-{name}": value for name, value in parcel.place.items()}
        letter = Parcel(annotated(parcel.record, facts), None)
        self._letters[letter] = parcel
        assert self._dead is not None
        self._dead.send([letter])
        return False

    def _buried(self, letter: Parcel, refusal: str | None) -> None:
        """Take the word of the stream of refused messages on one of them."""
        parcel = self._letters.pop(letter)
        if refusal is None:
            self._pump.done(parcel)
        else:
            words = f"the stream of refused messages refuses one: {refusal}"
            self._pump.fail(RouteStopped(words))
