"""Sinks of a virtual host: the last batch that each committed, so that none is committed twice.

Commits without a sink are known by their stages for a while, as long as the server runs.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from gateway.broker.commits.ports import CommitsPorts
from gateway.broker.commits.rows import SinkRow, sink_key
from gateway.broker.commits.stage import Stage
from gateway.broker.errors import AccessRefused, PreconditionFailed
from gateway.broker.locks import Locks
from gateway.broker.streams.staging_limits import LAST_STAGES_MAX, SINKS_MAX, USER_SINKS_MAX
from store.api import NOT_EXISTS, TableEntry
from store.errors import StoreError

log = logging.getLogger(__name__)

RECORD: Final = "record"
"""The lock of the things that each commit changes: the last number, and sinks."""

_MS: Final = 1_000
_AT_ONCE: Final = 1_000
"""Rows that are removed at once: their keys have 1 MiB at most."""


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

    def __init__(self, ports: CommitsPorts, locks: Locks) -> None:
        """`locks` are those of the commits; under `RECORD` of them nothing is committed."""
        self._ports = ports
        self._locks = locks
        self._rows: dict[str, tuple[SinkRow, int]] = {}
        self._by_user: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, sink: str) -> bool:
        return sink in self._rows

    def __iter__(self) -> Iterator[tuple[str, SinkRow]]:
        return iter([(sink, row) for sink, (row, _) in self._rows.items()])

    def may_be_of(self, user: str) -> bool:
        """Return whether a user has sinks, or may get one from a commit that is under way."""
        return user in self._by_user or len(self._locks) > 0

    def of(self, user: str, sink: str) -> SinkRow | None:
        """Return a sink's last batch; None if it has committed none.

        Raises:
            AccessRefused: It is another user's, whose batches could be made to look committed.
        """
        if sink not in self._rows:
            return None
        row = self._rows[sink][0]
        if row.user != user:
            raise AccessRefused(
                f"sink {sink!r} is of user {row.user!r}: take another name, or have an "
                "administrator free this one by `hutch ctl forget_sink`"
            )
        return row

    def entry(self, sink: str, row: SinkRow) -> TableEntry:
        """Return the row of a commit, conditional on the row before it.

        Raises:
            PreconditionFailed: It is new, and there are too many. An old one never goes to make
                room: its batch might be repeated.
        """
        if sink in self._rows:
            return TableEntry(sink_key(sink), row.pack(), self._rows[sink][1])
        full = ""
        if len(self._by_user.get(row.user, ())) >= USER_SINKS_MAX:
            full = f"user {row.user!r} has {USER_SINKS_MAX} sinks in"
        elif len(self) >= SINKS_MAX:
            full = f"there are {SINKS_MAX} sinks in"
        if full:
            raise PreconditionFailed(
                f"sink {sink!r} is new, and {full} virtual host {self._ports.virtual_host!r}: "
                "`hutch ctl list_sinks` shows them, `hutch ctl forget_sink` makes room"
            )
        return TableEntry(sink_key(sink), row.pack(), NOT_EXISTS)

    def put(self, sink: str, row: SinkRow, version: int) -> None:
        """Note a row that is stored."""
        self._rows[sink] = row, version
        self._by_user.setdefault(row.user, set()).add(sink)

    async def look(self, under_way: Collection[int]) -> None:
        """Forget sinks that have committed nothing for long; `under_way` has unfinished commits."""
        age_ms = self._ports.usage.limits.sink_expiry_s * _MS
        before_ms = self._ports.now_for_age_ms(age_ms) - age_ms
        async with self._locks.hold(RECORD):
            await self._try_to_remove(
                sink for sink, row in self if row.at_ms < before_ms and row.number not in under_way
            )

    async def drop_strangers(
        self, has_user: Callable[[str], bool], among: Collection[str] | None = None
    ) -> None:
        """Forget the sinks of users that are not there, of some or of all; logs those that stay."""
        async with self._locks.hold(RECORD):
            users = self._by_user if among is None else among
            gone = [self._by_user.get(user, ()) for user in users if not has_user(user)]
            await self._try_to_remove(sink for theirs in gone for sink in theirs)

    async def forget(self, sink: str) -> bool:
        """Forget a sink, so that its name is free; return whether there was one.

        Raises:
            StoreError: It is there still.
        """
        async with self._locks.hold(RECORD):
            is_there = sink in self
            if is_there:
                await self._remove([sink])
        return is_there

    async def _try_to_remove(self, sinks: Iterable[str]) -> None:
        left = list(sinks)
        try:
            await self._remove(left)
        except StoreError as error:
            log.warning(
                "sinks not forgotten, tried again later virtual_host=%s sinks=%d error=%s",
                self._ports.virtual_host,
                len(left),
                error,
            )

    async def _remove(self, sinks: Sequence[str]) -> None:
        """Remove sinks, some at a time; the caller has the lock. Raises StoreError."""
        for begin in range(0, len(sinks), _AT_ONCE):
            some = sinks[begin : begin + _AT_ONCE]
            await self._ports.remove([sink_key(sink) for sink in some])
            for sink in some:
                self._drop(sink)

    def _drop(self, sink: str) -> None:
        row, _ = self._rows.pop(sink)
        theirs = self._by_user[row.user]
        theirs.remove(sink)
        if not theirs:
            del self._by_user[row.user]
        log.info(
            "sink forgotten virtual_host=%s sink=%r user=%r batch=%d",
            self._ports.virtual_host,
            sink,
            row.user,
            row.batch,
        )
