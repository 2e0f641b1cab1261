"""The stages of a virtual host, from their first byte until they are committed or dropped."""

import dataclasses
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from gateway.broker.commits.ports import CommitsPorts
from gateway.broker.commits.rows import StageRow, stage_key
from gateway.broker.commits.sources import find_segment
from gateway.broker.commits.stage import Stage, restored
from gateway.broker.errors import AccessRefused, PreconditionFailed, StreamDoesNotExist
from gateway.broker.streams.catalogue import Stream
from gateway.broker.streams.staging_limits import COMMIT_STAGES_MAX, SINK_BYTES_MAX
from gateway.broker.streams.stream_storage import delete_segments
from store.errors import StoreError

log = logging.getLogger(__name__)

BATCH_MAX: Final = 2**63 - 1
"""The largest batch: a sink's state says the last one as i64."""

_MS: Final = 1_000


class Stages:
    """Stages by number, as they are in memory and in the store.

    Attributes:
        usage: Bytes that are staged, in all virtual hosts.
    """

    def __init__(self, ports: CommitsPorts) -> None:
        self.usage = ports.usage
        self._ports = ports
        self._stages: dict[int, Stage] = {}
        self._by_user: dict[str, dict[int, Stage]] = {}
        self._garbage: set[tuple[int, bool]] = set()
        """Numbers of stages that are gone, but perhaps still stored; and whether in a segment."""
        self._left_open: dict[int, StageRow] = {}

    def __iter__(self) -> Iterator[Stage]:
        return iter(list(self._stages.values()))

    def __len__(self) -> int:
        return len(self._stages)

    def find(self, number: int) -> Stage | None:
        """Return a stage; None if there is none."""
        return self._stages.get(number)

    def of_user(self, user: str) -> list[Stage]:
        """Return a user's stages in no commit."""
        return [stage for stage in self._all_of(user) if not stage.commit]

    def are_of(self, user: str) -> bool:
        """Return whether a user has stages."""
        return user in self._by_user

    def bytes_of(self, user: str) -> int:
        """Return the bytes that a user has staged here."""
        return sum(stage.size_bytes for stage in self._all_of(user))

    def count_of(self, user: str) -> int:
        """Return how many stages a user has, in commits or not."""
        return len(self._all_of(user))

    def _all_of(self, user: str) -> Collection[Stage]:
        return self._by_user.get(user, {}).values()

    def put(self, stage: Stage) -> None:
        """Take in a stage that is new, or was stored before the start."""
        self._stages[stage.number] = stage
        self._by_user.setdefault(stage.user, {})[stage.number] = stage
        self.usage.add(stage.user, stage.size_bytes)

    def of(self, user: str, number: int) -> Stage:
        """Return a user's stage that is in no commit. Raises PreconditionFailed, AccessRefused."""
        stage = self._stages.get(number)
        if stage is None:
            raise unknown(number)
        if stage.user != user:
            raise AccessRefused(f"stage {number} is of another user")
        if stage.commit:
            raise PreconditionFailed(f"stage {number} is committed already")
        return stage

    def own(self, user: str, numbers: Iterable[int]) -> list[Stage]:
        """Return those stages that are there and in no commit. Raises AccessRefused."""
        there = [number for number in dict.fromkeys(numbers) if number in self._stages]
        return [self.of(user, number) for number in there if not self._stages[number].commit]

    def of_sink(self, user: str, sink: str, batch: int) -> list[Stage]:
        """Return a user's stages in no commit, for a batch of a sink or an earlier one."""
        return [
            stage for stage in self.of_user(user) if stage.sink == sink and stage.batch <= batch
        ]

    def target_of(self, stage: Stage) -> Stream:
        """Return the stream of a stage. Raises StreamDoesNotExist: it was deleted."""
        stream = self._ports.streams.find(stage.stream)
        if stream.entry.generation != stage.generation:
            raise StreamDoesNotExist(stage.stream)
        return stream

    def for_commit(self, user: str, sink: str, batch: int, numbers: Sequence[int]) -> list[Stage]:
        """Return the stages of a commit, in order.

        Raises:
            PreconditionFailed: There are too many, one is unknown, named twice, not closed, of
                another sink or batch, or in a commit.
            AccessRefused: One is another user's.
        """
        if len(numbers) > COMMIT_STAGES_MAX:
            raise PreconditionFailed(
                f"{len(numbers)} stages, and a commit may have {COMMIT_STAGES_MAX}"
            )
        found: dict[int, Stage] = {}
        for number in numbers:
            stage = self.of(user, number)
            if number in found:
                raise PreconditionFailed(f"stage {number} is named twice")
            if (stage.sink, stage.batch) != (sink, batch):
                raise PreconditionFailed(
                    f"stage {number} is for batch {stage.batch} of sink {stage.sink!r}"
                )
            if not stage.is_closed:
                raise PreconditionFailed(f"stage {number} is not closed")
            found[number] = stage
        return list(found.values())

    async def data_of(self, stage: Stage) -> bytes:
        """Return the chunks of a small stage. Raises StoreError; ValueError: they are damaged."""
        if stage.held is not None:
            return b"".join(stage.held)
        value = await self._ports.read(stage_key(stage.number))
        return b"" if value is None else StageRow.unpack(value)[1]

    def restore(self, number: int, row: StageRow) -> None:
        """Take over a row from before the start; of an open one `find_open` finds the bytes."""
        self._ports.streams.storage.note_generation(number)
        if row.is_closed:
            self.put(restored(number, row))
        else:
            self._left_open[number] = row

    async def find_open(self) -> None:
        """Take over stages that were open when the server stopped. Raises StoreError."""
        for number, row in self._left_open.items():
            info = await find_segment(self._ports, number)
            if info is None:
                self._garbage.add((number, False))
                continue
            used_ms = max(row.used_ms, info.modified_at_ms)
            self.put(
                restored(number, dataclasses.replace(row, size_bytes=info.length, used_ms=used_ms))
            )
        self._left_open.clear()

    def forget(self, stages: Iterable[Stage]) -> list[Stage]:
        """Take stages out of memory; return those that were there."""
        gone = [stage for stage in stages if self._stages.pop(stage.number, None) is not None]
        for stage in gone:
            theirs = self._by_user[stage.user]
            del theirs[stage.number]
            if not theirs:
                del self._by_user[stage.user]
            self.usage.add(stage.user, -stage.size_bytes)
            self.let_go(stage)
        return gone

    async def discard(self, stages: Iterable[Stage]) -> None:
        """Drop stages, with all that is stored of them; what is left is tried again by `look`."""
        gone = self.forget(stages)
        for stage in gone:
            await _let_finish(stage)
        self._garbage.update(
            (stage.number, stage.has_segment)
            for stage in gone
            if stage.has_segment or stage.closing is not None
        )
        await self.collect()

    async def collect(self) -> None:
        """Remove what is still stored of stages that are gone; logs what stays."""
        garbage = set(self._garbage)
        if not garbage:
            return
        try:
            await self.delete_segments(number for number, has_segment in garbage if has_segment)
            await self._ports.remove([stage_key(number) for number, _ in garbage])
        except StoreError as error:
            log.warning(
                "stages not deleted, tried again later virtual_host=%s stages=%d error=%s",
                self._ports.virtual_host,
                len(garbage),
                error,
            )
        else:
            self._garbage -= garbage

    async def delete_segments(self, numbers: Iterable[int]) -> None:
        """Delete segments of stages, as far as they are there. Raises StoreError."""
        store = self._ports.store.for_removal
        await delete_segments(store, map(self._ports.segment_of, numbers))

    async def look(self) -> None:
        """Drop stages that have expired, and what is left of others."""
        age_ms = self.usage.limits.stage_expiry_s * _MS
        before_ms = self._ports.now_for_age_ms(age_ms) - age_ms
        expired = [stage for stage in self if stage.used_ms < before_ms and not stage.commit]
        if expired:
            log.warning(
                "stages expired virtual_host=%s stages=%d bytes=%d",
                self._ports.virtual_host,
                len(expired),
                sum(stage.size_bytes for stage in expired),
            )
        await self.discard(expired)

    async def drop_strangers(
        self, has_user: Callable[[str], bool], among: Collection[str] | None = None
    ) -> None:
        """Drop stages of users that are not there, of some or of all; those in a commit stay."""
        users = self._by_user if among is None else among
        gone = [stage for user in users if not has_user(user) for stage in self.of_user(user)]
        if gone:
            log.info(
                "stages of deleted users dropped virtual_host=%s stages=%d bytes=%d",
                self._ports.virtual_host,
                len(gone),
                sum(stage.size_bytes for stage in gone),
            )
        await self.discard(gone)

    def let_go(self, stage: Stage) -> None:
        """Hold a stage's chunks in memory no more."""
        self.usage.memory_bytes -= stage.held_bytes
        stage.held = None


async def _let_finish(stage: Stage) -> None:
    """Wait for work under way that would leave a segment or a row behind a deletion."""
    if stage.making is not None:
        await stage.making
    if stage.closing is not None:
        with suppress(StoreError):  # the caller that closes it gets the error
            await stage.closing


def unknown(number: int) -> PreconditionFailed:
    """Return the refusal of a stage that is not there."""
    return PreconditionFailed(
        f"stage {number} is unknown: it expired, was discarded, or was lost when the server stopped"
    )


def require_sink(sink: str, batch: int) -> None:
    """Demand a sink and a batch within their bounds. Raises PreconditionFailed."""
    if len(sink.encode("utf-8", "surrogateescape")) > SINK_BYTES_MAX:
        raise PreconditionFailed(f"sink {sink[:40]!r}… is above {SINK_BYTES_MAX} bytes")
    if not 0 <= batch <= BATCH_MAX:
        raise PreconditionFailed(f"batch {batch} of sink {sink!r} is above {BATCH_MAX}")
