"""The process of the bridge: a thread for each route, its metrics and its progress."""

import asyncio
import logging
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Final

from gateway.bridge.ends import EndUnreachable
from gateway.bridge.lane import FINISH_S, SOURCES, Lane, NotOpened, RouteStopped
from gateway.bridge.metrics import Metrics
from gateway.bridge.progress import RouteProgress, summary
from gateway.bridge.routes import Route
from gateway.command_line import complain, visible

log = logging.getLogger(__name__)
for _name in ("aio_pika", "aiormq", "pamqp", "mqtt"):  # what they would say is said by routes
    logging.getLogger(_name).setLevel(logging.CRITICAL)

LOOK_S: Final = 0.25
SPARE_S: Final = 5.0
"""Beyond the time of routes to finish: one may hold its loop, as with a disk that is full."""


class RouteWorker(threading.Thread):
    """The thread of a route.

    Attributes:
        lane: The route at work.
        status: The exit status that it asks for; 0 while nothing is wrong.
    """

    def __init__(self, lane: Lane) -> None:
        """Prepare one."""
        super().__init__(name=lane.route.name, daemon=True)
        self.lane: Final = lane
        self.status = 0
        self._loop: Final = asyncio.new_event_loop()
        self._ending: Final = asyncio.Event()

    def run(self) -> None:
        """Carry messages until the route ends; say why, if that was not wanted."""
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self.lane.run(self._ending))
        except RouteStopped as error:
            self.status = complain(f"route {self.name!r}: {visible(str(error))}", error.status)
        except Exception:  # the other routes go on
            log.exception("a route failed route=%s", self.name)
            self.status = RouteStopped.status

    def finish(self) -> None:
        """Take nothing more, and store the messages under way."""
        with suppress(RuntimeError):  # it may just have ended
            self._loop.call_soon_threadsafe(self._ending.set)


def run(
    routes: Sequence[Route],
    *,
    waits: bool = False,
    until_empty: bool = False,
    metrics: tuple[str, int] | None = None,
) -> int:
    """Carry messages on all routes until a signal comes, or all have ended.

    Args:
        routes: What to do.
        waits: Whether ends that cannot be opened at the start are tried again.
        until_empty: Whether each route ends with the last message of its source.
        metrics: Host and port to serve metrics on.

    Returns:
        The exit status: 1 if a route stopped, 2 if one could not begin.
    """
    lanes = [Lane(route, waits=waits, until_empty=until_empty) for route in routes]
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with ExitStack() as stack:
        if metrics is not None:
            try:
                page = Metrics(lanes, *metrics)
            except OSError as error:
                return complain(f"--metrics {metrics[1]}: {error.strerror}", NotOpened.status)
            stack.callback(page.close)
            log.info("metrics address=%s", f"{metrics[0]}:{page.port}")
        progress = RouteProgress(lanes)
        stack.callback(progress.close)
        workers = [RouteWorker(lane) for lane in lanes]
        for worker in workers:
            worker.start()
        while any(map(RouteWorker.is_alive, workers)) and not stop.wait(LOOK_S):
            progress.show()
            if any(worker.status == NotOpened.status for worker in workers):
                break
        _finish(workers)
    for lane in lanes if until_empty else ():
        sys.stdout.write(f"{summary(lane)}\n")
    return max(worker.status for worker in workers)


def _finish(workers: Sequence[RouteWorker]) -> None:
    """Let all routes store the messages under way, for a bounded time."""
    for worker in workers:
        worker.finish()
    end = time.monotonic() + FINISH_S + SPARE_S
    for worker in workers:
        worker.join(max(end - time.monotonic(), 0))
        if worker.is_alive():
            log.warning("the route does not end in time route=%s", worker.name)


def remove(route: Route) -> int:
    """Take away all that a route left at its source; return the exit status."""

    async def work() -> None:
        source = SOURCES[type(route.source)](route, route.source)
        try:
            await source.remove()
        finally:
            await source.close()

    try:
        asyncio.run(work())
    except EndUnreachable as error:
        return complain(f"route {route.name!r}: {visible(str(error))}", NotOpened.status)
    sys.stdout.write(f"route {route.name!r}: removed\n")
    return 0
