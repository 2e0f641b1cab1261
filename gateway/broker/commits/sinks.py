"""Sinks of a virtual host: the last batch that each committed, so that none is committed twice.

Commits without a sink are known by their stages for a while, as long as the server runs.
"""

import logging
from collections.abc import Collection, Iterable
from typing import Final

from gateway.broker.commits.limits import LAST_STAGES_MAX, SINKS_MAX
from gateway.broker.commits.ports import CommitsPorts
from gateway.broker.commits.rows import SinkRow, sink_key
from gateway.broker.commits.stage import Stage
from gateway.broker.errors import AccessRefused, PreconditionFailed
from store.api import NOT_EXISTS, TableEntry
from store.errors import StoreError

log = logging.getLogger(__name__)

_MS: Final = 1_000


class Nameless:
    """Stages of the last commits without a sink, so that one whose answer is lost is found."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}

    def note(self, user: str, stages: Iterable[Stage], number: int) -> None:
        """Note a commit that is written down."""
        for stage in stages:
            self._numbers[user, stage.number] = number
        while len(self._numbers) > LAST_STAGES_MAX:
            del self._numbers[next(iter(self._numbers))]

    def of(self, user: str, stages: Iterable[int]) -> int | None:
        """Return the number of the commit that had some of these stages; None if none is known."""
        found = (self._numbers.get((user, stage)) for stage in stages)
        return next((number for number in found if number is not None), None)


class Sinks:
    """Rows of sinks, with their versions."""

    def __init__(self, ports: CommitsPorts) -> None:
        self._ports = ports
        self._rows: dict[str, tuple[SinkRow, int]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, user: str, sink: str) -> SinkRow | None:
        """Return a sink's last batch; None if it has committed none.

        Raises:
            AccessRefused: It is another user's, whose batches could be made to look committed.
        """
        if sink not in self._rows:
            return None
        row = self._rows[sink][0]
        if row.user != user:
            raise AccessRefused(f"sink {sink!r} is of another user")
        return row

    def entry(self, sink: str, row: SinkRow) -> TableEntry:
        """Return the row of a commit, conditional on the row before it.

        Raises:
            PreconditionFailed: It is new, and there are too many.
        """
        version = self._rows[sink][1] if sink in self._rows else NOT_EXISTS
        if version == NOT_EXISTS and len(self) >= SINKS_MAX:
            raise PreconditionFailed(f"sink {sink!r}: the virtual host has {SINKS_MAX} sinks")
        return TableEntry(sink_key(sink), row.pack(), version)

    def put(self, sink: str, row: SinkRow, version: int) -> None:
        """Note a row that is stored."""
        self._rows[sink] = row, version

    async def look(self, under_way: Collection[int]) -> None:
        """Forget sinks that have committed nothing for long; `under_way` has unfinished commits."""
        age_ms = self._ports.usage.limits.sink_expiry_s * _MS
        before_ms = self._ports.now_for_age_ms(age_ms) - age_ms
        old = [
            (sink, version)
            for sink, (row, version) in self._rows.items()
            if row.at_ms < before_ms and row.number not in under_way
        ]
        for sink, version in old:
            try:
                await self._ports.remove([sink_key(sink)])
            except StoreError as error:
                log.warning("sink not forgotten sink=%r error=%s", sink, error)
                return
            if self._rows[sink][1] == version:
                del self._rows[sink]
                log.info("sink forgotten virtual_host=%s sink=%r", self._ports.virtual_host, sink)
