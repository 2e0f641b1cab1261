"""A stage: chunks for one stream that no reader sees before they are committed."""

from dataclasses import dataclass, field

from gateway.broker.commits.rows import StageRow
from gateway.broker.commits.stage_segment import StageSegment
from gateway.pending import Pending


@dataclass(slots=True, eq=False, kw_only=True)
class Stage:
    """A stage, open or closed.

    Attributes:
        number: Its name for clients, never used again.
        user: Its owner.
        sink: The sink that it is for; empty for a save that is not remembered.
        batch: The batch that it is for.
        stream: The name of its stream.
        generation: The generation of that.
        seal_seed: The seed of the seals of its chunks, by the stream's segment.
        sequence: The number that the next entries must have.
        records: Number of records.
        size_bytes: Size of its chunks.
        used_ms: The time of its last use, in milliseconds since 1970.
        held: Its chunks, as far as they are in memory; None if they are in its row or segment.
        segment: Writes its segment; None for a small stage, and for one from before the start
            that is closed, or was not used since.
        has_segment: Whether it has a segment.
        making: Settled when its segment is made, or could not be.
        resuming: Settled when it is counted, of one that was open before the start.
        closing: Settled when it is closed; None before that was asked for.
        commit: The commit that it is in; 0 if it is in none.
    """

    number: int
    user: str
    sink: str
    batch: int
    stream: str
    generation: int
    seal_seed: int
    sequence: int = 0
    records: int = 0
    size_bytes: int = 0
    used_ms: int = 0
    held: list[bytes] | None = field(default_factory=list)
    segment: StageSegment | None = None
    has_segment: bool = False
    making: Pending[None] | None = None
    resuming: Pending[None] | None = None
    closing: Pending[None] | None = None
    commit: int = 0

    @property
    def is_closed(self) -> bool:
        """True if it is complete and stored."""
        return self.closing is not None and self.closing.is_settled

    @property
    def stored(self) -> int:
        """Frames from the first one on that outlive the end of the server."""
        if self.is_closed:
            return self.sequence
        return 0 if self.segment is None else self.segment.stored

    @property
    def state(self) -> str:
        """Its state for administrators: `open`, `closed`, or `committed` on its way to a stream."""
        if self.commit:
            return "committed"
        return "closed" if self.is_closed else "open"

    @property
    def held_bytes(self) -> int:
        """Bytes of it in memory, for good."""
        return 0 if self.held is None else self.size_bytes

    def row(self, *, is_closed: bool) -> StageRow:
        """Describe it as it is stored."""
        return StageRow(
            user=self.user,
            sink=self.sink,
            batch=self.batch,
            stream=self.stream,
            generation=self.generation,
            records=self.records,
            size_bytes=self.size_bytes,
            is_closed=is_closed,
            has_segment=self.has_segment,
            used_ms=self.used_ms,
            sequence=self.sequence,
        )


def restored(number: int, row: StageRow) -> Stage:
    """Return a stage from before the start; one that was open has a segment."""
    closed: Pending[None] = Pending()
    closed.settle(None)
    return Stage(
        number=number,
        user=row.user,
        sink=row.sink,
        batch=row.batch,
        stream=row.stream,
        generation=row.generation,
        seal_seed=0,
        sequence=row.sequence,
        records=row.records,
        size_bytes=row.size_bytes,
        used_ms=row.used_ms,
        held=None,
        has_segment=row.has_segment,
        closing=closed if row.is_closed else None,
    )
