"""Units for tests: blank chunks, a source of them, and their appending."""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from gateway.log.derived.filters import pack_filters
from gateway.log.log import StreamLog
from gateway.log.units import UnitPlace, UnitSegments, append_unit, pack_blank
from gateway.pending import Pending, start
from tests.chunks import Entry, SubBatch
from tests.unit.gateway.log.log_rig import NAMES, SEED, LogRig, encode, state_of

ASIDE = "hutch/_unit-1/0.#epoch.0"
SEGMENTS = UnitSegments(NAMES.data_segment, ASIDE)


def blank(*entries: Entry, values: Iterable[bytes] = (), seed: int = SEED) -> bytes:
    """A blank chunk of entries, with the filter values that they have."""
    records = sum(each.record_count if isinstance(each, SubBatch) else 1 for each in entries)
    chunk = pack_blank(
        len(entries),
        records,
        b"".join(map(encode, entries)),
        seal_seed=seed,
        packed_filters=pack_filters(values),
    )
    return bytes(chunk)


class Blanks:
    """A source that gives a few blank chunks at once, and calls back before each read."""

    def __init__(
        self,
        blanks: Sequence[bytes],
        at_once: int = 2,
        before_read: Callable[[int], object] = lambda _: None,
    ) -> None:
        self.size = sum(map(len, blanks))
        self._pieces = {}
        position = 0
        for first in range(0, len(blanks), at_once):
            piece = b"".join(blanks[first : first + at_once])
            self._pieces[position] = piece
            position += len(piece)
        self._before_read = before_read

    async def read(self, position: int) -> bytes:
        self._before_read(position)
        return self._pieces[position]


def begin(
    rig: LogRig,
    log: StreamLog,
    blanks: Sequence[bytes],
    mark: int,
    **options: Any,  # noqa: ANN401 - those of Blanks
) -> Pending[UnitPlace]:
    """Begin to append a unit."""
    return start(appending(rig, log, blanks, mark, **options))


def appending(
    rig: LogRig,
    log: StreamLog,
    blanks: Sequence[bytes],
    mark: int,
    **options: Any,  # noqa: ANN401 - those of Blanks
) -> Coroutine[Pending[Any], None, UnitPlace]:
    return append_unit(rig.store, log, SEGMENTS, Blanks(blanks, **options), mark=mark)


def append(
    rig: LogRig,
    log: StreamLog,
    blanks: Sequence[bytes],
    mark: int,
    **options: Any,  # noqa: ANN401 - those of Blanks
) -> UnitPlace:
    """Append a unit."""
    return rig.run(appending(rig, log, blanks, mark, **options))


def records_of(rig: LogRig) -> list[bytes]:
    """All stored records, whose offsets are dense."""
    found: list[bytes] = []
    for chunk, _ in rig.chunks():
        assert chunk.chunk_id == len(found)
        found += chunk.records()
    return found


def reopened(rig: LogRig, log: StreamLog) -> StreamLog:
    """The log, opened anew; it has the state that the old one had."""
    rig.settle(log)
    again = rig.open()
    assert state_of(again) == state_of(log)
    assert (again.mark, again.sequences.is_mark_known) == (log.mark, log.sequences.is_mark_known)
    return again
