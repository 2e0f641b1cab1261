"""Progress for people: a table of routes on a terminal, elsewhere a line each ten seconds."""

import logging
import time
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.table import Table

from gateway.bridge.lane import Lane

log = logging.getLogger(__name__)

LINE_S: Final = 10.0
_COLUMNS: Final = ("a second", "in all", "refused", "repeated", "under way", "waiting")


class RouteProgress:
    """Shows the routes while they work."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        """Keep the routes to show."""
        self._lanes = lanes
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False)
        self._before = {lane: (0, time.monotonic()) for lane in lanes}
        self._line_at = time.monotonic() + LINE_S
        if self._console.is_terminal:
            self._live.start()

    def close(self) -> None:
        """Show it once more, for good."""
        self.show()
        self._live.stop()

    def show(self) -> None:
        """Show the counts of now, if it is time."""
        if self._console.is_terminal:
            table = Table("route", box=None)
            for column in _COLUMNS:
                table.add_column(column, justify="right")
            for lane in self._lanes:
                cells = ("-" if each is None else f"{each:,}" for each in self._row(lane))
                table.add_row(lane.route.name, *cells)
            self._live.update(table, refresh=True)
        elif time.monotonic() >= self._line_at:
            self._line_at += LINE_S
            for lane in self._lanes:
                log.info(
                    "progress route=%s rate=%d delivered=%d refused=%d repeated=%d "
                    "under_way=%d waiting=%s",
                    lane.route.name,
                    *self._row(lane),
                )

    def _row(self, lane: Lane) -> tuple[int | None, ...]:
        counts, now = lane.counts, time.monotonic()
        delivered, at = self._before[lane]
        rate = round((counts.delivered - delivered) / max(now - at, 1e-3))
        if now - at >= 1:
            self._before[lane] = counts.delivered, now
        done = (rate, counts.delivered, counts.refused, counts.repeated)
        return (*done, counts.under_way, counts.waiting)


def summary(lane: Lane) -> str:
    """Return a route's counts as text."""
    counts = lane.counts
    more = {"refused": counts.refused, "repeated": counts.repeated}
    said = "".join(f", {count} {name}" for name, count in more.items() if count)
    return f"{lane.route.name}: {counts.delivered} delivered{said}"
